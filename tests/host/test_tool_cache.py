"""Tools that are kept on disk: found without their server, never called on the strength of it, forgotten when they change."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import mcp_types
import pytest

from desktop.errors import AssistantError
from desktop.host.access import ServerAccess
from desktop.host.catalog import ServerCatalog
from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.list_reading import Keeping
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.host.tool_cache import ToolCache
from desktop.paths import Paths
from tests.host.conftest import records, text, until
from tests.host.test_catalog import (
    Clock,
    ScriptedConnection,
    ScriptedHost,
    identifiers,
    looked_up,
    mcp_tool,
    server,
)
from tests.servers.running import friendly, hostile

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
HINTS = mcp_types.ToolAnnotations(title="Reader", read_only_hint=True)
TOOL = mcp_tool("read_file", "Reads it", SCHEMA, output_schema={"type": "object"}, annotations=HINTS)


class Catalogs:
    """Catalogs over the same folder, as of one run of Deskhand after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.made: list[ServerCatalog] = []

    def __call__(self, *connections: ScriptedConnection, cache: ToolCache | None = None) -> ServerCatalog:
        host = cast("Host", ScriptedHost(connections))
        self.made.append(ServerCatalog(host, cache=cache or ToolCache(self.folder), clock=self.clock))
        return self.made[-1]

    def file(self, connection: ScriptedConnection) -> Path:
        return self.folder / f"{connection.definition.identity}.json"

    async def keep(self, connection: ScriptedConnection) -> Path:
        """Has a server's tools listed and kept."""
        catalog = self(connection)
        await catalog.tools(connection.definition.name)
        await until(self.file(connection).exists)
        return self.file(connection)


@pytest.fixture
async def catalogs(tmp_path: Path) -> AsyncIterator[Catalogs]:
    catalogs = Catalogs(tmp_path / "cache" / "tools")
    yield catalogs
    for catalog in catalogs.made:
        await catalog.close()


def broken(name: str = "files", **definition: Any) -> ScriptedConnection:
    return server(name, faults={"connect": "connection_failed"}, definition=definition)


# Found without a server


async def test_kept_tools_are_found_and_looked_up_although_the_server_can_not_be_reached(catalogs: Catalogs) -> None:
    first = catalogs(server("files", TOOL))
    (listed,) = await first.tools("files")
    await until(catalogs.file(broken()).exists)
    gone = broken()
    second = catalogs(gone)
    assert identifiers((await second.search("read file", kind="tools")).candidates) == ["files.read_file"]
    assert await looked_up(second, "files.read_file") == listed
    assert gone.connects == 0


async def test_kept_tools_are_known_without_a_search_once_they_are_loaded(catalogs: Catalogs) -> None:
    await catalogs.keep(server("files", TOOL))
    catalog = catalogs(gone := broken())
    assert catalog.entries() == []
    await catalog.load_kept()
    assert identifiers(catalog.entries()) == ["files.read_file"]
    assert not catalog.freshness("files", "tool").live
    assert gone.connects == 0


async def test_a_server_that_failed_is_named_for_what_is_not_kept_alone(catalogs: Catalogs) -> None:
    await catalogs.keep(server("files", TOOL))
    catalog = catalogs(broken())
    for _ in range(2):  # the second time it is left alone, having failed lately
        found = await catalog.search("read file")
        assert identifiers(found.candidates) == ["files.read_file"]
        assert [names for _, names in found.not_searched] == [("resources", "templates", "prompts")]


async def test_the_file_is_private_named_by_the_identity_and_holds_what_the_server_said_alone(
    catalogs: Catalogs,
) -> None:
    secret = {"env": {"TOKEN": "hunter2"}, "args": ("--password", "hunter2")}
    connection = server("files", TOOL, definition=secret)
    file = await catalogs.keep(connection)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == [f"{connection.definition.identity}.json"]
    assert "hunter2" not in file.read_text()
    (tool,) = json.loads(file.read_text())["tools"]
    assert tool.keys() == {"name", "description", "inputSchema", "outputSchema", "annotations"}


