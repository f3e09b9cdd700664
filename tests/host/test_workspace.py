"""The workspace: which folders are trusted, when a folder's own servers count, and what they take the place of."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from desktop.errors import AssistantError
from desktop.host.consent import Consent
from desktop.host.server_config import ServerDefinition
from desktop.host.servers_file import add_server
from desktop.host.trust import Trust
from desktop.host.workspace import Workspace, secret_name

DOCS = {"url": "http://127.0.0.1:9/"}


def write(file: Path, **servers: dict[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


@pytest.fixture
def own_file(home: Path) -> Path:
    return write(home / "mcp.json")


@pytest.fixture
def folder(home: Path) -> Path:
    folder = home / "work" / "project"
    write(folder / ".mcp.json", docs=DOCS)
    return folder


@pytest.fixture
def trust_file(home: Path) -> Path:
    return home / "trust.json"


MakeWorkspace = Callable[..., Workspace]


@pytest.fixture
def make(own_file: Path, trust_file: Path, home: Path) -> MakeWorkspace:
    """Makes what a start of Deskhand makes: a new one knows only what was kept in files."""

    def make(folder: Path | None = None, policy: str = "ask") -> Workspace:
        workspace = Workspace(own_file, Trust(trust_file), lambda: policy, default=home)
        workspace.open(folder)
        workspace.read()
        return workspace

    return make


def names(workspace: Workspace) -> list[str]:
    return [definition.name for definition in workspace.read().definitions]


def named(workspace: Workspace, name: str) -> ServerDefinition:
    [definition] = [each for each in workspace.read().definitions if each.name == name]
    return definition


def faults(workspace: Workspace) -> list[str]:
    return [fault.code for fault in workspace.read().faults]


# Trust


def test_a_folder_nobody_has_decided_on_is_undecided_and_its_servers_do_not_count(
    make: MakeWorkspace, folder: Path
) -> None:
    workspace = make(folder)
    assert (workspace.state, names(workspace)) == ("undecided", [])
    assert workspace.ignored is not None and workspace.ignored.code == "folder_not_trusted"


@pytest.mark.parametrize(
    ("trusted", "until_quit", "now", "after_restart"),
    [
        (True, False, "trusted", "trusted"),
        (True, True, "trusted", "undecided"),
        (False, False, "refused", "refused"),
        (False, True, "refused", "undecided"),
    ],
)
def test_each_of_the_four_answers_holds_as_long_as_it_says(
    make: MakeWorkspace, folder: Path, trusted: bool, until_quit: bool, now: str, after_restart: str
) -> None:
    workspace = make(folder)
    workspace.trust.decide(folder, trusted, until_quit=until_quit)
    assert (workspace.state, names(workspace)) == (now, ["docs"] if trusted else [])
    workspace.open(None)
    workspace.open(folder)
    assert workspace.state == now
    assert make(folder).state == after_restart


def test_what_was_answered_is_kept_in_a_private_file_by_the_canonical_path(
    make: MakeWorkspace, folder: Path, trust_file: Path
) -> None:
    make(folder).trust.decide(folder, True, until_quit=False)
    assert json.loads(trust_file.read_text()) == {str(folder.resolve()): True}
    assert stat.S_IMODE(trust_file.stat().st_mode) == 0o600


def test_a_decision_holds_below_its_folder_and_a_refusal_below_wins_over_it(make: MakeWorkspace, folder: Path) -> None:
    workspace = make(folder)
    workspace.trust.decide(folder.parent, True, until_quit=False)
    assert workspace.state == "trusted"
    workspace.trust.decide(folder, False, until_quit=False)
    assert workspace.state == "refused" and make(folder).state == "refused"
    assert workspace.trust.decision(folder.parent / "other") is not None  # that one is covered all the same
    deeper = folder / "deeper"
    write(deeper / ".mcp.json", docs=DOCS)
    assert make(deeper).state == "refused"
    sibling = folder.parent / "project2"  # no folder below, though its name begins alike
    sibling.mkdir()
    workspace.trust.revoke(folder.parent)
    assert workspace.trust.decision(sibling) is None


def test_an_answer_until_quit_holds_against_one_that_was_kept(make: MakeWorkspace, folder: Path) -> None:
    workspace = make(folder)
    workspace.trust.decide(folder, True, until_quit=False)
    workspace.trust.decide(folder, False, until_quit=True)
    assert workspace.state == "refused" and make(folder).state == "trusted"


@pytest.mark.parametrize(("policy", "state"), [("always", "trusted"), ("never", "refused"), ("ask", "undecided")])
def test_the_setting_decides_where_nothing_was_answered_and_never_against_an_answer(
    make: MakeWorkspace, folder: Path, policy: str, state: str
) -> None:
    workspace = make(folder, policy)
    assert workspace.state == state
    workspace.trust.decide(folder, state != "trusted", until_quit=False)
    assert workspace.state == ("refused" if state == "trusted" else "trusted")


def test_a_link_to_a_folder_is_that_folder(make: MakeWorkspace, folder: Path, home: Path) -> None:
    link = home / "link"
    link.symlink_to(folder)
    make(link).trust.decide(make(link).folder or home, False, until_quit=False)
    assert make(folder).state == "refused" and make(link).folder == folder.resolve()


def test_an_answer_that_is_taken_back_is_gone_for_good(make: MakeWorkspace, folder: Path) -> None:
    workspace = make(folder)
    workspace.trust.decide(folder, True, until_quit=False)
    assert [(each.folder, each.trusted, each.until_quit) for each in workspace.trust.decisions] == [
        (folder, True, False)
    ]
    workspace.trust.revoke(folder)
    assert (workspace.state, names(workspace), workspace.trust.decisions) == ("undecided", [], [])
    assert make(folder).state == "undecided"


@pytest.mark.parametrize("content", ["{", "[]", '{"/": "yes"}', "\ud800", "[" * 100_000])
def test_a_file_of_answers_that_cannot_be_read_trusts_nothing(
    make: MakeWorkspace, folder: Path, trust_file: Path, content: str
) -> None:
    trust_file.write_bytes(content.encode("utf-8", "surrogatepass"))
    assert make(folder).state == "undecided"


def test_an_answer_that_cannot_be_kept_holds_until_quit(make: MakeWorkspace, folder: Path, trust_file: Path) -> None:
    workspace = make(folder)
    trust_file.mkdir()
    with pytest.raises(AssistantError) as raised:
        workspace.trust.decide(folder, True, until_quit=False)
    assert raised.value.diagnostic.code == "storage_failed"
    assert workspace.state == "trusted"
    assert [each.until_quit for each in workspace.trust.decisions] == [True]


# The folder's file


@pytest.mark.parametrize("name", [".mcp.json", ".vscode/mcp.json"])
def test_a_file_that_is_not_trusted_is_not_even_opened(
    make: MakeWorkspace, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = home / "strange"
    file = folder / name
    file.parent.mkdir(parents=True)
    file.write_text("garbage")
    opened: list[Path] = []
    open_file = Path.open

    def watched(self: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(self)
        return open_file(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", watched)
    workspace = make(folder)
    assert (workspace.state, workspace.file) == ("undecided", file)
    workspace.trust.decide(folder, False, until_quit=True)
    assert workspace.read().faults == ()
    assert file not in opened
    workspace.trust.decide(folder, True, until_quit=True)
    workspace.read()
    assert file in opened


def test_garbage_in_a_file_that_is_not_trusted_is_no_fault_and_in_a_trusted_one_it_is(
    make: MakeWorkspace, folder: Path, own_file: Path
) -> None:
    (folder / ".mcp.json").write_text("\0 garbage")
    write(own_file, mail=DOCS)
    workspace = make(folder)
    assert (faults(workspace), names(workspace)) == ([], ["mail"])
    workspace.trust.decide(folder, True, until_quit=True)
    assert (faults(workspace), names(workspace)) == (["configuration_unreadable"], ["mail"])
    assert [fault.code for fault in workspace.servers.folder_faults] == ["configuration_unreadable"]


def test_a_folder_without_such_a_file_needs_no_answer(make: MakeWorkspace, home: Path) -> None:
    workspace = make(home / "..")
    assert (workspace.state, workspace.ignored, workspace.file) == ("plain", None, None)


def test_a_server_of_the_folder_replaces_the_own_one_of_its_name_whole(
    make: MakeWorkspace, folder: Path, own_file: Path
) -> None:
    write(own_file, docs={"command": "own", "env": {"A": "b"}, "description": "own"}, mail={"command": "mail"})
    workspace = make(folder)
    assert named(workspace, "docs").command == "own"
    workspace.trust.decide(folder, True, until_quit=True)
    assert names(workspace) == ["docs", "mail"]
    docs = named(workspace, "docs")
    assert (docs.kind, docs.url, docs.command, docs.description, docs.env) == ("http", DOCS["url"], "", "", {})
    assert workspace.servers.replaced == ("docs",)
    assert (docs.workspace, named(workspace, "mail").workspace) == (str(folder), None)
    assert workspace.file_of(docs) == folder / ".mcp.json"
    assert workspace.file_of(named(workspace, "mail")) == own_file


def test_an_own_file_that_is_the_folders_file_too_counts_once_and_is_told(
    make: MakeWorkspace, folder: Path, own_file: Path
) -> None:
    write(own_file, mail=DOCS)
    (folder / ".mcp.json").unlink()
    (folder / ".mcp.json").symlink_to(own_file)
    workspace = make(folder)
    workspace.trust.decide(folder, True, until_quit=True)
    assert (names(workspace), faults(workspace)) == (["mail"], ["folder_file_shared"])
    assert named(workspace, "mail").workspace is None


def test_a_file_that_cannot_be_read_any_more_counts_as_it_was_read_last_in_that_folder_alone(
    make: MakeWorkspace, folder: Path, own_file: Path, home: Path
) -> None:
    write(own_file, mail=DOCS)
    workspace = make(folder)
    workspace.trust.decide(home, True, until_quit=True)
    assert names(workspace) == ["docs", "mail"]
    (folder / ".mcp.json").write_text("{")
    own_file.write_text("{")
    assert names(workspace) == ["docs", "mail"]
    assert faults(workspace) == ["configuration_unreadable"] * 2
    other = home / "other"
    write(other / ".mcp.json", wiki=DOCS)
    workspace.open(other)
    assert names(workspace) == ["wiki", "mail"]
    workspace.open(folder)
    assert names(workspace) == ["mail"]
    workspace.open(None)
    assert (names(workspace), faults(workspace)) == (["mail"], ["configuration_unreadable"])


def test_what_is_no_folder_cannot_be_opened_and_the_open_one_stays(make: MakeWorkspace, folder: Path) -> None:
    workspace = make(folder)
    for wrong in (folder / "missing", folder / ".mcp.json", Path("/" + "x" * 300)):
        with pytest.raises(AssistantError) as raised:
            workspace.open(wrong)
        assert raised.value.diagnostic.code == "folder_unavailable"
    assert workspace.folder == folder


# Where servers run


def test_servers_without_a_cwd_run_in_the_open_folder_and_else_at_home(
    make: MakeWorkspace, own_file: Path, home: Path
) -> None:
    write(own_file, files={"command": "files"}, fixed={"command": "fixed", "cwd": "/tmp"}, docs=DOCS)
    plain = home / "plain"
    plain.mkdir()
    workspace = make(None)
    assert (named(workspace, "files").folder, named(workspace, "files").cwd) == (str(home), None)
    workspace.open(plain)
    assert named(workspace, "files").folder == str(plain)
    assert (named(workspace, "fixed").folder, named(workspace, "fixed").cwd) == (None, "/tmp")
    assert named(workspace, "docs").folder is None


def test_own_servers_do_not_run_in_a_folder_whose_file_is_not_trusted(
    make: MakeWorkspace, folder: Path, own_file: Path, home: Path
) -> None:
    write(own_file, files={"command": "python", "args": ["-m", "files"]})
    workspace = make(folder)
    assert named(workspace, "files").folder == str(home)
    workspace.trust.decide(folder, True, until_quit=True)
    assert named(workspace, "files").folder == str(folder)


def test_paths_of_the_folders_file_begin_in_the_folder_and_it_can_be_named(make: MakeWorkspace, home: Path) -> None:
    folder = home / "a $b"
    reference = "${workspaceFolder}"
    write(
        folder / ".mcp.json",
        here={"command": "./run", "args": [reference], "env": {"ROOT": reference + "/x"}},
        below={"command": "run", "cwd": "sub"},
        site={"url": "https://example.org/", "headers": {"X-Root": reference}},
    )
    workspace = make(folder)
    workspace.trust.decide(folder, True, until_quit=True)
    here = named(workspace, "here")
    assert (here.cwd, here.args, here.env) == (str(folder), (str(folder),), {"ROOT": f"{home}/a $$b/x"})
    assert named(workspace, "below").cwd == str(folder / "sub")
    assert named(workspace, "site").headers == {"X-Root": f"{home}/a $$b"}


def test_the_open_folder_can_be_named_in_the_own_file_too_and_without_one_that_is_a_fault(
    make: MakeWorkspace, folder: Path, own_file: Path
) -> None:
    write(own_file, files={"command": "files", "args": ["${workspaceFolder}"]})
    workspace = make(folder)
    assert named(workspace, "files").args == (str(folder),)
    workspace.open(None)
    assert (names(workspace), faults(workspace)) == ([], ["folder_not_open"])


# What the person has agreed to


def test_consent_to_an_own_command_goes_along_but_a_folders_command_is_asked_for_in_each_folder(
    make: MakeWorkspace, own_file: Path, home: Path
) -> None:
    write(own_file, files={"command": "files"}, script={"command": "./script"})
    one, other = home / "one", home / "other"
    for folder in (one, other):
        write(folder / ".mcp.json", tool={"command": "./run"})
    workspace = make(None)
    workspace.trust.decide(home, True, until_quit=True)
    consent = Consent(home / "consent.json")
    workspace.open(one)
    for name in ("files", "script", "tool"):
        consent.give(named(workspace, name))
    workspace.open(other)
    assert consent.given(named(workspace, "files"))
    assert not consent.given(named(workspace, "tool"))
    assert not consent.given(named(workspace, "script"))  # which would be another file
    workspace.open(one)
    assert consent.given(named(workspace, "tool"))
    write(one / ".mcp.json", tool={"command": "./run", "args": ["more"]})
    assert not consent.given(named(workspace, "tool"))  # the folder is trusted, its new command is not yet agreed to


def test_a_configuration_named_on_the_command_line_is_no_consent_to_what_the_folder_brings(tmp_path: Path) -> None:
    consent = Consent(tmp_path / "consent.json", own_allowed=True)
    assert consent.given(ServerDefinition("own", "stdio", command="x"))
    assert not consent.given(ServerDefinition("theirs", "stdio", command="x", workspace="/folder"))


def test_a_folders_server_gets_no_secret_of_an_own_server_or_of_another_folders() -> None:
    kept = "server:github:TOKEN"
    assert secret_name(None, kept) == kept
    assert len({secret_name(None, kept), secret_name("/one", kept), secret_name("/other", kept)}) == 3


def test_an_own_server_is_checked_when_it_is_added_also_where_the_folders_one_counts(
    make: MakeWorkspace, folder: Path, own_file: Path
) -> None:
    workspace = make(folder)
    workspace.trust.decide(folder, True, until_quit=True)
    before = own_file.read_bytes()
    with pytest.raises(AssistantError) as raised:
        add_server(own_file, "docs", {"command": "x", "args": 1})
    assert (raised.value.diagnostic.code, own_file.read_bytes()) == ("configuration_invalid", before)
    add_server(own_file, "docs", {"command": "own"})
    assert (named(workspace, "docs").kind, workspace.servers.replaced) == ("http", ("docs",))


def test_what_an_entry_would_be_is_told_as_it_would_run_from_its_file(
    make: MakeWorkspace, folder: Path, own_file: Path, home: Path
) -> None:
    workspace = make(folder)
    entry = {"command": "x", "args": ["${workspaceFolder}"], "cwd": "sub"}
    theirs = workspace.checked("new", entry, folder / ".mcp.json")
    assert (theirs.workspace, theirs.cwd, theirs.args) == (str(folder), str(folder / "sub"), (str(folder),))
    own = workspace.checked("new", {"command": "x"}, own_file)
    assert (own.workspace, own.cwd, own.folder) == (None, None, str(home))  # the folder is not trusted yet
    workspace.open(None)
    with pytest.raises(AssistantError) as raised:
        workspace.checked("new", entry, own_file)
    assert raised.value.diagnostic.code == "folder_not_open"
