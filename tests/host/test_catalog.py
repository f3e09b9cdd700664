"""The catalog over a host's servers: what it lists and when, what it says of those it can't list, and what is still current."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import mcp_types
import psutil
import pytest

from desktop.assistant.results import ResultStore
from desktop.catalog_entries import PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition
from desktop.errors import AssistantError, Diagnostic
from desktop.host.builtin_server import builtin_server
from desktop.host.catalog import ServerCatalog
from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.list_reading import Keeping
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.host.server_state import Failure, ServerState
from desktop.paths import Paths
from desktop.signals import Signal
from tests.host.conftest import LONGEST_WAIT, until
from tests.servers.running import friendly, hostile

pytestmark = pytest.mark.anyio


def mcp_tool(name: str, description: str = "", schema: Any = None, **more: Any) -> mcp_types.Tool:
    return mcp_types.Tool(name=name, description=description, input_schema=schema or {"type": "object"}, **more)


@dataclass
class ScriptedConnection:
    """A connection whose every step a test decides.

    Attributes:
        gate: Each list waits for it after it was asked for.
        asked: The lists that were asked for, in order.
        meanwhile: Called while a list is being read, once.
    """

    definition: ServerDefinition
    offered: dict[str, list[Any]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    state: ServerState = field(default_factory=lambda: ServerState("idle"))
    asked: list[str] = field(default_factory=list)
    connects: int = 0
    keeping: dict[str, Keeping] = field(default_factory=dict)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    meanwhile: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.state_changed: Signal[()] = Signal()
        self.list_changed: Signal[str] = Signal()
        self.gate.set()

    def become(self, state: ServerState) -> None:
        self.state = state
        self.state_changed.emit()

    def fail(self, code: str, retry_in: float | None = None) -> None:
        diagnostic = Diagnostic(code, "connect", self.definition.name)
        self.become(ServerState("failed", Failure("handshake", diagnostic), retry_in=retry_in))

    async def _list(self, kind: str) -> list[Any]:
        self.asked.append(kind)
        if self.state.status != "connected":
            if self.state.status != "connecting":
                self.connects += 1
                self.become(ServerState("connecting"))
            await asyncio.sleep(0)  # connecting takes a moment: whoever asks meanwhile shares the attempt
            await self.gate.wait()
            if "connect" in self.faults:
                if self.state.status != "failed":
                    self.fail(self.faults["connect"])
                raise AssistantError(self.faults["connect"], operation="connect", server=self.definition.name)
            if self.state.status != "connected":
                self.become(ServerState("connected", title=f"{self.definition.name} title"))
        await self.gate.wait()
        offered = list(self.offered.get(kind, ()))
        if self.meanwhile is not None:
            now, self.meanwhile = self.meanwhile, None
            now()
        if kind in self.faults:
            raise AssistantError(self.faults[kind], operation="search", server=self.definition.name)
        return offered

    async def list_tools(self) -> list[Any]:
        return [tool for tool in await self._list("tools") if self.definition.offers(tool.name)]

    async def list_resources(self) -> list[Any]:
        return await self._list("resources")

    async def list_resource_templates(self) -> list[Any]:
        return await self._list("templates")

    async def list_prompts(self) -> list[Any]:
        return await self._list("prompts")


class ScriptedHost:
    """A host of scripted connections."""

    def __init__(self, connections: Iterable[ScriptedConnection]) -> None:
        self.connections = {connection.definition.name: connection for connection in connections}
        self.servers_changed: Signal[()] = Signal()
        self.faults: tuple[Diagnostic, ...] = ()

    def connection(self, name: str) -> ScriptedConnection:
        return cast("ScriptedConnection", Host.connection(cast("Host", self), name))

    def change(self, *connections: ScriptedConnection) -> None:
        self.connections = {connection.definition.name: connection for connection in connections}
        self.servers_changed.emit()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


MakeCatalog = Callable[..., ServerCatalog]


def server(name: str, *tools: Any, **more: Any) -> ScriptedConnection:
    definition = ServerDefinition(name, "stdio", command=name, **more.pop("definition", {}))
    return ScriptedConnection(definition, {"tools": list(tools), **more.pop("offered", {})}, **more)


@pytest.fixture
async def make() -> AsyncIterator[MakeCatalog]:
    made: list[ServerCatalog] = []

    def make(host: Any, **given: Any) -> ServerCatalog:
        made.append(ServerCatalog(host, **given))
        return made[-1]

    yield make
    for catalog in made:
        await catalog.close()


def identifiers(entries: Iterable[Any]) -> list[str]:
    return [f"{entry.server}.{entry.name}" for entry in entries]


async def failure(awaitable: Any) -> str:
    with pytest.raises(AssistantError) as raised:
        async with asyncio.timeout(LONGEST_WAIT):
            await awaitable
    return raised.value.diagnostic.code


# What is listed, and when


async def test_nothing_is_listed_before_somebody_needs_it(make: MakeCatalog) -> None:
    connection = server("files", mcp_tool("read_file"))
    catalog = make(ScriptedHost([connection]))
    assert (catalog.entries(), connection.asked) == ([], [])
    found = await catalog.search("read file")
    assert identifiers(found.candidates) == ["files.read_file"]
    assert identifiers(catalog.entries()) == ["files.read_file"]
    await catalog.search("something else")
    assert sorted(connection.asked) == ["prompts", "resources", "templates", "tools"]


async def test_the_kind_decides_what_is_listed_and_found(make: MakeCatalog) -> None:
    offered = {
        "resources": [mcp_types.Resource(uri="x://notes", name="notes")],
        "templates": [mcp_types.ResourceTemplate(uri_template="x://notes/{id}", name="note")],
        "prompts": [mcp_types.Prompt(name="notes")],
    }
    connection = server("files", mcp_tool("notes"), offered=offered)
    catalog = make(ScriptedHost([connection]))
    assert [type(entry) for entry in (await catalog.search("notes", kind="prompts")).candidates] == [PromptEntry]
    assert connection.asked == ["prompts"]
    resources = (await catalog.search("notes", kind="resources")).candidates
    assert {type(entry) for entry in resources} == {ResourceEntry, TemplateEntry}
    assert "tools" not in connection.asked
    assert [type(entry) for entry in (await catalog.search("notes", kind="tools")).candidates] == [ToolDefinition]
    assert len((await catalog.search("notes", limit=50)).candidates) == 4


async def test_two_searches_at_the_same_time_share_one_listing(make: MakeCatalog) -> None:
    connection = server("files", mcp_tool("read_file"))
    catalog = make(ScriptedHost([connection]))
    both = await asyncio.gather(catalog.search("read"), catalog.search("file"))
    assert [identifiers(found.candidates) for found in both] == [["files.read_file"]] * 2
    assert (connection.connects, connection.asked.count("tools")) == (1, 1)


async def test_one_who_stops_waiting_does_not_end_the_listing_of_others(make: MakeCatalog) -> None:
    connection = server("files", mcp_tool("read_file"))
    connection.gate.clear()
    catalog = make(ScriptedHost([connection]))
    first, second = (asyncio.create_task(catalog.search("read")) for _ in range(2))
    await until(lambda: connection.asked)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    connection.gate.set()
    assert identifiers((await second).candidates) == ["files.read_file"]
    assert connection.asked.count("tools") == 1


async def test_a_listing_that_nobody_waits_for_any_more_goes_on(make: MakeCatalog) -> None:
    connection = server("files", mcp_tool("read_file"))
    connection.gate.clear()
    catalog = make(ScriptedHost([connection]))
    search = asyncio.create_task(catalog.search("read"))
    await until(lambda: connection.asked)
    search.cancel()
    connection.gate.set()
    await until(catalog.entries)
    assert connection.asked.count("tools") == 1


async def test_at_most_four_servers_are_asked_at_the_same_time(make: MakeCatalog) -> None:
    connections = [server(f"s{number}", mcp_tool("tool")) for number in range(7)]
    for connection in connections:
        connection.gate.clear()
    catalog = make(ScriptedHost(connections))
    search = asyncio.create_task(catalog.search("tool tools", limit=50))
    most = 0
    while not search.done():
        await asyncio.sleep(0)
        waiting = [each for each in connections if each.asked and not each.gate.is_set()]
        most = max(most, len(waiting))
        if len(waiting) == min(4, sum(not each.gate.is_set() for each in connections)) and waiting:
            waiting[0].gate.set()
    assert most == 4
    assert all(each.connects == 1 for each in connections)


async def test_resources_and_prompts_are_read_again_after_five_minutes_and_tools_are_not(make: MakeCatalog) -> None:
    connection, clock = server("files", mcp_tool("read_file")), Clock()
    catalog = make(ScriptedHost([connection]), clock=clock)
    await catalog.search("x")
    clock.now += 299
    await catalog.search("x")
    assert connection.asked.count("resources") == 1
    clock.now += 2
    await catalog.search("x")
    assert {kind: connection.asked.count(kind) for kind in set(connection.asked)} == {
        "tools": 1,
        "resources": 2,
        "templates": 2,
        "prompts": 2,
    }


async def test_thousands_of_tools_do_not_stop_the_loop(make: MakeCatalog) -> None:
    properties = {f"parameter_{number}": {"type": "string", "description": "What it is for"} for number in range(8)}
    tools = [
        mcp_tool(f"tool_{n:04}", "Does the thing " * 5, {"type": "object", "properties": properties})
        for n in range(5000)
    ]
    catalog = make(ScriptedHost([server("big", *tools)]))
    gaps = [0.0]

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            gaps.append(time.perf_counter() - before)

    ticking = asyncio.create_task(tick())
    found = await catalog.search("tool 4711")
    ticking.cancel()
    assert found.candidates[0].name == "tool_4711"
    assert len(catalog.entries()) == 5000
    gaps.sort()
    assert gaps[-1] < 0.25, gaps[-5:]  # the machine of a test may be busy: unthreaded, it is a second


# What is admitted


async def test_what_can_not_be_called_or_read_is_left_out_with_one_warning_a_catalog(make: MakeCatalog) -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(3000):
        deep = {"type": "object", "properties": {"x": deep}}
    tools = [
        mcp_tool("good"),
        mcp_tool("good", "again"),
        mcp_tool(""),
        mcp_tool("x" * 513),
        mcp_tool("array", schema={"type": "array"}),
        mcp_tool("no_type", schema={"properties": {}}),
        mcp_tool("large", schema={"type": "object", "description": "x" * 65536}),
        mcp_tool("not_json", schema={"type": "object", "default": float("nan")}),
        mcp_tool("surrogate", schema={"type": "object", "description": "\ud800"}),
        mcp_tool("deep", schema=deep),
    ]
    offered = {
        "resources": [
            mcp_types.Resource(uri="x://good", name="good", size=-1),
            mcp_types.Resource(uri="x://good", name="again"),
            mcp_types.Resource(uri="relative/path", name="relative"),
            mcp_types.Resource(uri="x://blank", name=" \n"),
        ],
        "templates": [
            mcp_types.ResourceTemplate(uri_template="x://{good}", name="good"),
            mcp_types.ResourceTemplate(uri_template="x://{", name="open"),
        ],
        "prompts": [
            mcp_types.Prompt(name="good"),
            mcp_types.Prompt(name="two\nlines"),
            mcp_types.Prompt(name="twins", arguments=[mcp_types.PromptArgument(name="a")] * 2),
        ],
    }
    catalog = make(ScriptedHost([server("odd", *tools, offered=offered)]))
    found = await catalog.search("good", limit=50)
    assert {(type(entry), entry.name) for entry in catalog.entries()} == {
        (kind, "good") for kind in (ToolDefinition, ResourceEntry, TemplateEntry, PromptEntry)
    }
    assert found.not_searched == ()
    assert [warning.split(" were")[0] for warning in found.warnings] == [
        "odd: 9 tools",
        "odd: 3 resources",
        "odd: 1 templates",
        "odd: 2 prompts",
    ]


async def test_a_tool_keeps_what_its_server_said_of_it(make: MakeCatalog) -> None:
    schema = {"type": "object", "properties": {"b": {"$ref": "#/$defs/x"}, "a": {}}, "$defs": {"x": {"const": 1.50}}}
    listed = mcp_tool(
        "get.issue",
        "Gets\x1b[0m it",
        schema,
        title="Get",
        output_schema={"type": "object"},
        annotations=mcp_types.ToolAnnotations(title="Other", read_only_hint=True, destructive_hint=None),
    )
    connection = server("hub", listed)
    (tool,) = await make(ScriptedHost([connection])).tools("hub")
    assert tool.identifier == "hub.get.issue"
    assert tool.native_name.startswith("mcp__hub__get_issue__")
    assert (tool.description, tool.title) == ("Gets\x1b[0m it", "Get")
    assert json.dumps(tool.input_schema) == json.dumps(schema)
    assert tool.output_schema == {"type": "object"}
    assert tool.annotations == {"readOnlyHint": True}
    assert tool.identity == connection.definition.identity


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Another"},
        {"title": "Another"},
        {"input_schema": {"type": "object", "properties": {}}},
        {"output_schema": {"type": "object"}},
        {"annotations": mcp_types.ToolAnnotations(read_only_hint=True)},
        {"description": "x" * 9000 + "y"},
    ],
    ids=lambda change: f"{next(iter(change))}{len(str(change)) // 1000 or ''}",
)
async def test_every_part_of_a_definition_is_in_its_fingerprint(make: MakeCatalog, change: dict[str, Any]) -> None:
    before = mcp_tool("tool", "x" * 9000)
    after = before.model_copy(update=change)
    (one,) = await make(ScriptedHost([server("s", before)])).tools("s")
    (same,) = await make(ScriptedHost([server("s", before.model_copy(deep=True))])).tools("s")
    (other,) = await make(ScriptedHost([server("s", after)])).tools("s")
    assert one.fingerprint == same.fingerprint != other.fingerprint


# What could not be searched


async def test_a_broken_server_is_named_once_and_the_others_are_found(make: MakeCatalog) -> None:
    broken = server("broken", faults={"connect": "connection_failed"})
    catalog = make(ScriptedHost([broken, server("files", mcp_tool("read_file"))]))
    found = await catalog.search("read file")
    assert identifiers(found.candidates) == ["files.read_file"]
    ((diagnostic, catalogs),) = found.not_searched
    assert (diagnostic.code, diagnostic.server) == ("connection_failed", "broken")
    assert catalogs == ("tools", "resources", "templates", "prompts")


async def test_a_catalog_that_can_not_be_listed_leaves_the_others_and_is_named(make: MakeCatalog) -> None:
    offered = {"resources": [mcp_types.Resource(uri="x://notes", name="notes")]}
    one = server("one", mcp_tool("notes"), offered=offered, faults={"prompts": "server_error", "templates": "timeout"})
    catalog = make(ScriptedHost([one]))
    found = await catalog.search("notes")
    assert len(found.candidates) == 2
    assert [(diagnostic.code, catalogs) for diagnostic, catalogs in found.not_searched] == [
        ("timeout", ("templates",)),
        ("server_error", ("prompts",)),
    ]
    one.faults.clear()
    assert (await catalog.search("notes")).not_searched == ()
    assert one.asked.count("tools") == 1


async def test_a_server_that_failed_lately_is_left_alone_for_half_a_minute(make: MakeCatalog) -> None:
    broken, clock = server("broken", mcp_tool("fix"), faults={"connect": "connection_failed"}), Clock()
    catalog = make(ScriptedHost([broken]), clock=clock)
    await catalog.search("x")
    clock.now += 29
    ((diagnostic, catalogs),) = (await catalog.search("x", kind="tools")).not_searched
    assert (diagnostic.code, catalogs, broken.connects) == ("connection_failed", ("tools",), 1)
    broken.faults.clear()
    assert identifiers((await catalog.search("fix", server="broken")).candidates) == ["broken.fix"]
    broken.fail("server_exited")
    clock.now += 31
    broken.gate.set()
    assert identifiers((await catalog.search("fix")).candidates) == ["broken.fix"]


async def test_a_server_that_is_about_to_be_tried_by_itself_is_left_alone(make: MakeCatalog) -> None:
    dead, clock = server("dead"), Clock()
    catalog = make(ScriptedHost([dead]), clock=clock)
    dead.fail("server_exited", retry_in=16.0)
    clock.now += 100
    ((diagnostic, _),) = (await catalog.search("x")).not_searched
    assert (diagnostic.code, dead.connects) == ("server_exited", 0)


async def test_a_slow_server_is_named_and_found_the_next_time(make: MakeCatalog) -> None:
    slow = server("slow", mcp_tool("crawl"))
    slow.gate.clear()
    catalog = make(ScriptedHost([slow, server("files", mcp_tool("read_file"))]), patience=0.05)
    found = await catalog.search("read file crawl")
    assert identifiers(found.candidates) == ["files.read_file"]
    ((diagnostic, catalogs),) = found.not_searched
    assert (diagnostic.code, diagnostic.server, len(catalogs)) == ("busy", "slow", 4)
    slow.gate.set()
    await until(lambda: "slow.crawl" in identifiers(catalog.entries()))
    assert (await catalog.search("crawl")).not_searched == ()
    assert slow.connects == 1


async def test_a_disabled_server_is_no_part_of_the_catalog(make: MakeCatalog) -> None:
    off = server("off", mcp_tool("read_file"), definition={"disabled": True})
    on = server("on", mcp_tool("read_file"), definition={"description": "Files"})
    catalog = make(ScriptedHost([off, on]))
    assert [(entry.name, entry.description) for entry in catalog.servers()] == [("on", "Files")]
    assert identifiers((await catalog.search("read file")).candidates) == ["on.read_file"]
    assert await failure(catalog.search("read", server="off")) == "server_disabled"
    assert await failure(catalog.search("off.read_file")) == "server_disabled"
    assert await failure(catalog.search("read", server="none")) == "server_unknown"
    assert await failure(catalog.search("read", server="__class__")) == "server_unknown"
    assert off.asked == []


# Which servers are asked


@pytest.mark.parametrize(
    ("query", "kind", "asked"),
    [
        ("git.status", "all", {"git"}),
        ("mcp__git__status", "all", {"git"}),
        ("GIT.STATUS", "tools", {"git"}),
        ("git.status", "resources", {"git", "github"}),
        ("git. what changed", "all", {"git", "github"}),
        ("git", "all", {"git", "github"}),
        ("git://status", "all", {"git", "github"}),
    ],
)
async def test_an_identifier_contacts_the_server_it_names_alone(
    make: MakeCatalog, query: str, kind: Any, asked: set[str]
) -> None:
    connections = [server("git", mcp_tool("status")), server("github", mcp_tool("status"))]
    catalog = make(ScriptedHost(connections))
    await catalog.search(query, kind=kind)
    assert {each.definition.name for each in connections if each.asked} == asked


async def test_a_named_server_alone_is_asked_and_ranked(make: MakeCatalog) -> None:
    connections = [server("git", mcp_tool("status")), server("github", mcp_tool("status"))]
    catalog = make(ScriptedHost(connections))
    await catalog.search("status")
    assert identifiers((await catalog.search("github.status", server="git")).candidates) == ["git.status"]


async def test_the_limit_is_kept_between_1_and_50(make: MakeCatalog) -> None:
    catalog = make(ScriptedHost([server("s", *(mcp_tool(f"list_{number}") for number in range(60)))]))
    counts = [len((await catalog.search("list", limit=limit)).candidates) for limit in (0, 1, 50, 100)]
    assert counts == [1, 1, 50, 50]
    assert len((await catalog.search("list")).candidates) == 5


async def test_what_is_known_can_be_searched_without_asking_a_server(make: MakeCatalog) -> None:
    known, unknown = server("known", mcp_tool("read_file")), server("unknown", mcp_tool("read_file"))
    catalog = make(ScriptedHost([known, unknown]))
    await catalog.tools("known")
    found = await catalog.search_known("rea")
    assert identifiers(found.candidates) == ["known.read_file"]
    assert found.scores[0] > 0
    assert unknown.asked == []


# Looking tools up


async def test_tools_are_looked_up_exactly_on_the_servers_they_name_alone(make: MakeCatalog) -> None:
    git, other = server("git", mcp_tool("status"), mcp_tool("log")), server("other", mcp_tool("status"))
    catalog = make(ScriptedHost([git, other]))
    found = await catalog.look_up(["git.status", "mcp__git__status", "git.Status", "git.statsu", "weather.get"])
    assert [lookup.tool.identifier if lookup.tool else None for lookup in found] == [
        "git.status",
        "git.status",
        None,
        None,
        None,
    ]
    assert [lookup.diagnostic.code if lookup.diagnostic else None for lookup in found][2:] == ["tool_unknown"] * 3
    assert [lookup.near for lookup in found][2:] == [("git.status",), ("git.status",), ()]
    assert found[3].identifier == "git.statsu"
    assert (git.asked, other.asked) == (["tools"], [])


async def test_a_lookup_says_why_a_server_could_not_be_asked(make: MakeCatalog) -> None:
    broken = server("broken", faults={"connect": "connection_failed"})
    off = server("off", mcp_tool("x"), definition={"disabled": True})
    catalog = make(ScriptedHost([broken, off]))
    found = await catalog.look_up(["broken.x", "off.x"])
    assert [lookup.diagnostic and lookup.diagnostic.code for lookup in found] == [
        "connection_failed",
        "server_disabled",
    ]
    assert [lookup.diagnostic and lookup.diagnostic.server for lookup in found] == ["broken", "off"]


async def test_a_bare_name_is_near_to_the_known_tools_of_that_name(make: MakeCatalog) -> None:
    catalog = make(ScriptedHost([server("git", mcp_tool("create_issue")), server("hub", mcp_tool("create_issue"))]))
    await catalog.search("x")
    (lookup,) = await catalog.look_up(["create_isue"])
    assert lookup.near == ("git.create_issue", "hub.create_issue")


# What is still current


async def looked_up(catalog: ServerCatalog, identifier: str) -> ToolDefinition:
    (lookup,) = await catalog.look_up([identifier])
    assert lookup.tool is not None
    return lookup.tool


async def test_a_changed_tool_is_noticed_without_a_question_to_the_server(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("keep"), mcp_tool("change"), mcp_tool("go"))
    catalog = make(ScriptedHost([connection]))
    keep, change, go = [await looked_up(catalog, f"s.{name}") for name in ("keep", "change", "go")]
    assert [catalog.current(tool) for tool in (keep, change, go)] == [None] * 3
    connection.offered["tools"] = [mcp_tool("keep"), mcp_tool("change", "Now it deletes")]
    connection.list_changed.emit("tools")
    await until(lambda: catalog.current(go) is not None)
    asked = len(connection.asked)
    codes = [diagnostic and diagnostic.code for diagnostic in map(catalog.current, (keep, change, go))]
    assert codes == [None, "tool_changed", "tool_changed"]
    assert len(connection.asked) == asked


async def test_a_tool_of_a_server_that_is_disabled_removed_filtered_or_defined_anew_is_not_current(
    make: MakeCatalog,
) -> None:
    connection = server("s", mcp_tool("tool"))
    host = ScriptedHost([connection])
    catalog = make(host)
    tool = await looked_up(catalog, "s.tool")
    codes: list[str | None] = []
    for changes in (
        {"disabled": True},
        {"args": ("--other",)},
        {"exclude_tools": ("t*",)},
        {"description": "only words"},
    ):
        host.change(ScriptedConnection(replace(connection.definition, **changes), connection.offered))
        diagnostic = catalog.current(tool)
        codes.append(diagnostic and diagnostic.code)
    host.change()
    removed = catalog.current(tool)
    assert codes == ["server_disabled", "tool_changed", "tool_changed", None]
    assert removed is not None and removed.code == "server_unknown"


async def test_a_list_that_changed_while_it_was_read_is_read_again(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("old"))
    catalog = make(ScriptedHost([connection]))

    def change() -> None:
        connection.offered["tools"] = [mcp_tool("new")]
        connection.list_changed.emit("tools")

    connection.meanwhile = change
    both = await asyncio.gather(catalog.tools("s"), catalog.tools("s"))
    assert [[tool.name for tool in tools] for tools in both] == [["new"], ["new"]]
    assert connection.asked == ["tools", "tools"]


async def test_a_list_that_changes_whenever_it_is_read_is_used_as_it_was_read_last(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("x"))
    catalog = make(ScriptedHost([connection]))

    def change() -> None:
        connection.list_changed.emit("tools")
        connection.meanwhile = change

    connection.meanwhile = change
    assert [tool.name for tool in await catalog.tools("s")] == ["x"]
    assert connection.asked == ["tools"] * 3


async def test_notices_that_never_end_have_a_list_read_at_most_every_two_seconds(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("x"))
    catalog = make(ScriptedHost([connection]))
    await catalog.tools("s")
    began = time.monotonic()
    for reading in (2, 3):
        connection.list_changed.emit("tools")
        await until(lambda reading=reading: len(connection.asked) == reading)
    assert time.monotonic() - began >= 2


async def test_after_a_notice_nothing_stale_is_found_when_the_list_can_not_be_read(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("old"))
    catalog = make(ScriptedHost([connection]))
    await catalog.search("old")
    connection.faults["tools"] = "server_error"
    connection.list_changed.emit("tools")
    found = await catalog.search("old")
    assert (found.candidates, [catalogs for _, catalogs in found.not_searched]) == ((), [("tools",)])
    assert await failure(catalog.tools("s")) == "server_error"


async def test_a_notice_of_one_list_leaves_the_others(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("x"))
    catalog = make(ScriptedHost([connection]))
    await catalog.search("x")
    connection.list_changed.emit("resources")
    await catalog.search("x")
    counts = {kind: connection.asked.count(kind) for kind in set(connection.asked)}
    assert counts == {"tools": 1, "resources": 2, "templates": 2, "prompts": 1}


async def test_a_flood_of_notices_is_answered_by_one_listing_and_one_signal(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("x"))
    catalog = make(ScriptedHost([connection]))
    await catalog.tools("s")
    heard: list[str] = []
    await asyncio.sleep(0)
    catalog.changed.connect(heard.append)
    connection.offered["tools"] = [mcp_tool("y")]
    for _ in range(1000):
        connection.list_changed.emit("tools")
    await until(lambda: heard)
    assert identifiers(catalog.entries()) == ["s.y"]
    assert (connection.asked, heard) == (["tools", "tools"], ["s"])


async def test_notices_of_a_server_whose_lists_nobody_needed_ask_nothing(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("x"))
    catalog = make(ScriptedHost([connection]))
    connection.become(ServerState("connected"))
    heard: list[str] = []
    await asyncio.sleep(0)
    catalog.changed.connect(heard.append)
    connection.list_changed.emit("tools")
    await until(lambda: heard)
    assert connection.asked == []


async def test_what_a_dead_server_offered_is_forgotten_and_read_again_when_it_is_back(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("old"))
    catalog = make(ScriptedHost([connection]))
    await catalog.search("old")
    connection.fail("server_exited", retry_in=1.0)
    found = await catalog.search("old")
    assert (found.candidates, [diagnostic.code for diagnostic, _ in found.not_searched]) == ((), ["server_exited"])
    connection.offered["tools"] = [mcp_tool("new")]
    connection.become(ServerState("connected"))
    connection.list_changed.emit("tools")  # as a connection does when it is connected anew
    await until(lambda: identifiers(catalog.entries()) == ["s.new"])


async def test_the_signal_names_servers_that_come_and_go(make: MakeCatalog) -> None:
    host = ScriptedHost([server("a", mcp_tool("x"))])
    catalog = make(host)
    await catalog.tools("a")
    await asyncio.sleep(0)
    heard: list[str] = []
    catalog.changed.connect(heard.append)
    host.change(server("b", mcp_tool("y")))
    await asyncio.sleep(0)
    assert heard == ["a", "b"]
    assert identifiers((await catalog.search("x y")).candidates) == ["b.y"]


async def test_a_notice_of_a_connection_that_was_replaced_changes_nothing(make: MakeCatalog) -> None:
    old, new = server("s", mcp_tool("x")), server("s", mcp_tool("x"))
    host = ScriptedHost([old])
    catalog = make(host)
    host.change(new)
    await catalog.tools("s")
    old.list_changed.emit("tools")
    old.fail("server_exited")
    assert identifiers(catalog.entries()) == ["s.x"]


async def test_a_refresh_lists_everything_anew(make: MakeCatalog) -> None:
    connection = server("s", mcp_tool("old"))
    catalog = make(ScriptedHost([connection]))
    await catalog.search("x")
    connection.offered["tools"] = [mcp_tool("new")]
    await catalog.refresh("s")
    assert identifiers(catalog.entries()) == ["s.new"]
    connection.faults["prompts"] = "server_error"
    assert await failure(catalog.refresh("s")) == "server_error"
    assert identifiers(catalog.entries()) == ["s.new"]


async def test_whoever_waits_for_a_server_that_is_removed_hears_it(make: MakeCatalog) -> None:
    connection = server("s")
    connection.gate.clear()
    host = ScriptedHost([connection])
    waiting = asyncio.create_task(make(host).tools("s"))
    await until(lambda: connection.asked)
    host.change()
    assert await failure(waiting) == "cancelled"


# Over real servers


async def no_conversations(query: str) -> Sequence[dict[str, Any]]:
    return []


@pytest.fixture
async def start(paths: Paths, make: MakeCatalog) -> AsyncIterator[Callable[..., tuple[Host, ServerCatalog]]]:
    """Makes a host of servers by name and command (and the built-in one), and its catalog."""
    hosts: list[Host] = []

    def start(consent: Consent | None = None, **servers: Any) -> tuple[Host, ServerCatalog]:
        definitions = [
            ServerDefinition(name, "stdio", command=given[0], args=tuple(given[1:]))
            if isinstance(given, list)
            else ServerDefinition(name, "stdio", **given)
            for name, given in servers.items()
        ]
        host = Host(
            Configuration(tuple(definitions)),
            paths=paths,
            read_large=None,
            builtin=builtin_server(ResultStore(paths.results), no_conversations, list),
            consent=consent or Consent.for_everything(),
        )
        hosts.append(host)
        return host, make(host)

    yield start
    await asyncio.gather(*(host.close() for host in hosts))


def command(words: list[str], **more: Any) -> dict[str, Any]:
    return {"command": words[0], "args": tuple(words[1:]), **more}


async def test_real_servers_of_both_eras_are_searched_together(start: Any) -> None:
    _, catalog = start(notes=friendly(), odd=hostile("--page-size", "2"))
    assert [entry.name for entry in catalog.servers()] == ["deskhand", "notes", "odd"]
    found = await catalog.search("add two numbers")
    assert found.candidates[0].identifier == "notes.add"
    assert found.not_searched == ()
    assert identifiers((await catalog.search("time zone")).candidates)[0] == "deskhand.current_time"
    kinds = {type(entry) for entry in catalog.entries() if entry.server == "notes"}
    assert kinds == {ToolDefinition, ResourceEntry, TemplateEntry, PromptEntry}
    (template,) = [each for each in catalog.entries() if isinstance(each, TemplateEntry) and each.server == "notes"]
    assert template.variables == ("country", "city")
    assert [tool.name for tool in await catalog.tools("odd")][:2] == ["echo", "environment"]
    assert identifiers((await catalog.search("friendly echo")).candidates)[0] == "notes.echo"


async def test_a_real_server_that_changes_a_tool_is_noticed(start: Any) -> None:
    host, catalog = start(odd=hostile())
    echo = await looked_up(catalog, "odd.echo")
    assert catalog.current(echo) is None
    await host.connection("odd").call_tool("change_tool", {})
    await until(lambda: catalog.current(echo) is not None)
    assert catalog.current(echo).code == "tool_changed"
    await host.connection("odd").call_tool("add_tool", {})
    await until(lambda: "odd.added_1" in identifiers(catalog.entries()))
    assert (await catalog.search("odd.added_1")).candidates[0].name == "added_1"


async def test_a_real_flood_of_notices_ends_in_one_right_list(start: Any) -> None:
    host, catalog = start(odd=hostile())
    await catalog.tools("odd")
    await host.connection("odd").call_tool("list_changed_flood", {"count": 5000})
    assert (await catalog.search("odd.echo")).candidates[0].name == "echo"


async def test_servers_without_consent_or_started_by_hand_are_named_and_not_started(start: Any, paths: Paths) -> None:
    consent = Consent(paths.data / "consent.json")
    host, catalog = start(consent, asks=friendly(), byhand=command(hostile(), start="manual"))
    consent.give(host.connections["byhand"].definition)
    found = await catalog.search("add two numbers", kind="tools")
    assert [(diagnostic.server, diagnostic.code, catalogs) for diagnostic, catalogs in found.not_searched] == [
        ("asks", "consent_required", ("tools",)),
        ("byhand", "server_not_started", ("tools",)),
    ]
    ((diagnostic, _),) = (await catalog.search("echo", server="byhand", kind="tools")).not_searched
    assert diagnostic.code == "server_not_started"
    assert not psutil.Process().children()
    assert {entry.server for entry in catalog.entries()} == {"deskhand"}


async def test_a_server_that_can_not_start_is_named(start: Any, tmp_path: Path) -> None:
    _, catalog = start(gone=[str(tmp_path / "no_such_program")], dies=hostile("--exit-at-start", "3"), notes=friendly())
    found = await catalog.search("add two numbers")
    assert found.candidates[0].identifier == "notes.add"
    assert {(diagnostic.server, diagnostic.code) for diagnostic, _ in found.not_searched} == {
        ("gone", "command_not_found"),
        ("dies", "server_exited"),
    }
    assert len(found.not_searched) == 2


async def test_a_server_that_is_disabled_leaves_the_catalog(start: Any, paths: Paths) -> None:
    host, catalog = start(notes=friendly())
    add = await looked_up(catalog, "notes.add")
    definition = replace(host.connections["notes"].definition, disabled=True)
    await host.reload(Configuration((definition,)))
    assert [entry.name for entry in catalog.servers()] == ["deskhand"]
    assert catalog.current(add).code == "server_disabled"
    assert "notes.add" not in identifiers((await catalog.search("add two numbers")).candidates)


async def test_five_thousand_tools_of_a_real_server_are_listed_and_found(start: Any) -> None:
    _, catalog = start(big=hostile("--tools", "5000", "--page-size", "500"))
    found = await catalog.search("tool_4711", kind="tools")
    assert found.candidates[0].name == "tool_4711"
    assert len([entry for entry in catalog.entries() if entry.name.startswith("tool_")]) == 5000