async def test_the_definition_filters_what_is_kept_and_other_filters_have_it_listed_anew(catalogs: Catalogs) -> None:
    offered = [TOOL, mcp_tool("delete_file")]
    await catalogs.keep(server("files", *offered, definition={"exclude_tools": ("delete*",)}))
    same = broken(exclude_tools=("delete*",))
    assert [tool.name for tool in await catalogs(same).tools("files")] == ["read_file"]
    other = server("files", *offered)
    assert [tool.name for tool in await catalogs(other).tools("files")] == ["read_file", "delete_file"]
    assert other.connects == 1


async def test_a_tool_that_is_newer_than_the_file_is_looked_up_on_the_server(catalogs: Catalogs) -> None:
    await catalogs.keep(server("files", TOOL))
    now = server("files", TOOL, mcp_tool("write_file"))
    assert (await looked_up(catalogs(now), "files.write_file")).name == "write_file"
    assert now.asked == ["tools"]


async def test_a_server_that_is_removed_while_its_tools_are_looked_up_is_no_fault(catalogs: Catalogs) -> None:
    connection = server("files", TOOL)
    connection.gate.clear()
    catalog = catalogs(connection)
    looking = asyncio.create_task(catalog.look_up(["files.gone"]))
    await until(lambda: connection.asked)
    cast("ScriptedHost", catalog._host).change()
    (lookup,) = await looking
    assert lookup.diagnostic is not None and lookup.diagnostic.code == "cancelled"


async def test_a_file_is_good_for_a_day(catalogs: Catalogs) -> None:
    file = await catalogs.keep(server("files", TOOL))
    definition = server("files").definition
    for age, is_used in ((24 * 3600 - 60, True), (24 * 3600 + 60, False), (-3600, False)):
        cache = ToolCache(catalogs.folder, clock=lambda age=age: file.stat().st_mtime + age)
        assert (cache.read(definition) is not None) is is_used


def spoil(file: Path, how: str) -> None:
    content = file.read_bytes()
    file.unlink()
    if how == "link":
        elsewhere = file.with_name("elsewhere")
        elsewhere.write_bytes(content)
        file.symlink_to(elsewhere)
    elif how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    elif how == "large":
        file.write_bytes(content + b" " * 4 * 1024 * 1024)
    elif how == "many":
        kept = json.loads(content)
        file.write_text(json.dumps({**kept, "tools": [{"name": f"{n}", "inputSchema": {}} for n in range(10_001)]}))
    else:
        file.write_text(how)


SPOILT = ["link", "pipe", "folder", "large", "many", "", "{", "[]", '{"tools": 3}', "[" * 100_000, "\ud7ff"]


@pytest.mark.parametrize("how", SPOILT, ids=lambda how: repr(how[:12]))
async def test_a_file_that_is_not_right_counts_as_none(catalogs: Catalogs, how: str) -> None:
    spoil(await catalogs.keep(server("files", TOOL)), how)
    connection = server("files", mcp_tool("new"))
    async with asyncio.timeout(30):
        assert [tool.name for tool in await catalogs(connection).tools("files")] == ["new"]


@pytest.mark.parametrize("how", ["link", "pipe"])
async def test_what_lies_in_the_files_place_is_replaced_and_not_written_to(catalogs: Catalogs, how: str) -> None:
    file = await catalogs.keep(server("files", TOOL))
    spoil(file, how)
    await catalogs(server("files", mcp_tool("new"))).tools("files")
    await until(lambda: not file.is_symlink() and file.is_file())
    assert json.loads(file.read_text())["tools"][0]["name"] == "new"
    if how == "link":
        assert "read_file" in file.with_name("elsewhere").read_text()


@pytest.mark.parametrize("tools", [[mcp_tool("x", "d" * 5_000_000)], [mcp_tool(f"t{n}") for n in range(10_001)]])
async def test_more_than_4_mib_or_10000_tools_are_not_written(tmp_path: Path, tools: list[mcp_types.Tool]) -> None:
    definition = server("big").definition
    ToolCache(tmp_path / "tools").write(definition, tools, None, lambda: True)
    assert not (tmp_path / "tools").exists()


async def test_a_folder_that_can_not_be_written_is_a_warning(catalogs: Catalogs) -> None:
    catalogs.folder.parent.mkdir(parents=True)
    catalogs.folder.write_text("a file in the folder's place")
    catalog = catalogs(server("files", TOOL))
    assert identifiers((await catalog.search("read file")).candidates) == ["files.read_file"]
    async with asyncio.timeout(30):
        while not (found := await catalog.search("read file")).warnings:
            pass
    assert found.not_searched == ()
    assert [warning.split(". ")[0] for warning in found.warnings] == ["files: its tools are not kept"]


