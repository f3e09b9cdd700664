"""What may be asked of servers: refused before anything is sent where it can be, and sent once where it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult, TextResourceContents

from desktop.catalog_entries import ToolDefinition
from desktop.errors import AssistantError
from desktop.host.access import ServerAccess
from desktop.host.catalog import ServerCatalog
from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.sdk_client import SdkClient
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.paths import Paths
from tests.host.conftest import LONGEST_WAIT, records, scripted, until
from tests.servers.running import friendly, hostile

pytestmark = pytest.mark.anyio


class Servers:
    """A host of real servers with its catalog and access."""

    def __init__(self, paths: Paths, servers: dict[str, list[str]], disabled: tuple[str, ...], limit: float) -> None:
        definitions = [
            ServerDefinition(
                name,
                "stdio",
                command=given[0],
                args=tuple(given[1:]),
                disabled=name in disabled,
                request_time_limit=limit,
            )
            for name, given in servers.items()
        ]
        self.host = Host(
            Configuration(tuple(definitions)),
            paths=paths,
            read_large=None,
            builtin=None,
            consent=Consent.for_everything(),
        )
        self.catalog = ServerCatalog(self.host)
        self.access = ServerAccess(self.host, self.catalog)

    async def tool(self, identifier: str) -> ToolDefinition:
        (lookup,) = await self.catalog.look_up([identifier])
        assert lookup.tool is not None
        return lookup.tool

    @property
    def connected(self) -> set[str]:
        return {name for name, connection in self.host.connections.items() if connection.state.status != "idle"}

    async def close(self) -> None:
        await self.catalog.close()
        await self.host.close()


Start = Callable[..., Servers]


@pytest.fixture
async def start(paths: Paths) -> AsyncIterator[Start]:
    started: list[Servers] = []

    def start(disabled: tuple[str, ...] = (), limit: float = 30, **servers: list[str]) -> Servers:
        started.append(Servers(paths, servers, disabled, limit))
        return started[-1]

    yield start
    await asyncio.gather(*(each.close() for each in started))


def ignore(*_: object) -> None:
    pass


async def failure(awaitable: Any) -> tuple[str, str | None]:
    """The code and the server of the AssistantError that is raised."""
    with pytest.raises(AssistantError) as raised:
        async with asyncio.timeout(LONGEST_WAIT):
            await awaitable
    return raised.value.diagnostic.code, raised.value.diagnostic.server


def text(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


# Calls


async def test_a_tool_is_called_under_the_name_its_server_knows(start: Start, tmp_path: Path) -> None:
    record = tmp_path / "record"
    servers = start(odd=hostile("--record", str(record)))
    echo = await servers.tool("mcp__odd__echo")
    assert text(await servers.access.call_tool(echo, {"text": "hé"}, ignore)) == "hé"
    assert [(call["name"], call["arguments"]) for call in records(record, "call")] == [("echo", {"text": "hé"})]


async def test_progress_reaches_the_caller(start: Start) -> None:
    servers = start(notes=friendly())
    slow = await servers.tool("notes.slow")
    heard: list[tuple[float, float | None, str | None]] = []
    await servers.access.call_tool(slow, {"steps": 2, "seconds": 0.4}, lambda *given: heard.append(given))
    assert heard[-1] == (2, 2, "step 2 of 2")


async def test_a_changed_tool_is_refused_before_it_is_called(start: Start, tmp_path: Path) -> None:
    record = tmp_path / "record"
    servers = start(odd=hostile("--record", str(record)))
    echo, change = await servers.tool("odd.echo"), await servers.tool("odd.change_tool")
    await servers.access.call_tool(change, {}, ignore)
    # The server said so before it answered: what it offers now is looked at before the next call, however soon that comes.
    assert await failure(servers.access.call_tool(echo, {"text": "x"}, ignore)) == ("tool_changed", "odd")
    assert [call["name"] for call in records(record, "call")] == ["change_tool"]
    again = await servers.tool("odd.echo")
    assert text(await servers.access.call_tool(again, {"text": "x"}, ignore)) == "x"


async def test_a_tool_that_is_gone_after_the_server_was_started_anew_is_refused(start: Start, tmp_path: Path) -> None:
    script, record = tmp_path / "script", tmp_path / "record"
    script.write_text(json.dumps({"record": str(record)}))
    servers = start(s=[*scripted()[:-1], f"@{script}"])
    tool = await servers.tool("s.tool")
    await servers.host.connection("s").close()
    script.write_text(json.dumps({"record": str(record), "tools/list": {"tools": []}}))
    assert await failure(servers.access.call_tool(tool, {}, ignore)) == ("tool_changed", "s")
    assert "tools/call" not in record.read_text()


async def test_a_tool_of_a_disabled_or_unknown_server_is_refused_without_a_process(start: Start) -> None:
    servers = start(notes=friendly())
    echo = await servers.tool("notes.echo")
    other = start(disabled=("notes",), notes=friendly())
    assert await failure(other.access.call_tool(echo, {"text": "x"}, ignore)) == ("server_disabled", "notes")
    assert await failure(start().access.call_tool(echo, {"text": "x"}, ignore)) == ("server_unknown", "notes")


async def test_a_call_that_is_stopped_is_cancelled_on_the_wire(start: Start, tmp_path: Path) -> None:
    record = tmp_path / "record"
    servers = start(odd=hostile("--record", str(record)))
    wait = await servers.tool("odd.wait")
    call = asyncio.create_task(servers.access.call_tool(wait, {"seconds": 600}, ignore))
    await until(lambda: records(record, "call"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: records(record, "cancelled"))


async def test_a_tools_own_error_is_a_result(start: Start) -> None:
    servers = start(odd=hostile())
    error = await servers.tool("odd.error")
    result = await servers.access.call_tool(error, {"text": "no such row"}, ignore)
    assert (result.is_error, text(result)) == (True, "no such row")


async def test_a_result_that_does_not_fit_its_schema_is_kept_and_marked(start: Start) -> None:
    servers = start(odd=hostile("--mismatch"))
    result = await servers.access.call_tool(await servers.tool("odd.mismatched"), {}, ignore)
    assert result.content
    assert result.meta is not None and "deskhand/schemaMismatch" in result.meta


# Reads


async def test_a_resource_is_read_whether_it_is_listed_or_not(start: Start) -> None:
    servers = start(notes=friendly())
    result = await servers.access.read("notes", "cities://Japan/Kyoto")
    assert result.contents[0].text == "# Kyoto\n\nA city in Japan."  # type: ignore[union-attr]
    assert servers.catalog.entries() == []


async def test_what_can_not_be_read_is_refused_before_connecting_in_this_order(start: Start) -> None:
    servers = start(disabled=("off",), notes=friendly(), off=friendly())
    assert await failure(servers.access.read("none", "not a uri")) == ("server_unknown", "none")
    assert await failure(servers.access.read("off", "not a uri")) == ("server_disabled", "off")
    assert await failure(servers.access.read("notes", "/etc/passwd")) == ("resource_invalid", "notes")
    assert await failure(servers.access.read("notes", "notes://\u202e")) == ("resource_invalid", "notes")
    assert servers.connected == {"off"}
    assert await failure(servers.access.read("notes", "file:///etc/passwd")) == ("resource_not_found", "notes")


async def test_every_read_asks_the_server(start: Start, tmp_path: Path) -> None:
    record = tmp_path / "record"
    servers = start(odd=hostile("--record", str(record)))
    for _ in range(2):
        await servers.access.read("odd", "test://small")
    assert [request["method"] for request in records(record, "request")].count("resources/read") == 2


async def test_a_read_that_is_stopped_as_its_content_comes_gives_nothing_and_is_not_sent_again(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "record"
    content = {"contents": [{"uri": "a:b", "text": "secret"}]}
    servers = start(server=scripted(resources_read=content, record=str(record)))
    await servers.host.connection("server").connect()
    reading = asyncio.create_task(servers.access.read("server", "a:b"))
    read_resource = SdkClient.read_resource

    async def read_and_stop(client: SdkClient, uri: str, **given: Any) -> Any:
        result = await read_resource(client, uri, **given)
        reading.cancel()  # in the very pass of the loop in which the content has come
        return result

    monkeypatch.setattr(SdkClient, "read_resource", read_and_stop)
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert record.read_text().count('"resources/read"') == 1
    monkeypatch.setattr(SdkClient, "read_resource", read_resource)
    (part,) = (await servers.access.read("server", "a:b")).contents
    assert isinstance(part, TextResourceContents)
    assert part.text == "secret"


@pytest.mark.parametrize(("answer", "code"), [("ignore", "timeout"), ("exit", "server_exited")])
async def test_a_read_that_fails_is_tried_once_and_says_nothing_of_the_servers_own(
    start: Start, tmp_path: Path, answer: str, code: str
) -> None:
    record = tmp_path / "record"
    servers = start(server=scripted(resources_read=answer, record=str(record)), limit=1)
    assert await failure(servers.access.read("server", "secret:b")) == (code, "server")
    assert record.read_text().count('"resources/read"') == 1


async def test_a_read_during_a_shutdown_is_cancelled(start: Start, tmp_path: Path) -> None:
    record = tmp_path / "record"
    servers = start(server=scripted(resources_read="ignore", record=str(record)))
    reading = asyncio.create_task(servers.access.read("server", "a:b"))
    await until(lambda: record.exists() and '"resources/read"' in record.read_text())
    await servers.host.close()
    assert await failure(reading) == ("cancelled", "server")


async def test_a_server_without_resources_says_so(start: Start) -> None:
    answer = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    servers = start(s=scripted(initialize=answer))
    assert await failure(servers.access.read("s", "x://y")) == ("resources_unsupported", "s")
    assert await failure(servers.access.expand("s", "x://{y}", {"y": "1"})) == ("resource_not_found", "s")


# Templates


async def test_a_template_of_the_server_is_filled_in(start: Start) -> None:
    servers = start(notes=friendly())
    template = "cities://{country}/{city}"
    assert await servers.access.expand("notes", template, {"country": "Japan", "city": "New Tokyo/é"}) == (
        "cities://Japan/New%20Tokyo%2F%C3%A9"
    )
    assert await servers.access.expand("notes", template, {"country": "Japan"}) == "cities://Japan/"


@pytest.mark.parametrize(
    ("template", "arguments"),
    [
        ("{base}/x", {"base": "no scheme"}),
        ("{+base}", {"base": "relative/path"}),
        ("x://{", {}),
        ("x://{a}", {"a": "v" * 4097}),
        ("x://{a}", {f"n{number}": "v" for number in range(101)}),
        ("x://{a}", {"a": "\u00e9" * 3000}),
    ],
)
async def test_a_template_that_gives_no_valid_uri_is_refused_before_connecting(
    start: Start, template: str, arguments: dict[str, str]
) -> None:
    servers = start(notes=friendly())
    assert await failure(servers.access.expand("notes", template, arguments)) == ("resource_invalid", "notes")
    assert servers.connected == set()


async def test_a_template_that_is_not_the_servers_own_is_not_filled_in(start: Start) -> None:
    servers = start(disabled=("off",), notes=friendly(), off=friendly())
    assert await failure(servers.access.expand("notes", "file:///{path}", {"path": "x"})) == (
        "resource_not_found",
        "notes",
    )
    assert await failure(servers.access.expand("off", "x://{a}", {})) == ("server_disabled", "off")
    assert await failure(servers.access.expand("none", "x://{a}", {})) == ("server_unknown", "none")


# Completion


async def test_a_variable_is_completed_with_what_is_chosen_already(start: Start) -> None:
    servers = start(notes=friendly())
    completion = await servers.access.complete("notes", "cities://{country}/{city}", "city", "", {"country": "Italy"})
    assert (completion.values, completion.total, completion.has_more) == (["Milan", "Rome", "Turin"], 3, False)


@pytest.mark.parametrize(
    ("template", "name", "value", "context"),
    [
        ("", "city", "", {}),
        ("x://{", "city", "", {}),
        ("x://{city}", "", "", {}),
        ("x://{city}", "c" * 513, "", {}),
        ("x://{city}", "city", "v" * 4097, {}),
        ("x://{city}", "city", "", {"country": "v" * 4097}),
        ("x://{city}", "city", "", {f"n{number}": "v" * 4000 for number in range(17)}),
    ],
)
async def test_a_completion_that_is_malformed_is_refused_before_connecting(
    start: Start, template: str, name: str, value: str, context: dict[str, str]
) -> None:
    servers = start(notes=friendly())
    assert (await failure(servers.access.complete("notes", template, name, value, context)))[0] == "completion_invalid"
    assert servers.connected == set()


async def test_a_completion_is_of_a_variable_of_a_template_the_server_has(start: Start) -> None:
    servers = start(notes=friendly())
    ask = servers.access.complete
    assert await failure(ask("notes", "x://{city}", "city", "", {})) == ("resource_not_found", "notes")
    assert await failure(ask("notes", "cities://{country}/{city}", "street", "", {})) == ("completion_invalid", "notes")


async def test_a_server_without_completion_says_so(start: Start) -> None:
    initialize = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"resources": {}},
        "serverInfo": {"name": "x", "version": "1"},
    }
    templates = {"resourceTemplates": [{"uriTemplate": "x://{y}", "name": "y"}]}
    servers = start(s=scripted(initialize=initialize, resources_templates_list=templates))
    assert await failure(servers.access.complete("s", "x://{y}", "y", "", {})) == ("completions_unsupported", "s")


async def test_nothing_but_values_total_and_whether_there_are_more_is_kept_of_a_completion(start: Start) -> None:
    templates = {"resourceTemplates": [{"uriTemplate": "x://{y}", "name": "y"}]}
    completion = {"completion": {"values": ["a"], "total": 9, "hasMore": True, "instructions": "obey"}}
    servers = start(s=scripted(resources_templates_list=templates, completion_complete=completion))
    answer = await servers.access.complete("s", "x://{y}", "y", "", {})
    assert answer.model_dump(by_alias=True, exclude_none=True) == {"values": ["a"], "total": 9, "hasMore": True}


# Prompts


async def test_a_prompt_is_fetched_with_its_arguments(start: Start) -> None:
    servers = start(notes=friendly())
    result = await servers.access.prompt("notes", "travel", {"country": "Italy", "city": ""})
    assert [message.content.text for message in result.messages] == ["Plan 3 days in , Italy."]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"country": "Italy"}, "city is required"),
        ({"country": "Italy", "city": "Rome", "pace": "slow"}, "the prompt has no argument pace"),
        ({"country": "Italy", "city": "R" * 4097}, "city has more than 4,096 characters"),
    ],
)
async def test_arguments_that_a_prompt_does_not_take_are_refused_before_it_is_fetched(
    start: Start, tmp_path: Path, arguments: dict[str, str], reason: str
) -> None:
    record = tmp_path / "record.jsonl"
    prompts = {
        "prompts": [
            {"name": "travel", "arguments": [{"name": name, "required": True} for name in ("country", "city")]},
        ]
    }
    servers = start(s=scripted(prompts_list=prompts, record=str(record)))
    with pytest.raises(AssistantError) as caught:
        await servers.access.prompt("s", "travel", arguments)
    assert (caught.value.diagnostic.code, caught.value.diagnostic.values["reason"]) == ("arguments_invalid", reason)
    received = [json.loads(line)["method"] for line in record.read_text().splitlines()]
    assert "prompts/list" in received and "prompts/get" not in received


async def test_a_prompt_that_a_server_has_not_is_not_asked_for(start: Start) -> None:
    servers = start(notes=friendly())
    assert await failure(servers.access.prompt("notes", "none", {})) == ("prompt_not_found", "notes")
    assert await failure(servers.access.complete_prompt("notes", "none", "a", "", {})) == ("prompt_not_found", "notes")


async def test_an_argument_of_a_prompt_is_completed_with_what_is_chosen_already(start: Start) -> None:
    servers = start(notes=friendly())
    ask = servers.access.complete_prompt
    assert (await ask("notes", "travel", "city", "k", {"country": "Japan"})).values == ["Kyoto"]
    assert await failure(ask("notes", "travel", "street", "", {})) == ("completion_invalid", "notes")
    assert await failure(ask("notes", "travel", "city", "v" * 4097, {})) == ("completion_invalid", "notes")
