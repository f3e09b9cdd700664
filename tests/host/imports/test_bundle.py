"""Bundles: looked at without unpacking, unpacked within limits and nowhere else, their questions turned into an entry."""

from __future__ import annotations

import json
import os
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from desktop.errors import AssistantError
from desktop.host.bundle import is_bundle, read_bundle
from desktop.host.servers_file import add_server, read_configuration
from desktop.paths import Paths

MANIFEST: dict[str, Any] = {
    "manifest_version": "0.3",
    "name": "local-files",
    "display_name": "Local files",
    "version": "1.2.0",
    "description": "Reads files.",
    "author": {"name": "Someone"},
    "server": {
        "type": "node",
        "entry_point": "server/index.js",
        "mcp_config": {
            "command": "node",
            "args": ["${__dirname}/server/index.js", "--level=${user_config.level}", "${user_config.folders}"],
            "env": {"API_KEY": "${user_config.api_key}", "RAW": "!touch $x", "HOME_FOLDER": "${HOME}"},
            "platform_overrides": {"win32": {"command": "node.exe"}},
        },
    },
    "user_config": {
        "api_key": {"type": "string", "title": "API key", "description": "Yours", "sensitive": True, "required": True},
        "folders": {"type": "directory", "title": "Folders", "multiple": True, "default": ["${HOME}/Documents"]},
        "level": {"type": "number", "title": "Level", "default": 3},
    },
}


def bundle(folder: Path, manifest: Any = MANIFEST, **files: bytes) -> Path:
    file = folder / "x.mcpb"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        archive.writestr("manifest.json", text)
        for name, content in files.items():
            archive.writestr(name, content)
    return file


def reason(call: Any, *arguments: Any) -> str:
    with pytest.raises(AssistantError) as raised:
        call(*arguments)
    assert raised.value.diagnostic.code == "import_unreadable"
    return str(raised.value.diagnostic.values["reason"])


def changed(**server: Any) -> dict[str, Any]:
    config = MANIFEST["server"]["mcp_config"] | server
    return MANIFEST | {"server": MANIFEST["server"] | {"mcp_config": config}}


def test_a_bundle_says_what_it_is_and_what_it_asks_for(tmp_path: Path) -> None:
    found = read_bundle(bundle(tmp_path))
    assert (found.name, found.title, found.version, found.author) == ("local-files", "Local files", "1.2.0", "Someone")
    assert [(each.name, each.kind, each.required, each.multiple, each.sensitive) for each in found.options] == [
        ("api_key", "string", True, False, True),
        ("folders", "directory", False, True, False),
        ("level", "number", False, False, False),
    ]
    assert is_bundle(Path("a.MCPB")) and is_bundle(Path("a.dxt")) and not is_bundle(Path("a.zip"))


def test_what_was_entered_becomes_an_entry_and_secrets_go_apart(tmp_path: Path, home: Path, paths: Paths) -> None:
    found = read_bundle(bundle(tmp_path))
    entry, secrets = found.entry({"api_key": "canary", "folders": ["/a b", "/c"], "level": 5}, Path("/unpacked"))
    assert entry == {
        "command": "node.exe" if sys.platform == "win32" else "node",
        "args": ["/unpacked/server/index.js", "--level=5", "/a b", "/c"],
        "env": {"API_KEY": "${keyring:api_key}", "RAW": "$!touch $$x", "HOME_FOLDER": str(home)},
        "description": "Reads files.",
    }
    assert secrets == {"api_key": "canary"}
    add_server(paths.servers_file, "files", entry)
    assert read_configuration(paths.servers_file).faults == ()
    assert found.entry({}, Path("/u"))[0]["args"] == ["/u/server/index.js", "--level=3", f"{home}/Documents"]


def test_unpacking_makes_private_files_once_and_keeps_programs_programs(tmp_path: Path, paths: Paths) -> None:
    file = bundle(tmp_path, **{"server/index.js": b"x"})
    with zipfile.ZipFile(file, "a") as archive:
        program = zipfile.ZipInfo("bin/run")
        program.external_attr = (stat.S_IFREG | 0o755) << 16
        archive.writestr(program, "#!/bin/sh")
    found = read_bundle(file)
    assert not found.folder(paths.data).exists()  # looking unpacks nothing
    folder = found.unpack(paths.data)
    assert folder == found.folder(paths.data)
    assert (folder / "server" / "index.js").read_bytes() == b"x"
    if os.name == "posix":
        modes = [stat.S_IMODE((folder / name).stat().st_mode) for name in ("", "server", "server/index.js", "bin/run")]
        assert modes == [0o700, 0o700, 0o600, 0o700]
    (folder / "server" / "index.js").write_bytes(b"mine")
    assert found.unpack(paths.data) == folder
    assert (folder / "server" / "index.js").read_bytes() == b"mine"
    assert [each.name for each in folder.parent.iterdir()] == [folder.name]