async def test_a_list_that_may_not_be_whole_is_not_kept_and_what_was_is_removed(catalogs: Catalogs) -> None:
    file = await catalogs.keep(server("files", TOOL))
    connection = server("files", TOOL, keeping={"tool": Keeping(on_disk=False)})
    catalog = catalogs(connection)
    await catalog.listed("files", "tool", live=True)
    await until(lambda: not file.exists())


async def test_a_servers_own_lifetime_shortens_ours_and_never_lengthens_it(catalogs: Catalogs) -> None:
    keeping = {"tool": Keeping(lifetime=10.0), "resource": Keeping(lifetime=9000.0)}
    connection = server("files", TOOL, keeping=keeping)
    catalog = catalogs(connection)
    for seconds, tools, resources in ((0, 1, 1), (9, 1, 1), (2, 2, 1), (290, 3, 2)):
        catalogs.clock.now += seconds
        await catalog.search("x")
        assert (connection.asked.count("tools"), connection.asked.count("resources")) == (tools, resources)


async def test_on_disk_tools_are_good_no_longer_than_their_server_says(catalogs: Catalogs) -> None:
    file = await catalogs.keep(server("files", TOOL, keeping={"tool": Keeping(lifetime=10.0)}))
    for age, found in ((9, ["files.read_file"]), (11, [])):
        cache = ToolCache(catalogs.folder, clock=lambda age=age: file.stat().st_mtime + age)
        assert (
            identifiers((await catalogs(broken(), cache=cache).search("read file", kind="tools")).candidates) == found
        )


# Forgotten when they change


async def test_a_notice_drops_memory_and_file_and_the_new_list_is_kept(catalogs: Catalogs) -> None:
    connection = server("files", TOOL)
    file = await catalogs.keep(connection)
    connection.offered["tools"] = [mcp_tool("new")]
    connection.list_changed.emit("tools")
    assert catalogs.made[0].entries() == []
    assert [tool.name for tool in await catalogs.made[0].tools("files")] == ["new"]
    await until(lambda: file.exists() and "new" in file.read_text())
    assert "read_file" not in file.read_text()


async def test_after_a_notice_the_file_is_no_refuge_when_the_list_can_not_be_read(catalogs: Catalogs) -> None:
    connection = server("files", TOOL)
    file = await catalogs.keep(connection)
    connection.faults["tools"] = "server_error"
    connection.list_changed.emit("tools")
    found = await catalogs.made[0].search("read file")
    assert (found.candidates, [names for _, names in found.not_searched]) == ((), [("tools",)])
    await until(lambda: not file.exists())


async def test_a_list_that_changed_while_it_waited_to_be_written_is_not_kept(tmp_path: Path) -> None:
    cache, definition = ToolCache(tmp_path / "tools"), server("files").definition
    current, asked = threading.Event(), threading.Event()
    current.set()

    def is_current() -> bool:
        asked.set()
        return current.is_set()

    cache.write(definition, [TOOL], None, is_current)
    with cache._lock:  # another write is under way
        writing = asyncio.create_task(asyncio.to_thread(cache.write, definition, [mcp_tool("stale")], None, is_current))
        asked.clear()
        current.clear()
    await writing
    assert asked.is_set()
    kept = cache.read(definition)
    assert kept is not None
    assert identifiers(kept[0].entries) == ["files.read_file"]


async def test_a_notice_of_resources_leaves_the_file(catalogs: Catalogs) -> None:
    connection = server("files", TOOL)
    file = await catalogs.keep(connection)
    before = file.stat().st_mtime_ns
    connection.list_changed.emit("resources")
    await catalogs.made[0].search("x")
    assert file.stat().st_mtime_ns == before
    assert connection.asked.count("tools") == 1


async def test_a_notice_of_a_connection_that_is_over_leaves_the_file(catalogs: Catalogs) -> None:
    connection = server("files", TOOL)
    file = await catalogs.keep(connection)
    await catalogs.made.pop(0).close()
    connection.list_changed.emit("tools")
    assert [tool.name for tool in await catalogs(broken()).tools("files")] == ["read_file"]
    assert file.exists()


