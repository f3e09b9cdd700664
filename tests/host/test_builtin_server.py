"""The server that is built in, asked as any other: through a real connection of the host, in memory."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from mcp_types import CallToolResult

from desktop.assistant.limiter import PAGE_BYTES
from desktop.assistant.results import ResultStore
from desktop.errors import AssistantError
from desktop.host import builtin_server as module
from desktop.host.builtin_server import builtin_server
from desktop.host.connection import Connection
from desktop.paths import Paths
from tests.host.conftest import MakeConnection

pytestmark = pytest.mark.anyio

CONVERSATIONS = [{"title": "Invoices of May", "updated": 1_767_225_600.0, "snippet": "… all open invoices …"}]
SERVERS = [
    {"server": "files", "status": "connected", "counts": {"tool": 12, "resource": 1}, "failure": None},
    {"server": "docs", "status": "needs_consent", "counts": {}, "failure": None},
    {
        "server": "mail",
        "status": "failed",
        "counts": {},
        "failure": "mail: [timeout] The server did not answer in time.",
    },
]


async def find_conversations(query: str) -> Sequence[Mapping[str, Any]]:
    return CONVERSATIONS if query == "invoices" else []


@pytest.fixture
def results(paths: Paths) -> ResultStore:
    return ResultStore(paths.results)


@pytest.fixture
def connection(make: MakeConnection, results: ResultStore) -> Connection:
    server = builtin_server(results, find_conversations, lambda: SERVERS)
    return make(kind="builtin", name="deskhand", builtin=server)


async def call(connection: Connection, name: str, **arguments: Any) -> tuple[str, bool]:
    result = await connection.call_tool(name, arguments)
    assert isinstance(result, CallToolResult)
    (block,) = result.content
    return block.text, result.is_error  # type: ignore[union-attr]


async def read(connection: Connection, uri: str) -> str:
    (content,) = (await connection.read_resource(uri)).contents
    return content.text  # type: ignore[union-attr]


async def stored(results: ResultStore, text: str) -> str:
    """The id of a stored result with that text."""
    output = await results.text_output(text, conversation_id="conversation")
    assert output.spilled is not None
    return output.spilled.id


async def test_each_tool_tells_what_it_does_and_what_each_parameter_is(connection: Connection) -> None:
    tools = await connection.list_tools()
    assert [tool.name for tool in tools] == [
        "find_in_result",
        "select_json",
        "current_time",
        "search_conversations",
        "server_status",
    ]
    for tool in tools:
        assert tool.title and tool.description
        assert tool.annotations is not None and tool.annotations.read_only_hint
        for parameter in tool.input_schema["properties"].values():
            assert parameter["title"] and parameter["description"]
    required = {tool.name: tool.input_schema["required"] for tool in tools}
    assert required["find_in_result"] == ["id", "pattern"]
    assert required["current_time"] == []


async def test_it_offers_nothing_that_it_has_not(connection: Connection) -> None:
    assert await connection.list_resources() == []
    assert await connection.list_prompts() == []
    (template,) = await connection.list_resource_templates()
    assert template.uri_template == "result://{id}{?offset,length}"


async def test_a_stored_result_is_read_page_by_page_to_its_end(connection: Connection, results: ResultStore) -> None:
    lines = [f"line {number} é漢" for number in range(9000)]
    id_ = await stored(results, "\n".join(lines))
    uri, whole, pages = f"result://{id_}", "", 0
    while uri:
        text, _, closing = (await read(connection, uri)).rpartition("\n[")
        assert len(text.encode()) <= PAGE_BYTES
        whole += text
        pages += 1
        following = re.search(r"result://[^\"]+", closing)
        uri = following[0] if following else ""
    assert whole == "\n".join(lines)
    assert pages > 2


async def test_a_range_of_a_stored_result_is_read(connection: Connection, results: ResultStore) -> None:
    id_ = await stored(results, "0123456789" * 10_000)
    assert (await read(connection, f"result://{id_}?offset=5&length=7")).startswith(
        "5678901\n[Characters 5 to 12 of 100000."
    )


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("result://0123456789abcdef", "The stored result is gone."),
        ("result://../../etc/passwd", "The stored result is gone."),
        ("result://{id}?offset=x", "not of the form"),
        ("result://{id}?offset=-1", "not of the form"),
        ("result://{id}?page=2", "not of the form"),
        ("result://{id}?offset=99999999", "the text has 100000 characters"),
        ("file:///etc/passwd", "not of the form"),
    ],
)
async def test_a_read_that_can_not_be_says_why(
    connection: Connection, results: ResultStore, uri: str, said: str
) -> None:
    id_ = await stored(results, "0123456789" * 10_000)
    assert said in await read(connection, uri.replace("{id}", id_))


async def test_text_is_found_in_a_stored_result(connection: Connection, results: ResultStore) -> None:
    id_ = await stored(results, "nothing here\n" * 8000 + "The Needle is here\n" + "nothing\n" * 100)
    text, is_error = await call(connection, "find_in_result", id=id_, pattern="needle")
    assert not is_error
    assert "The Needle is here" in text
    assert str(13 * 8000 + 4) in text


async def test_a_pattern_that_takes_for_ever_is_given_up(
    connection: Connection, results: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop.assistant.results._QUESTION_LIMIT", 1.0)
    id_ = await stored(results, ("a" * 60 + "!\n") * 2000)
    async with asyncio.timeout(20):
        text, is_error = await call(connection, "find_in_result", id=id_, pattern="(a+)+$b")
    assert is_error
    assert "takes too long" in text


async def test_a_value_of_a_stored_json_result_is_selected_digit_for_digit(
    connection: Connection, results: ResultStore
) -> None:
    rows = ", ".join(f'{{"name": "row {number}"}}' for number in range(4000))
    id_ = await stored(results, f'{{"total": 12345678901234567890.10, "rows": [{rows}]}}')
    assert (await call(connection, "select_json", id=id_, pointer="/rows/3999/name"))[0].strip() == '"row 3999"'
    assert (await call(connection, "select_json", id=id_, pointer="/total"))[0].strip() == "12345678901234567890.10"
    text, is_error = await call(connection, "select_json", id=id_, pointer="/rows/4000")
    assert is_error
    assert "not valid" in text


async def test_a_stored_result_that_is_gone_is_an_error_of_the_tool(connection: Connection) -> None:
    text, is_error = await call(connection, "find_in_result", id="0123456789abcdef", pattern="x")
    assert is_error
    assert text == "The stored result is gone. Call the tool again if its content is still needed."


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("find_in_result", {"id": "x"}, "'pattern' is a required property"),
        ("find_in_result", {"id": "x", "pattern": "y", "limit": 0}, "less than the minimum"),
        ("find_in_result", {"id": "x", "pattern": "y", "limit": "many"}, "is not of type 'integer'"),
        ("current_time", {"place": "x"}, "'place' was unexpected"),
        ("no_such_tool", {}, "no such tool"),
    ],
)
async def test_arguments_that_are_not_valid_are_named(
    connection: Connection, name: str, arguments: dict[str, Any], said: str
) -> None:
    text, is_error = await call(connection, name, **arguments)
    assert is_error
    assert said in text


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("Asia/Tokyo", "Asia/Tokyo"),
        ("asia/tokyo", "Asia/Tokyo"),
        ("Tokyo", "Asia/Tokyo"),
        ("New York", "America/New_York"),
    ],
)
async def test_the_time_is_told_for_a_zone_or_its_city(connection: Connection, asked: str, name: str) -> None:
    before = datetime.datetime.now(zoneinfo.ZoneInfo(name)).replace(microsecond=0)
    text, is_error = await call(connection, "current_time", zone=asked)
    assert not is_error
    assert f"({name}, " in text
    day, told = text.split(" ")[:2]
    when = datetime.datetime.fromisoformat(told)
    assert before <= when <= before + datetime.timedelta(seconds=30)
    assert when.utcoffset() == before.utcoffset()
    assert day == f"{when:%A},"


async def test_the_time_is_told_in_utc_and_here(connection: Connection) -> None:
    assert "+00:00 (UTC, UTC)" in (await call(connection, "current_time", zone="utc"))[0]
    here, is_error = await call(connection, "current_time")
    assert not is_error
    assert "this computer's time zone" in here


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Europe/Berln", "Nearly so named: Europe/Berlin"),
        ("berlni", "Europe/Berlin"),
        ("Mars/Olympus", "Give an IANA name"),
        ("../../etc/passwd", "no time zone"),
        ("Europe", "no time zone"),
    ],
)
async def test_a_zone_that_is_none_gets_what_is_near(connection: Connection, asked: str, said: str) -> None:
    text, is_error = await call(connection, "current_time", zone=asked)
    assert is_error
    assert said in text


async def test_a_computer_without_time_zones_says_so(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.zoneinfo, "available_timezones", set)
    text, is_error = await call(connection, "current_time", zone="Asia/Tokyo")
    assert is_error
    assert "no data of time zones" in text
    assert not (await call(connection, "current_time", zone="UTC"))[1]


async def test_earlier_conversations_are_found(connection: Connection) -> None:
    text, is_error = await call(connection, "search_conversations", query="invoices")
    assert not is_error
    assert text.startswith(("2026-01-01", "2025-12-31"))
    assert text.endswith("Invoices of May\n… all open invoices …")
    assert await call(connection, "search_conversations", query="weather") == (
        "No conversation has these words.",
        False,
    )


async def test_the_state_of_the_servers_is_told(connection: Connection) -> None:
    text, is_error = await call(connection, "server_status")
    assert not is_error
    assert text.splitlines() == [
        "files: connected, 12 tools, 1 resource",
        "docs: needs consent",
        "mail: failed. mail: [timeout] The server did not answer in time.",
    ]


async def test_a_fault_of_the_store_is_readable_and_carries_no_path(make: MakeConnection) -> None:
    class Broken:
        async def page(self, id: str, offset: int, length: int | None) -> str:
            raise AssistantError("result_gone", operation="read")

        async def find(self, id: str, pattern: str, limit: int) -> str:
            raise AssistantError("arguments_invalid", operation="search", reason="the search takes too long")

        async def select_json(self, id: str, pointer: str) -> str:
            return json.dumps({"limit": pointer})

    connection = make(kind="builtin", name="deskhand", builtin=builtin_server(Broken(), find_conversations, list))
    assert (await call(connection, "find_in_result", id="x", pattern="y")) == (
        "The arguments are not valid: the search takes too long. Correct the arguments and call again.",
        True,
    )
    assert await call(connection, "select_json", id="x", pointer="/a") == ('{"limit": "/a"}', False)
