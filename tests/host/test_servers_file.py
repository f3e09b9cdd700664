"""Edits of the servers' file: what is written, what stays as it was, and what happens when several edit at the same time."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from desktop.errors import AssistantError
from desktop.host.server_config import ServerDefinition
from desktop.host.servers_file import add_server, read_configuration, remove_server, set_disabled


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def definitions(file: Path) -> dict[str, ServerDefinition]:
    """All by name; none of the file's entries may be at fault."""
    configuration = read_configuration(file)
    assert not configuration.faults, [str(fault) for fault in configuration.faults]
    return {definition.name: definition for definition in configuration.definitions}


def test_an_edit_keeps_what_it_does_not_know(file: Path) -> None:
    before = {
        "$schema": "s",
        "mcpServers": {"a": {"command": "é", "gallery": {"x": [1.5, None]}}},
        "inputs": ["\ud800"],
    }
    file.write_text(json.dumps(before))
    set_disabled(file, "a", True)
    add_server(file, "b", {"command": "y", "later": True})
    remove_server(file, "a")
    after = json.loads(file.read_text())
    assert after == {**before, "mcpServers": {"b": {"command": "y", "later": True}}}


def test_a_new_file_is_written_as_a_person_would(file: Path) -> None:
    add_server(file, "a", {"command": "x", "args": ["é"]})
    set_disabled(file, "a", True)
    assert file.read_text() == (
        '{\n  "mcpServers": {\n    "a": {\n      "command": "x",\n      "args": [\n        "é"\n      ],\n'
        '      "disabled": true\n    }\n  }\n}\n'
    )


def test_disabling_and_enabling_follow_the_word_the_file_uses(file: Path) -> None:
    for before, disabled, after in (
        ({}, True, {"disabled": True}),
        ({"disabled": True}, False, {"disabled": False}),
        ({"enabled": True}, True, {"enabled": False}),
        ({"enabled": False, "disabled": True}, False, {"enabled": True, "disabled": False}),
    ):
        file.write_text(json.dumps({"servers": {"a": {"command": "x", **before}}}))
        set_disabled(file, "a", disabled)
        assert json.loads(file.read_text()) == {"servers": {"a": {"command": "x", **after}}}
        assert definitions(file)["a"].disabled is disabled


def test_a_toggle_without_change_leaves_the_file_untouched(file: Path) -> None:
    file.write_text('{"mcpServers":{"a":{"command":"x"}}}')
    set_disabled(file, "a", False)
    assert file.read_text() == '{"mcpServers":{"a":{"command":"x"}}}'


def test_the_last_removal_leaves_an_empty_section(file: Path) -> None:
    add_server(file, "a", {"command": "x"})
    remove_server(file, "a")
    assert json.loads(file.read_text()) == {"mcpServers": {}}


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    new = tmp_path / "new" / "mcp.json"
    add_server(new, "a", {"command": "x"})
    assert (stat.S_IMODE(new.stat().st_mode), stat.S_IMODE(new.parent.stat().st_mode)) == (0o600, 0o700)
    new.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(new)
    add_server(link, "b", {"command": "x"})
    assert link.is_symlink() and stat.S_IMODE(new.stat().st_mode) == 0o640
    assert list(definitions(new)) == ["a", "b"]
    assert [each.name for each in new.parent.iterdir()] == ["mcp.json"]


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "mcp.json"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(AssistantError) as raised:
        add_server(link, "a", {"command": "x"})
    assert raised.value.diagnostic.code == "configuration_unreadable"
    assert not (tmp_path / "nowhere").exists()


COMMENTED = """\ufeff// mine
{
  "other": {"twice": 1, "twice": 1.10, "big": 1e999},
  "mcpServers": {
    // notes
    "a": {"command": "x"}, /* first */
    // the second
    "b": {
      "command": "y", // why
    },
  },
}
"""


def test_an_edit_keeps_comments_order_digits_and_what_is_given_twice(file: Path) -> None:
    file.write_text(COMMENTED)
    set_disabled(file, "b", True)
    assert file.read_text() == COMMENTED.replace("// why\n", '// why\n      "disabled": true,\n')
    set_disabled(file, "b", False)
    assert file.read_text() == COMMENTED.replace("// why\n", '// why\n      "disabled": false,\n')
    file.write_text(COMMENTED)
    add_server(file, "c", {"command": "z"})
    added = '    },\n    "c": {\n      "command": "z"\n    },\n'
    assert file.read_text() == COMMENTED.replace("    },\n", added, 1)
    remove_server(file, "c")
    assert file.read_text() == COMMENTED
    add_server(file, "b", {"command": "y", "args": ["1"]}, replace=True)
    assert "// why" in file.read_text() and definitions(file)["b"].args == ("1",)
    remove_server(file, "a")
    assert file.read_text().count("/* first */") == 1 and "// the second" in file.read_text()