async def test_the_file_goes_with_the_server_and_stays_while_it_is_disabled(catalogs: Catalogs) -> None:
    connection = server("files", TOOL)
    file = await catalogs.keep(connection)
    host = cast("ScriptedHost", catalogs.made[0]._host)
    host.change(ScriptedConnection(replace(connection.definition, disabled=True)))
    host.change(again := broken())
    assert [tool.name for tool in await catalogs.made[0].tools("files")] == ["read_file"]
    assert again.connects == 0
    host.change()
    await until(lambda: not file.exists())


# How old it is


async def test_freshness_tells_live_from_kept_and_since_when(catalogs: Catalogs) -> None:
    file = await catalogs.keep(server("files", TOOL))
    hour_ago = time.time() - 3600
    os.utime(file, (hour_ago, hour_ago))
    catalog = catalogs(server("files", TOOL))
    assert (catalog.freshness("files", "tool").live, catalog.freshness("files", "tool").listed_at) == (False, None)
    await catalog.tools("files")
    kept = catalog.freshness("files", "tool")
    assert (kept.live, kept.listed_at) == (False, pytest.approx(hour_ago, abs=30))
    await catalog.listed("files", "tool", live=True)
    live = catalog.freshness("files", "tool")
    assert (live.live, live.listed_at) == (True, pytest.approx(time.time(), abs=30))
    assert catalog.freshness("none", "tool").listed_at is None


# Over real servers


class Run:
    """A run of Deskhand's host, with the tools of earlier ones on disk."""

    def __init__(self, paths: Paths, command: list[str]) -> None:
        definition = ServerDefinition("odd", "stdio", command=command[0], args=tuple(command[1:]))
        self.host = Host(
            Configuration((definition,)),
            paths=paths,
            read_large=None,
            builtin=None,
            consent=Consent.for_everything(),
        )
        self.file = paths.cache / "tools" / f"{definition.identity}.json"
        self.catalog = ServerCatalog(self.host, cache=ToolCache(paths.cache / "tools"))
        self.access = ServerAccess(self.host, self.catalog)

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.catalog.close()
        await self.host.close()


def ignore(*_: object) -> None:
    pass


async def test_a_kept_tool_is_listed_once_by_its_server_before_the_first_call(paths: Paths, tmp_path: Path) -> None:
    record = tmp_path / "record"
    command = hostile("--record", str(record))
    async with Run(paths, command) as run:
        await run.catalog.tools("odd")
        await until(run.file.exists)
    async with Run(paths, command) as run:
        echo = await looked_up(run.catalog, "odd.echo")
        assert len(records(record, "started")) == 1
        for _ in range(3):
            assert text(await run.access.call_tool(echo, {"text": "x"}, ignore)) == "x"
    methods = [request["method"] for request in records(record, "request")]
    assert (methods.count("tools/list"), methods.count("tools/call")) == (2, 3)


@pytest.mark.parametrize("change", ["change", "remove"])
async def test_a_kept_tool_that_the_server_offers_otherwise_or_no_more_is_refused_before_the_call(
    paths: Paths, tmp_path: Path, change: str
) -> None:
    record = tmp_path / "record"
    command = hostile("--record", str(record))
    async with Run(paths, command) as run:
        await run.catalog.tools("odd")
        await until(run.file.exists)
        kept = json.loads(run.file.read_text())
        for tool in kept["tools"]:
            if tool["name"] == "echo":
                tool.update({"description": "As it was yesterday"} if change == "change" else {"name": "gone"})
        run.file.write_text(json.dumps(kept))
    async with Run(paths, command) as run:
        tool = await looked_up(run.catalog, "odd.echo" if change == "change" else "odd.gone")
        with pytest.raises(AssistantError) as raised:
            await run.access.call_tool(tool, {"text": "x"}, ignore)
        assert raised.value.diagnostic.code == "tool_changed"
        assert records(record, "call") == []


async def test_what_the_sdks_servers_say_by_themselves_keeps_nothing_from_being_kept(paths: Paths) -> None:
    async with Run(paths, friendly()) as run:  # "private", and a lifetime of 0
        await run.catalog.tools("odd")
        assert run.host.connection("odd").keeping["tool"] == Keeping(lifetime=None, on_disk=True)
        await until(run.file.exists)