def test_a_bundle_that_changed_since_it_was_looked_at_is_not_unpacked(tmp_path: Path, paths: Paths) -> None:
    found = read_bundle(bundle(tmp_path))
    bundle(tmp_path, evil=b"x")
    assert reason(found.unpack, paths.data) == "it has been changed meanwhile"
    assert list((paths.data / "bundles").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/evil",
        "a/../../evil",
        "a\\..\\evil",
        "C:evil",
        "a/./../evil",
        "con",
        "aux.txt",
        "x\x01",
        "x. ",
        "a" * 1001,
    ],
)
def test_nothing_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    assert reason(read_bundle, bundle(tmp_path, **{name: b"x"})) == "it has a file with a name that leads elsewhere"


def test_links_twins_and_giants_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = bundle(tmp_path)
    with zipfile.ZipFile(file, "a") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert reason(read_bundle, file) == "it has a link or a device in it"
    assert reason(read_bundle, bundle(tmp_path, a=b"", A=b"")) == "it has two files of the same name"
    monkeypatch.setattr("desktop.host.bundle_archive._LARGEST_UNPACKED", 1000)
    assert "unpacked it is larger than" in reason(read_bundle, bundle(tmp_path, bomb=b"0" * 100_000))
    monkeypatch.setattr("desktop.host.bundle_archive._MOST_FILES", 1)
    assert "it has more than 1 files" in reason(read_bundle, bundle(tmp_path, a=b""))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files here")
@pytest.mark.timeout(10)
def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mcpb")
    assert reason(read_bundle, tmp_path / "pipe.mcpb") == "it is no regular file"
    assert reason(read_bundle, tmp_path / "missing.mcpb") == "there is no such file"
    (tmp_path / "text.mcpb").write_text("x")
    assert reason(read_bundle, tmp_path / "text.mcpb") == "it is no whole ZIP file, or an encrypted one"
    with zipfile.ZipFile(tmp_path / "empty.mcpb", "w"):
        pass
    assert reason(read_bundle, tmp_path / "empty.mcpb") == "it has no manifest.json"


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ("{", "of its manifest, its JSON is wrong"),
        ("[]", "of its manifest,"),
        (MANIFEST | {"manifest_version": "2"}, "its manifest is of a version that is not known"),
        (MANIFEST | {"name": "../x"}, "its manifest has no valid name"),
        (MANIFEST | {"name": None}, "its manifest has no valid name"),
        (MANIFEST | {"compatibility": {"platforms": ["nowhere"]}}, "it is not for this system"),
        (MANIFEST | {"server": {}}, "its manifest does not say how its server is started"),
        (changed(args="x"), "its manifest's args are no list of texts"),
        (changed(env={"A": 1}), "its manifest's env is no object of texts"),
        (changed(surprise=1), "its manifest has 1 fields for the start that are not known"),
        (MANIFEST | {"user_config": {"a": {"type": "canary"}}}, "what its manifest asks for can't be read"),
        (MANIFEST | {"user_config": ["canary"]}, "what its manifest asks for can't be read"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why(tmp_path: Path, manifest: Any, expected: str) -> None:
    said = reason(read_bundle, bundle(tmp_path, manifest))
    assert said.startswith(expected)
    assert "canary" not in said


@pytest.mark.parametrize(
    ("server", "values", "expected"),
    [
        ({"args": ["${nobody}"]}, {}, "its manifest has a variable that is not known"),
        ({"env": {"A": "${HOME"}}, {}, "its manifest has a variable without an end"),
        ({"args": ["${user_config.api_key}"]}, {"api_key": "x"}, "its manifest puts a secret into an argument"),
        ({}, {"level": "${HOME}"}, "a value with `${` can't stand in an argument"),
        ({}, {"folders": ["${HOME}"]}, "a value with `${` can't stand in an argument"),
    ],
)
def test_what_cannot_become_an_entry_is_said(
    tmp_path: Path, server: dict[str, Any], values: dict[str, Any], expected: str
) -> None:
    found = read_bundle(bundle(tmp_path, changed(**server)))
    assert reason(found.entry, values, tmp_path).startswith(expected)