def test_an_edit_keeps_windows_line_ends_and_the_mark_at_the_begin(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}\r\n\t}\r\n}\r\n')
    add_server(file, "b", {"command": "y"})
    assert file.read_bytes() == (
        b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"},\r\n'
        b'\t\t"b": {\r\n\t\t\t"command": "y"\r\n\t\t}\r\n\t}\r\n}\r\n'
    )


def test_an_entry_that_is_given_twice_is_mended_by_writing_it_anew(file: Path) -> None:
    file.write_text('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')
    add_server(file, "a", {"command": "z"}, replace=True)
    assert definitions(file)["a"].command == "z"


def test_a_server_whose_entry_is_not_valid_is_not_toggled(file: Path) -> None:
    file.write_text('{"mcpServers": {"a": {"command": "x", "timeoutMs": 1}}}')
    before = file.read_bytes()
    with pytest.raises(AssistantError) as raised:
        set_disabled(file, "a", True)
    assert raised.value.diagnostic.values["where"] == " at timeoutMs"
    assert file.read_bytes() == before


def test_a_change_that_would_make_the_file_unreadable_leaves_every_byte(file: Path) -> None:
    file.write_text('{"mcpServers": {"a": {"command": "x"}}}' + " " * (2**20 - 60))
    before = file.read_bytes()
    with pytest.raises(AssistantError) as raised:
        add_server(file, "b", {"command": "y" * 100})
    assert raised.value.diagnostic.code == "configuration_unreadable"
    assert file.read_bytes() == before and {each.name for each in file.parent.iterdir()} == {"home", "mcp.json"}


def test_an_invalid_or_taken_definition_is_not_added(file: Path) -> None:
    add_server(file, "a", {"command": "${NOT_SET}"})  # it may be set where it is used
    before = file.read_bytes()
    for name, entry in (("a", {"command": "y"}), ("b", {}), ("c d", {"command": "x"}), ("deskhand", {"command": "x"})):
        with pytest.raises(AssistantError) as raised:
            add_server(file, name, entry)
        assert raised.value.diagnostic.code == "configuration_invalid"
    assert file.read_bytes() == before
    add_server(file, "a", {"command": "y"}, replace=True)
    assert definitions(file)["a"].command == "y"


def test_a_server_that_is_not_in_the_file_is_unknown(file: Path) -> None:
    add_server(file, "a", {"command": "x"})
    for edit in (lambda: remove_server(file, "b"), lambda: set_disabled(file, "b", True)):
        with pytest.raises(AssistantError) as raised:
            edit()
        assert raised.value.diagnostic.code == "server_unknown"


def test_edits_at_the_same_time_all_land_by_whichever_path_they_come(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "alias").symlink_to(real)
    (tmp_path / "link.json").symlink_to(real / "mcp.json")
    ways = (real / "mcp.json", tmp_path / "alias" / "mcp.json", tmp_path / "link.json")
    add_server(ways[0], "first", {"command": "x"})
    for n in range(10):
        add_server(ways[0], f"old{n}", {"command": "x"})
    threads = [threading.Thread(target=add_server, args=(ways[n % 3], f"s{n}", {"command": "x"})) for n in range(15)]
    threads += [threading.Thread(target=remove_server, args=(ways[n % 3], f"old{n}")) for n in range(5)]
    threads += [threading.Thread(target=set_disabled, args=(ways[n % 3], f"old{n}", True)) for n in range(5, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    found = {name: definition.disabled for name, definition in definitions(ways[0]).items()}
    assert found == {"first": False} | {f"s{n}": False for n in range(15)} | {f"old{n}": True for n in range(5, 10)}
    assert [each.name for each in real.iterdir()] == ["mcp.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="no folder can be locked there")
def test_edits_of_several_programs_at_the_same_time_all_land(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from desktop.host.servers_file import add_server\n"
        "for n in range(10): add_server(Path(sys.argv[1]), f'{sys.argv[2]}{n}', {'command': 'x'})"
    )
    root = Path(__file__).parents[2]
    running = [subprocess.Popen([sys.executable, "-c", program, file, name], cwd=root) for name in "abc"]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert set(definitions(file)) == {f"{name}{n}" for name in "abc" for n in range(10)}


@pytest.mark.skipif(sys.platform == "win32", reason="no folder can be locked there")
def test_an_edit_waits_for_another_programs_and_not_for_ever(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    add_server(file, "a", {"command": "x"})
    before = file.read_bytes()
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        monkeypatch.setattr("desktop.host.file_lock._LONGEST_WAIT", 0.2)
        with pytest.raises(AssistantError) as raised:
            remove_server(file, "a")
        assert raised.value.diagnostic.code == "storage_failed" and file.read_bytes() == before
    finally:
        os.close(folder)
    remove_server(file, "a")
