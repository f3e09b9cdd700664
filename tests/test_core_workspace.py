"""What becomes of servers, and of tools that are loaded, when the workspace changes: on the real core and real servers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desktop.assistant.approval import AllowAll
from desktop.assistant.asking import NobodyToAsk
from desktop.catalog_entries import ToolDefinition
from desktop.core import Core
from desktop.errors import AssistantError
from desktop.paths import Paths
from tests import real_servers
from tests.host.conftest import failure, text
from tests.servers.running import friendly

pytestmark = pytest.mark.anyio


def entry(command: list[str], **more: Any) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:], **more}


def write(file: Path, **servers: dict[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))
    return file.parent


@pytest.fixture
async def core(paths: Paths) -> AsyncIterator[Core]:
    core = Core(paths, approver=AllowAll(), asker=NobodyToAsk())
    yield core
    await core.close()


async def allowed(core: Core, *names: str) -> None:
    for name in names:
        await core.host.give_consent(name)
        await core.host.connection(name).connect()


async def tool(core: Core, name: str) -> ToolDefinition:
    [found] = await core.catalog.look_up([name])
    assert found.tool is not None
    return found.tool


def status(core: Core) -> dict[str, str]:
    return {name: each.state.status for name, each in core.host.connections.items() if name != "deskhand"}


async def test_what_stays_the_same_keeps_its_connection_and_what_goes_is_closed(core: Core, home: Path) -> None:
    write(
        core.servers_file,
        fixed=entry(friendly(), cwd=str(home)),
        along=entry(friendly()),
    )
    one = write(home / "one" / ".mcp.json", theirs=entry(friendly()))
    other = home / "other"
    other.mkdir()
    core.workspace.trust.decide(one, True, until_quit=True)
    core.first_folder = one
    await core.start()
    await allowed(core, "fixed", "along", "theirs")
    before = dict(core.host.connections)
    await core.open_folder(other)
    assert status(core) == {"fixed": "connected", "along": "idle"}  # the latter is to run in the other folder
    assert core.host.connections["fixed"] is before["fixed"]
    assert before["theirs"].state.status == before["along"].state.status == "idle"
    await core.host.connections["along"].connect()  # what was allowed goes along
    assert await failure(before["theirs"].list_tools()) == "server_disabled"
    await core.open_folder(None)
    assert core.host.connections["fixed"] is before["fixed"]
    assert status(core)["fixed"] == "connected"


async def test_a_loaded_tool_of_the_folder_is_refused_after_it_is_closed_and_works_again_in_it(
    core: Core, home: Path
) -> None:
    write(core.servers_file, docs=entry(friendly(), cwd="/"))
    folder = write(home / "one" / ".mcp.json", docs=entry(friendly()), theirs=entry(friendly()))
    core.workspace.trust.decide(folder, True, until_quit=True)
    core.first_folder = folder
    await core.start()
    await allowed(core, "docs", "theirs")
    loaded = [await tool(core, "theirs.add"), await tool(core, "docs.add")]
    assert [core.catalog.current(each) for each in loaded] == [None, None]
    await core.open_folder(None)
    refused = [core.catalog.current(each) for each in loaded]
    # The own server of the name is another one, however alike the tools are.
    assert [each and each.code for each in refused] == ["server_unknown", "tool_changed"]
    await core.open_folder(folder)
    assert [core.catalog.current(each) for each in loaded] == [None, None]


async def test_servers_run_in_the_open_folder(core: Core, home: Path) -> None:
    folder = home / "with notes"
    folder.mkdir()
    (folder / "note.txt").write_text("found")
    write(core.servers_file, files=entry(real_servers.filesystem(Path("."))))
    core.first_folder = folder
    await core.start()
    await allowed(core, "files")
    result = await core.host.connection("files").call_tool("read_text_file", {"path": str(folder / "note.txt")})
    assert text(result) == "found"


async def test_a_trusted_file_that_changes_asks_for_its_new_command_before_it_starts(core: Core, home: Path) -> None:
    file = home / "one" / ".mcp.json"
    folder = write(file, theirs=entry(friendly()))
    core.workspace.trust.decide(folder, True, until_quit=True)
    core.first_folder = folder
    await core.start()
    await allowed(core, "theirs")
    write(file, theirs=entry([*friendly(), "--more"], start="launch"), new=entry(["./new"], start="launch"))
    await core.reload_servers()
    assert status(core) == {"theirs": "needs_consent", "new": "needs_consent"}
    assert await failure(core.host.connection("theirs").connect()) == "consent_required"


async def test_revoking_ends_the_folders_servers_also_when_the_own_file_cannot_be_read(core: Core, home: Path) -> None:
    folder = write(home / "one" / ".mcp.json", theirs=entry(friendly()))
    core.servers_file.parent.mkdir(parents=True)
    core.servers_file.write_text("{")
    core.workspace.trust.decide(folder, True, until_quit=False)
    core.first_folder = folder
    await core.start()
    await allowed(core, "theirs")
    theirs = core.host.connections["theirs"]
    await core.revoke_trust(folder)
    assert theirs.state.status == "idle" and status(core) == {}
    assert [fault.code for fault in core.host.faults] == ["configuration_unreadable"]


async def test_a_file_that_cannot_be_read_any_more_leaves_the_servers_as_they_were(core: Core) -> None:
    write(core.servers_file, docs=entry(friendly()))
    await core.start()
    await allowed(core, "docs")
    core.servers_file.write_text("{")
    await core.reload_servers()
    assert [fault.code for fault in core.host.faults] == ["configuration_unreadable"]
    assert status(core) == {"docs": "connected"}
    write(core.servers_file, docs=entry(friendly()))
    await core.reload_servers()
    assert (core.host.faults, status(core)) == ((), {"docs": "connected"})


async def test_disabling_and_enabling_change_the_file_that_the_server_comes_from(core: Core, home: Path) -> None:
    write(core.servers_file, docs=entry(friendly(), later="kept"), mine=entry(friendly(), later="kept"))
    folder = write(home / "one" / ".mcp.json", docs=entry(friendly()))
    core.workspace.trust.decide(folder, True, until_quit=True)
    core.first_folder = folder
    await core.start()
    await allowed(core, "mine")

    def entries(file: Path) -> dict[str, Any]:
        return json.loads(file.read_text())["mcpServers"]

    before = entries(core.servers_file)
    for name in ("docs", "mine"):
        await core.set_disabled(name, True)
    assert status(core) == {"docs": "disabled", "mine": "disabled"}
    assert entries(folder / ".mcp.json")["docs"]["disabled"] is True
    assert entries(core.servers_file) == {"docs": before["docs"], "mine": {**before["mine"], "disabled": True}}
    await core.set_disabled("mine", False)
    assert len(await core.host.connection("mine").list_tools()) > 1
    with pytest.raises(AssistantError) as raised:
        await core.set_disabled("nobody", True)
    assert raised.value.diagnostic.code == "server_unknown"


async def test_a_first_folder_that_is_gone_is_told_and_everything_else_starts(core: Core, home: Path) -> None:
    write(core.servers_file, docs=entry(friendly()))
    core.first_folder = home / "gone"
    await core.start()
    assert core.folder_fault is not None and core.folder_fault.code == "folder_unavailable"
    assert (core.workspace.folder, status(core)) == (None, {"docs": "needs_consent"})
