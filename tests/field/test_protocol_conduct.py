"""Conduct in the protocol: what goes wrong in programs of this kind.

A stop while a call waits for approval is in ``end_to_end/test_window.py``, what servers ask the person in
``host/test_server_questions.py``, both in full.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from desktop.catalog_entries import Kind, PromptEntry, ToolDefinition
from desktop.host.server_state import ServerState
from tests.field.conftest import MakeDesk, run
from tests.host.conftest import failure, records, text, until
from tests.servers.running import changing, friendly, hostile, http_server

pytestmark = pytest.mark.anyio
KINDS: tuple[Kind, ...] = ("tool", "resource", "template", "prompt")


def paged(order: str) -> list[str]:
    return [friendly()[0], str(Path(__file__).with_name("paged_server.py")), order]


async def test_a_forgotten_session_is_opened_again_the_lists_are_read_anew_and_the_state_stays_true(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    async with http_server(hostile("--forget-session", "2", "--record", str(record))) as url:
        desk = make_desk(server={"url": url, "protocol": "legacy"})
        connection = desk.connection()
        [lookup] = await desk.catalog.look_up(["server.echo"])
        assert lookup.tool is not None
        for word in ("one", "two"):
            await desk.access.call_tool(lookup.tool, {"text": word}, lambda *_: None)
        states: list[ServerState] = []
        connection.state_changed.connect(lambda: states.append(connection.state))
        assert await failure(desk.access.call_tool(lookup.tool, {"text": "three"}, lambda *_: None)) == "session_lost"
        await until(lambda: connection.state.status == "connected")
        assert [state.status for state in states] == ["connecting", "connected"]
        assert states[-1].counts == {} and states[-1].failure is None  # nothing is claimed that was not read anew
        result = await desk.access.call_tool(lookup.tool, {"text": "four"}, lambda *_: None)
        assert text(result) == "four" and connection.state.counts["tool"] > 5
        assert [each["arguments"]["text"] for each in records(record, "call")] == ["one", "two", "four"]
        methods = [each["method"] for each in records(record, "request")]
        assert methods.count("initialize") == 2 and methods.count("tools/list") == 2
        await desk.close()


async def test_every_page_of_every_kind_is_read_and_found(make_desk: MakeDesk) -> None:
    """The last cursor but one is an empty text, which is a cursor like any other."""
    desk = make_desk(server=run(paged("straight")))
    for kind in KINDS:
        assert len(await desk.catalog.listed("server", kind)) == 5
    assert desk.connection().state.counts == dict.fromkeys(KINDS, 5)
    found = await desk.catalog.search("tool_4", limit=1)
    assert [entry.name for entry in found.candidates if isinstance(entry, ToolDefinition)] == ["tool_4"]


async def test_cursors_that_go_round_in_a_circle_end_with_what_there_is_and_a_warning(
    make_desk: MakeDesk,
) -> None:
    desk = make_desk(server=run(paged("alternate")))
    for kind in KINDS:
        assert len(await desk.catalog.listed("server", kind)) == 4
    assert len(desk.connection().state.warnings) == 4
    assert {warning.code for warning in desk.connection().state.warnings} == {"list_incomplete"}


@pytest.mark.parametrize("http", [False, True], ids=["stdio", "http"])
async def test_a_tool_that_was_added_is_found_and_called(make_desk: MakeDesk, http: bool) -> None:
    async with http_server(hostile()) as url:
        desk = make_desk(server={"url": url} if http else run(hostile()))
        assert (await desk.catalog.look_up(["server.added_1"]))[0].tool is None
        await desk.connection().call_tool("add_tool", {})
        [lookup] = await desk.catalog.look_up(["server.added_1"])
        assert lookup.tool is not None
        result = await desk.access.call_tool(lookup.tool, {}, lambda *_: None)
        assert not result.is_error
        found = await desk.catalog.search("added_1", limit=1)
        assert lookup.tool in found.candidates
        await desk.close()


async def test_a_long_call_lives_as_long_as_it_reports_and_no_longer(make_desk: MakeDesk) -> None:
    desk = make_desk(server=run(hostile(), call_time_limit=0.8))
    connection = desk.connection()
    await connection.connect()
    seen: list[float] = []
    await connection.call_tool("progress", {"steps": 8, "seconds": 2}, lambda done, *_: seen.append(done))
    assert seen[-1] == 8
    assert await failure(connection.call_tool("wait", {"seconds": 2})) == "timeout"


@pytest.mark.parametrize("http", [False, True], ids=["stdio", "http"])
async def test_a_stop_reaches_the_server_and_its_late_answer_nobody(
    make_desk: MakeDesk, tmp_path: Path, http: bool
) -> None:
    record = tmp_path / "record"
    command = hostile("--record", str(record))
    async with http_server(command) as url:
        desk = make_desk(server={"url": url} if http else run(command))
        connection = desk.connection()
        await connection.connect()
        calls = [asyncio.create_task(connection.call_tool("wait", {"seconds": 0.3})) for _ in range(3)]
        await until(lambda: len(records(record, "call")) == 3)
        calls[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[1]
        await until(lambda: records(record, "cancelled") or records(record, "disconnected"))
        for number in (0, 2):
            assert not (await calls[number]).is_error
        assert text(await connection.call_tool("echo", {"text": "next"})) == "next"
        await desk.close()


async def test_an_older_server_that_ends_at_the_newer_question_is_started_once_more_and_remembered(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    server = run(hostile("--exit-on-discover", "--record", str(record)))
    desk = make_desk(server=server)
    await desk.catalog.tools("server")
    assert desk.connection().state.protocol_version == "2025-11-25"
    await desk.close()
    again = make_desk(server=server)
    await again.catalog.tools("server")
    assert len(records(record, "started")) == 3  # the first two, and one that was spoken to in the older way at once


async def test_a_bad_output_schema_keeps_the_tool_and_a_result_that_does_not_fit_is_kept_and_marked(
    make_desk: MakeDesk,
) -> None:
    desk = make_desk(server=run(hostile("--mismatch", "--bad-schema")))
    tools = {tool.name: tool for tool in await desk.catalog.tools("server")}
    assert {"mismatched", "bad_schema"} <= tools.keys()
    result = await desk.access.call_tool(tools["mismatched"], {}, lambda *_: None)
    assert result.content and "deskhand/schemaMismatch" in (result.meta or {})
    assert (await desk.access.call_tool(tools["bad_schema"], {}, lambda *_: None)).content


@pytest.mark.parametrize("era", [[], ["--modern"]])
async def test_a_watched_resource_is_told_once_for_many_changes_and_read_by_nobody(
    make_desk: MakeDesk, tmp_path: Path, era: list[str]
) -> None:
    record = tmp_path / "record"
    desk = make_desk(server=run(changing(*era, "--record", str(record))))
    connection = desk.connection()
    told: list[str] = []
    connection.subscriptions.updated.connect(told.append)
    await connection.subscriptions.add("state://1")
    await connection.call_tool("touch", {"uri": "state://1", "times": 500})
    await until(lambda: told)
    assert set(told) == {"state://1"} and len(told) < 50
    assert '"resources/read"' not in record.read_text()


async def test_values_are_suggested_for_what_is_chosen_already(make_desk: MakeDesk) -> None:
    desk = make_desk(server=run(friendly()))
    access, template = desk.access, "cities://{country}/{city}"
    assert (await access.complete("server", template, "city", "", {"country": "Japan"})).values == [
        "Kyoto",
        "Osaka",
        "Tokyo",
    ]
    assert (await access.complete_prompt("server", "travel", "city", "O", {"country": "Japan"})).values == ["Osaka"]
    assert (await access.complete_prompt("server", "greeting", "name", "", {})).values == []


async def test_prompts_with_any_number_of_arguments_are_listed_and_filled_never_sent_as_they_are(
    make_desk: MakeDesk,
) -> None:
    desk = make_desk(server=run(friendly()))
    listed = [each for each in await desk.catalog.listed("server", "prompt") if isinstance(each, PromptEntry)]
    assert {each.name: [(a.name, a.required) for a in each.arguments] for each in listed} == {
        "summary": [],
        "greeting": [("name", True), ("tone", False)],
        "travel": [("country", True), ("city", True), ("days", False)],
    }
    for name, arguments, said in (
        ("summary", {}, "Summarise what we have said so far."),
        ("greeting", {"name": "Ann"}, "Greet Ann in a friendly tone."),
        ("travel", {"country": "Italy", "city": "Rome", "days": "5"}, "Plan 5 days in Rome, Italy."),
    ):
        result = await desk.access.prompt("server", name, arguments)
        assert [message.content.text for message in result.messages] == [said]  # type: ignore[union-attr]
    assert await failure(desk.access.prompt("server", "travel", {"country": "Italy"})) == "arguments_invalid"
