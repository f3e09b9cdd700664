"""A server's connection against real server processes: what it gives, how it is stopped, and what becomes of it when the server
dies, hangs, lies or was written for another time."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import ResourceTemplateReference

from desktop.errors import AssistantError
from desktop.host import lifecycle, sdk_client
from desktop.host.connection import Connection
from desktop.host.consent import Consent
from desktop.host.requests import Life
from desktop.host.server_references import keyring_name
from desktop.host.server_state import ServerState
from desktop.host.time_limits import Limits
from desktop.paths import Paths
from tests import real_servers
from tests.host.conftest import MakeConnection, children, failure, records, scripted, text, until
from tests.servers.friendly import make_server
from tests.servers.running import friendly, hostile

pytestmark = pytest.mark.anyio


def watch(connection: Connection) -> list[ServerState]:
    """The states that watchers get to see."""
    seen: list[ServerState] = []
    connection.state_changed.connect(lambda: seen.append(connection.state))
    return seen


def legacy_servers(paths: Paths) -> list[str]:
    """The identities of servers that are remembered for the older era."""
    file = paths.cache / "legacy_servers.json"
    return json.loads(file.read_text()) if file.exists() else []


# What it gives


@pytest.mark.parametrize(
    ("command", "version"), [(hostile("--record", os.devnull), "2025-11-25"), (friendly(), "2026-07-28")]
)
async def test_a_server_of_either_era_is_connected_on_first_need(
    make: MakeConnection, command: list[str], version: str
) -> None:
    connection = make(command)
    assert (connection.state.status, connection.capabilities) == ("idle", None)
    result = await connection.call_tool("echo", {"text": "hé\u2028llo"})
    assert text(result) == "hé\u2028llo"
    assert (connection.state.status, connection.state.protocol_version) == ("connected", version)
    assert connection.capabilities is not None and connection.capabilities.tools is not None


async def test_everything_a_server_offers_can_be_listed_and_used(make: MakeConnection) -> None:
    connection = make(friendly())
    tools = await connection.list_tools()
    assert {"add", "echo", "slow"} <= {tool.name for tool in tools}
    assert [resource.uri for resource in await connection.list_resources()] == ["notes://today", "notes://picture"]
    assert [each.uri_template for each in await connection.list_resource_templates()] == ["cities://{country}/{city}"]
    assert [prompt.name for prompt in await connection.list_prompts()] == ["summary", "greeting", "travel"]
    assert connection.state.counts == {"tool": len(tools), "resource": 2, "template": 1, "prompt": 3}
    assert connection.state.title == "Friendly server"
    read = await connection.read_resource("notes://today")
    assert read.contents[0].text == "Buy milk.\nCall Ann."  # type: ignore[union-attr]
    completion = await connection.complete(
        ResourceTemplateReference(uri="cities://{country}/{city}"), "city", "", {"country": "Japan"}
    )
    assert completion.values == ["Kyoto", "Osaka", "Tokyo"]
    prompt = await connection.get_prompt("greeting", {"name": "Ann"})
    assert prompt.messages[0].content.text == "Greet Ann in a friendly tone."  # type: ignore[union-attr]
    assert await failure(connection.read_resource("notes://none")) == "resource_not_found"


async def test_the_log_has_a_line_for_each_request_and_nothing_of_what_was_asked_or_answered(
    make: MakeConnection,
) -> None:
    connection = make(hostile())
    await connection.list_tools()
    await connection.call_tool("echo", {"text": "canary"})
    await connection.call_tool("error", {"text": "canary"})
    waiting = asyncio.create_task(connection.call_tool("silent", {}))
    await asyncio.wait({waiting}, timeout=0.1)
    waiting.cancel()
    await until(lambda: connection.log.lines()[-1].text.endswith(", stopped"))
    requests = [line.text for line in connection.log.lines() if line.kind == "request"]
    assert all(re.fullmatch(r"[a-z/]+ #\d+ [\d,]+ ms, [\d,]+ B, [\w -]+", text) for text in requests)
    told = [(text.split(" ")[0], text.rpartition(", ")[2]) for text in requests]
    assert told == [
        ("server/discover", "error -32601"),
        ("initialize", "ok"),
        ("tools/list", "ok"),
        ("tools/call", "ok"),
        ("tools/call", "the tool reports an error"),
        ("tools/call", "stopped"),
    ]
    numbers = [int(text.split(" ")[1][1:]) for text in requests]
    assert numbers == sorted(set(numbers))
    assert "canary" not in "\n".join(requests)


@pytest.mark.parametrize("server", ["everything", "filesystem", "time", "memory"])
async def test_servers_of_the_world_are_connected_listed_and_left(
    make: MakeConnection, server: str, tmp_path: Path
) -> None:
    command = {
        "everything": real_servers.everything,
        "filesystem": lambda: real_servers.filesystem(tmp_path),
        "time": real_servers.time,
        "memory": real_servers.memory,
    }[server]()
    connection = make(command)
    tools = await connection.list_tools()
    assert len(tools) == connection.state.counts["tool"] >= 2
    assert connection.state.protocol_version == ("2026-07-28" if server == "time" else "2025-11-25")
    await connection.close()
    assert connection.state.status == "idle"


async def test_the_filters_of_the_definition_decide_what_is_listed(make: MakeConnection) -> None:
    connection = make(friendly(), include_tools=("*o*",), exclude_tools=("forget",))
    assert {tool.name for tool in await connection.list_tools()} == {"echo", "slow", "now_nothing", "rows", "look"}


async def test_a_server_that_offers_a_kind_not_at_all_has_none_of_it(make: MakeConnection) -> None:
    capabilities = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    connection = make(scripted(initialize=capabilities))
    assert (await connection.list_tools(), await connection.list_prompts()) == ([], [])
    assert await failure(connection.read_resource("a://b")) == "resources_unsupported"
    assert (
        await failure(connection.complete(ResourceTemplateReference(uri="a://{b}"), "b", ""))
        == "completions_unsupported"
    )
    assert await failure(connection.get_prompt("a")) == "prompts_unsupported"
    declares_but_has_not = make(scripted(), name="other")
    assert await declares_but_has_not.list_resource_templates() == []


async def test_the_built_in_server_runs_in_this_process(make: MakeConnection) -> None:
    connection = make(name="deskhand", kind="builtin", builtin=make_server("deskhand")._lowlevel_server)  # type: ignore[attr-defined]
    assert text(await connection.call_tool("add", {"a": 1, "b": 2})) == "3.0"
    assert children() == []


async def test_a_referenced_secret_reaches_the_process_and_nothing_else(
    make: MakeConnection, caplog: pytest.LogCaptureFixture
) -> None:
    async def secret(name: str) -> str | None:
        return "s3cr3t-value" if name == keyring_name("server", "token") else None

    with caplog.at_level("DEBUG"):
        connection = make(hostile("--stderr", "token s3cr3t-value"), env={"TOKEN": "${keyring:token}"}, secret=secret)
        environment = json.loads(text(await connection.call_tool("environment", {})))
        await until(lambda: connection.log.tail(1))
    assert environment["TOKEN"] == "s3cr3t-value"
    assert "s3cr3t-value" not in repr(connection.definition.env) + "\n".join(connection.log.tail(500))
    missing = make(hostile(), name="other", env={"TOKEN": "${keyring:token}"}, secret=secret)
    assert await failure(missing.connect()) == "secret_missing"
    assert missing.state.failure is not None and missing.state.failure.stage == "start"


# Calls


async def test_twenty_calls_at_the_same_time_each_get_their_own_answer(make: MakeConnection) -> None:
    connection = make(hostile())
    results = await asyncio.gather(*(connection.call_tool("echo", {"text": str(n)}) for n in range(20)))
    assert [text(result) for result in results] == [str(n) for n in range(20)]


async def test_twenty_first_needs_share_one_connection(make: MakeConnection, tmp_path: Path) -> None:
    connection = make(hostile("--record", str(tmp_path / "record")))
    await asyncio.gather(*(connection.list_tools() for _ in range(20)))
    assert len(records(tmp_path / "record", "started")) == 1


async def test_a_waiter_that_gives_up_does_not_end_the_attempt_of_the_others(make: MakeConnection) -> None:
    connection = make(hostile("--slow-start", "0.5"))
    first, second = asyncio.create_task(connection.connect()), asyncio.create_task(connection.connect())
    await until(lambda: connection.state.status == "connecting")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    assert connection.state.status == "connected"


async def test_a_stopped_call_is_stopped_at_once_told_to_the_server_and_its_siblings_live(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    connection = make(hostile("--record", str(record)))
    sibling = asyncio.create_task(connection.call_tool("wait", {"seconds": 1}))
    stopped = asyncio.create_task(connection.call_tool("wait", {"seconds": 60}))
    await until(lambda: len(records(record, "call")) == 2)
    began = time.perf_counter()
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    assert time.perf_counter() - began < 0.1
    await until(lambda: records(record, "cancelled"))
    (call,) = [each for each in records(record, "call") if each["arguments"] == {"seconds": 60}]
    assert [each["requestId"] for each in records(record, "cancelled")] == [call["id"]]
    assert not (await sibling).is_error


async def test_a_stop_is_answered_at_once_although_the_server_reads_nothing(make: MakeConnection) -> None:
    # The server's input is full: neither the calls nor the notices of their cancellation can be written.
    connection = make(scripted(tools_call="ignore"))
    await connection.connect()
    os.kill(children()[0].pid, signal.SIGSTOP)
    calls = [asyncio.create_task(connection.call_tool("tool", {"text": "x" * 200_000})) for _ in range(3)]
    for _ in range(20):
        await asyncio.sleep(0)
    began = time.perf_counter()
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    assert time.perf_counter() - began < 0.1
    os.kill(children()[0].pid, signal.SIGCONT)


async def test_a_silent_call_ends_at_its_limit_and_is_cancelled_on_the_wire(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    connection = make(hostile("--record", str(record)), call_time_limit=0.3)
    assert await failure(connection.call_tool("silent", {})) == "timeout"
    await until(lambda: records(record, "cancelled"))
    assert await failure(connection.call_tool("foreign_id", {})) == "timeout"
    assert text(await connection.call_tool("echo", {"text": "still here"})) == "still here"


async def test_progress_restarts_the_limit_of_silence_but_not_the_limit_in_all(make: MakeConnection) -> None:
    steps = {"steps": 10, "seconds": 2}
    assert text(await make(hostile(), call_time_limit=1).call_tool("progress", steps)) == "done"
    bounded = make(hostile(), name="bounded", call_time_limit=1, longest_call=1.2)
    assert await failure(bounded.call_tool("progress", steps)) == "timeout"


async def test_progress_is_reported_at_most_ten_times_a_second_and_the_last_always(make: MakeConnection) -> None:
    seen: list[tuple[float, float | None, str | None]] = []
    connection = make(hostile())
    await connection.connect()
    began = time.monotonic()
    await connection.call_tool("progress", {"steps": 2000, "seconds": 1}, lambda *report: seen.append(report))
    assert 2 <= len(seen) <= 10 * (time.monotonic() - began) + 2
    assert seen[-1][:2] == (2000, 2000)
    assert [report[0] for report in seen] == sorted(report[0] for report in seen)


async def test_a_result_that_does_not_fit_its_schema_is_kept_and_flagged(make: MakeConnection) -> None:
    connection = make(hostile("--mismatch", "--bad-schema"))
    tools = await connection.list_tools()
    assert {"echo", "mismatched", "bad_schema"} <= {tool.name for tool in tools} and connection.state.warnings == ()
    mismatched = await connection.call_tool("mismatched", {})
    assert (
        mismatched.content
        and (mismatched.meta or {})["deskhand/schemaMismatch"] == "the structured content does not fit"
    )
    bad = await connection.call_tool("bad_schema", {})
    assert bad.content and (bad.meta or {})["deskhand/schemaMismatch"] == "the schema is not valid"
    assert "deskhand/schemaMismatch" not in ((await connection.call_tool("echo", {"text": "x"})).meta or {})


async def test_a_server_cannot_use_deskhands_own_keys(make: MakeConnection) -> None:
    forged = {"deskhand/large": "t", "deskhand/schemaMismatch": "no", "deskhand/": 1, "com.example/kept": 2}
    connection = make(
        scripted(
            tools_call={"content": [], "_meta": forged},
            resources_read={"contents": [], "_meta": forged},
        )
    )
    assert (await connection.call_tool("tool", {})).meta == {"com.example/kept": 2}
    assert (await connection.read_resource("a://b")).meta == {"com.example/kept": 2}


async def test_a_message_that_was_too_large_keeps_its_mark_and_is_not_checked(
    make: MakeConnection, tmp_path: Path
) -> None:
    async def read_large(file: Path) -> bytes:
        identifier = json.loads(file.read_bytes())["id"]
        file.unlink()
        reduced = {"content": [{"type": "text", "text": "head"}], "_meta": {"deskhand/large": "token"}}
        return json.dumps({"jsonrpc": "2.0", "id": identifier, "result": reduced}).encode()

    schema = {"type": "object", "required": ["count"]}
    tool = {"name": "tool", "inputSchema": {"type": "object"}, "outputSchema": schema}
    large = {"content": [{"type": "text", "text": "x" * 2**20}]}
    connection = make(scripted_by(tmp_path, tools_list={"tools": [tool]}, tools_call=large), read_large=read_large)
    await connection.list_tools()
    result = await connection.call_tool("tool", {})
    assert (text(result), result.meta) == ("head", {"deskhand/large": "token"})


async def test_what_a_server_says_of_an_error_is_in_its_log_and_not_in_the_diagnostic(make: MakeConnection) -> None:
    connection = make(scripted(tools_call={"error": {"code": -32000, "message": "the s3cr3t reason"}}))
    with pytest.raises(AssistantError) as raised:
        await connection.call_tool("tool", {})
    assert (raised.value.diagnostic.code, raised.value.diagnostic.values["number"]) == ("server_error", -32000)
    assert "s3cr3t" not in str(raised.value)
    assert connection.log.tail(1) == ["error -32000: the s3cr3t reason"]
    assert connection.state.status == "connected"


# Lists


async def test_pages_are_followed_and_those_without_end_are_left_with_a_warning(make: MakeConnection) -> None:
    paged = make(hostile("--page-size", "3"), name="paged")
    assert len(await paged.list_tools()) == len(await make(hostile(), name="whole").list_tools()) > 3
    assert paged.state.warnings == ()
    for switch, reason in (("--same-cursor", "its pages repeat"), ("--endless-pages", "it has more than 100 pages")):
        connection = make(hostile(switch), name=switch.strip("-"))
        names = [tool.name for tool in await connection.list_tools()]
        assert len(names) == len(set(names))
        assert [warning.values["reason"] for warning in connection.state.warnings] == [reason]


async def test_entries_outside_the_protocol_are_left_out_and_counted(make: MakeConnection) -> None:
    good = {"name": "good", "inputSchema": {"type": "object"}}
    tools = [good, {"name": 7}, "tool", {"inputSchema": {}}, {**good, "name": "other", "annotations": "read-only"}]
    tools += [{"name": "no object", "inputSchema": {"type": "string"}}, {"name": "none", "inputSchema": None}]
    prompts = [{"name": "good", "unknown": {}}, {"title": "bad"}]
    connection = make(scripted(tools_list={"tools": tools}, prompts_list={"prompts": prompts}))
    assert [tool.name for tool in await connection.list_tools()] == ["good"]
    assert [prompt.name for prompt in await connection.list_prompts()] == ["good"]
    reasons = [str(warning.values["reason"]) for warning in connection.state.warnings]
    assert reasons == ["6 entries are outside the protocol", "1 entries are outside the protocol"]


async def test_an_input_schema_without_a_type_is_an_object_s(make: MakeConnection) -> None:
    """A real server lists its tools so, since a package that it uses has changed."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#"}
    tools = [{"name": "untyped", "inputSchema": schema}, {"name": "any", "inputSchema": {}, "outputSchema": "none"}]
    connection = make(scripted(tools_list={"tools": tools}))
    listed = await connection.list_tools()
    assert [tool.input_schema for tool in listed] == [{"type": "object", **schema}, {"type": "object"}]
    assert connection.state.warnings == ()


@pytest.mark.parametrize("switches", [("declared", "legacy"), ("undeclared", "legacy"), ("declared", "modern")])
async def test_a_change_of_a_list_is_told(make: MakeConnection, switches: tuple[str, str]) -> None:
    changed: list[str] = []
    connection = make(hostile("--list-changed", switches[0], "--era", switches[1]))
    connection.list_changed.connect(changed.append)
    await connection.call_tool("add_tool", {})
    await until(lambda: changed)
    assert changed == ["tools"]
    assert "added_1" in {tool.name for tool in await connection.list_tools()}


async def test_a_server_of_the_newer_era_is_asked_to_tell_of_changes(make: MakeConnection) -> None:
    server: MCPServer[object] = MCPServer("growing")

    @server.tool()
    async def grow(ctx: Context) -> str:
        server.add_tool(lambda: "new", name="new", description="New.")
        await ctx.notify_tools_changed()
        return "grown"

    changed: list[str] = []
    connection = make(name="deskhand", kind="builtin", builtin=server)
    connection.list_changed.connect(changed.append)
    assert [tool.name for tool in await connection.list_tools()] == ["grow"]
    await connection.call_tool("grow", {})
    await until(lambda: changed)
    assert changed == ["tools"]
    assert [tool.name for tool in await connection.list_tools()] == ["grow", "new"]


# Eras


async def test_a_server_that_ends_at_the_newer_question_is_started_again_for_the_older_and_remembered(
    make: MakeConnection, paths: Paths, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    command = hostile("--exit-on-discover", "--record", str(record))
    await make(command).connect()
    assert len(records(record, "started")) == 2
    await until(lambda: legacy_servers(paths))
    await make(command).connect()
    assert len(records(record, "started")) == 3
    await until(lambda: len(records(record, "request")) == 5)
    methods = [request["method"] for request in records(record, "request")]
    assert methods == ["server/discover"] + 2 * ["initialize", "notifications/initialized"]


async def test_a_server_that_ignores_the_newer_question_is_asked_in_the_older_way_and_remembered(
    make: MakeConnection, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_client, "_PATIENCE", 0.3)
    record = tmp_path / "record"
    command = scripted_by(tmp_path, record=str(record), server_discover="ignore")
    began = time.monotonic()
    await make(command).connect()
    assert time.monotonic() - began < 9  # the SDK would wait for ten seconds
    await until(lambda: legacy_servers(paths))
    await make(command).connect()
    await until(lambda: len(record.read_text().splitlines()) == 5)
    methods = [json.loads(line)["method"] for line in record.read_text().splitlines()]
    assert methods == ["server/discover"] + 2 * ["initialize", "notifications/initialized"]


async def test_a_server_that_is_struck_dumb_by_the_newer_question_is_started_again_within_the_startup_limit(
    make: MakeConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_client, "_PATIENCE", 0.3)
    monkeypatch.setattr(lifecycle, "_RESERVE", 5)
    connection = make(scripted_by(tmp_path, server_discover="ignore", deaf=True), startup_time_limit=10)
    began = time.monotonic()
    await connection.connect()
    assert time.monotonic() - began < 10
    assert (connection.state.status, connection.state.protocol_version) == ("connected", "2025-11-25")


async def test_a_server_that_is_slow_to_start_is_waited_for_and_started_once(
    make: MakeConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_client, "_PATIENCE", 0.2)
    for era in ("legacy", "modern", "both"):
        record = tmp_path / era
        connection = make(hostile("--slow-start", "1.5", "--era", era, "--record", str(record)), name=era)
        await connection.connect()
        # Both questions wait for it when it begins to read; one that knows both eras takes them at once and in either order.
        expected = {"legacy": {"2025-11-25"}, "modern": {"2026-07-28"}}.get(era, {"2025-11-25", "2026-07-28"})
        assert connection.state.protocol_version in expected
        assert [tool.name for tool in await connection.list_tools()]
        assert len(records(record, "started")) == 1


async def test_a_remembered_server_that_has_become_newer_is_asked_again(
    make: MakeConnection, paths: Paths, tmp_path: Path
) -> None:
    script = tmp_path / "server.json"
    command = [*scripted_by(tmp_path)[:2], f"@{script}"]
    script.write_text(json.dumps({"server/discover": "exit"}))
    await make(command).connect()
    await until(lambda: legacy_servers(paths))
    script.write_text(json.dumps({"initialize": {"error": {"code": -32022, "message": "", "data": {"supported": []}}}}))
    updated = make(command)
    assert await failure(updated.connect()) == "protocol_unsupported"
    script.write_text(json.dumps({}))
    await updated.connect()
    assert updated.state.status == "connected"


async def test_a_definition_can_spare_a_server_the_newer_question(make: MakeConnection, tmp_path: Path) -> None:
    record = tmp_path / "record"
    await make(hostile("--record", str(record)), protocol="legacy").connect()
    await until(lambda: len(records(record, "request")) == 2)
    assert [each["method"] for each in records(record, "request")] == ["initialize", "notifications/initialized"]


async def test_a_version_that_nobody_knows_is_told(make: MakeConnection) -> None:
    answer = {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    assert await failure(make(scripted(initialize=answer)).connect()) == "protocol_unsupported"


# Failing to connect


async def test_a_server_that_ends_at_its_start_is_told_with_stage_status_and_error_output(make: MakeConnection) -> None:
    connection = make(hostile("--exit-at-start", "3"))
    assert await failure(connection.connect()) == "server_exited"
    state = connection.state
    assert state.status == "failed" and state.retry_in is None and state.failure is not None
    assert (state.failure.stage, state.failure.exit_status) == ("handshake", 3)
    assert state.failure.error_output == "fatal: no configuration found"
    assert "with status 3" in state.failure.diagnostic.message
    assert children() == []


async def test_a_command_that_is_not_there_is_told(make: MakeConnection) -> None:
    connection = make(["no-such-command-anywhere"])
    assert await failure(connection.connect()) == "command_not_found"
    assert connection.state.failure is not None and connection.state.failure.stage == "start"
    assert await failure(make(hostile(), name="nowhere", cwd="/no/such/folder").connect()) == "configuration_invalid"


async def test_a_silent_server_fails_at_its_startup_limit_and_is_gone(make: MakeConnection) -> None:
    connection = make(hostile("--slow-start", "600"), startup_time_limit=0.5)
    assert await failure(connection.connect()) == "timeout"
    assert connection.state.status == "failed" and children() == []


async def test_a_need_tries_again_what_failed_before(make: MakeConnection, tmp_path: Path) -> None:
    script = tmp_path / "server.json"
    script.write_text(json.dumps({"server/discover": "exit", "initialize": "exit"}))
    connection = make([*scripted_by(tmp_path)[:2], f"@{script}"])
    assert await failure(connection.list_tools()) == "server_exited"
    script.write_text("{}")
    assert len(await connection.list_tools()) == 1
    assert connection.state.failure is None


async def test_what_must_not_be_connected_is_not(make: MakeConnection, tmp_path: Path) -> None:
    record = tmp_path / "record"
    command = hostile("--record", str(record))
    consent = Consent(tmp_path / "consent.json")
    asking = make(command, name="asking", consent=consent)
    assert asking.state.status == "needs_consent"
    assert await failure(asking.connect()) == await failure(asking.list_tools()) == "consent_required"
    disabled = make(command, name="disabled", disabled=True)
    assert disabled.state.status == "disabled"
    assert await failure(disabled.connect()) == await failure(disabled.list_tools()) == "server_disabled"
    manual = make(command, name="manual", start="manual")
    assert await failure(manual.list_tools()) == "server_not_started"
    assert not record.exists()
    consent.give(asking.definition)
    asking.consent_changed()
    assert asking.state.status == "idle"
    await asyncio.gather(asking.connect(), manual.connect())
    assert len(await manual.list_tools()) > 1
    assert len(records(record, "started")) == 2


# Dying and living again


async def test_a_server_killed_while_idle_shows_red_within_a_tenth_of_a_second_and_comes_back(
    make: MakeConnection,
) -> None:
    connection = make(hostile(), backoff=(0.05, 0.1))
    changed: list[str] = []
    connection.list_changed.connect(changed.append)
    await connection.connect()
    states = watch(connection)
    began = time.perf_counter()
    children()[0].kill()
    await until(lambda: connection.state.status != "connected")
    assert time.perf_counter() - began < 0.1
    await until(lambda: connection.state.status == "connected")
    assert [state.status for state in states[:2]] == ["failed", "failed"]
    assert states[0].failure is not None and states[0].failure.stage == "running"
    assert (states[0].failure.exit_status, states[1].retry_in) == (-signal.SIGKILL, 0.05)
    assert text(await connection.call_tool("echo", {"text": "back"})) == "back"
    assert sorted(changed) == ["prompts", "resources", "tools"]  # nobody knows what changed meanwhile


async def test_a_server_killed_during_calls_answers_them_all_and_nothing_is_ever_sent_again(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    connection = make(hostile("--record", str(record)), backoff=(0.05,))
    await connection.connect()
    calls = [asyncio.create_task(connection.call_tool("wait", {"seconds": 60, "n": n})) for n in range(5)]
    await until(lambda: len(records(record, "call")) == 5)
    children()[0].kill()
    codes = await asyncio.gather(*(failure(call) for call in calls))
    assert codes == ["server_exited"] * 5
    await until(lambda: connection.state.status == "connected")
    assert text(await connection.call_tool("echo", {"text": "new"})) == "new"
    names = [each["name"] for each in records(record, "call")]
    assert (names, len(records(record, "started"))) == (["wait"] * 5 + ["echo"], 2)


async def test_an_answer_sent_just_before_the_end_still_counts(make: MakeConnection) -> None:
    connection = make(scripted(tools_call="exit after"), backoff=())
    assert text(await connection.call_tool("tool", {})) == "done"
    await until(lambda: connection.state.status == "failed")
    assert connection.state.failure is not None and connection.state.failure.exit_status == 5


async def test_a_server_that_ends_during_a_call_is_told_with_its_status(make: MakeConnection) -> None:
    connection = make(hostile("--exit-on-call", "1"), backoff=())
    with pytest.raises(AssistantError) as raised:
        await connection.call_tool("echo", {"text": "x"})
    assert "ended with status 3; whether the call took effect is not known" in str(raised.value)
    await until(lambda: connection.state.failure is not None and connection.state.failure.error_output)
    assert connection.state.failure is not None and "something broke" in connection.state.failure.error_output


async def test_a_server_that_closes_its_output_is_lost_although_it_lives(make: MakeConnection) -> None:
    connection = make(hostile(), backoff=())
    assert await failure(connection.call_tool("close_output", {})) == "connection_failed"
    await until(lambda: connection.state.status == "failed")
    await until(lambda: children() == [])


async def test_a_client_that_breaks_down_is_not_taken_for_a_stop_and_is_replaced(
    make: MakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault in the library")

    connection = make(hostile(), backoff=(0.05,))
    await connection.connect()
    calls = [asyncio.create_task(connection.call_tool("wait", {"seconds": 60})) for _ in range(2)]
    monkeypatch.setattr(JSONRPCDispatcher, "_dispatch_notification", broken)  # it ends the SDK's task group
    assert await failure(connection.call_tool("progress", {"steps": 1, "seconds": 0})) == "connection_failed"
    assert await asyncio.gather(*map(failure, calls)) == ["connection_failed"] * 2
    monkeypatch.undo()
    await until(lambda: connection.state.status == "connected")
    assert text(await connection.call_tool("echo", {"text": "back"})) == "back"


async def test_a_request_that_the_client_cancels_by_itself_fails_and_does_not_stop_the_asker() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    life = Life(None, "server", None)  # type: ignore[arg-type]
    assert await failure(life.request("call", cancelled, Limits(10, 10))) == "connection_failed"
    assert not asyncio.current_task().cancelling()  # type: ignore[union-attr]


async def test_a_server_that_keeps_dying_is_given_up_after_the_last_pause_and_lives_by_hand(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    dying = {"tools/list": "exit", "record": str(record)}
    script = tmp_path / "server.json"
    script.write_text(json.dumps(dying))
    connection = make([*scripted_by(tmp_path)[:2], f"@{script}"], backoff=(0.01, 0.02, 0.03))
    states = watch(connection)
    await connection.connect()
    for _ in range(3):  # each death is of a server that was connected
        await failure(connection.list_tools())
        await until(lambda: connection.state.status == "connected")
    await failure(connection.list_tools())
    await until(lambda: connection.state.status == "failed" and children() == [])
    assert [state.retry_in for state in states if state.retry_in is not None] == [0.01, 0.02, 0.03]
    assert connection.state.retry_in is None
    script.write_text("{}")
    await connection.reconnect()
    assert len(await connection.list_tools()) == 1


async def test_attempts_that_fail_count_as_well_however_long_the_life_before_them(
    make: MakeConnection, tmp_path: Path
) -> None:
    script = tmp_path / "server.json"
    script.write_text("{}")
    connection = make(
        [*scripted_by(tmp_path)[:2], f"@{script}"], backoff=(0.01, 0.02), settled_after=0.0, protocol="legacy"
    )
    states = watch(connection)
    await connection.connect()
    script.write_text(json.dumps({"initialize": "exit"}))
    children()[0].kill()
    await until(
        lambda: connection.state.status == "failed" and [s.retry_in for s in states if s.retry_in] == [0.01, 0.02]
    )
    await until(lambda: connection.state.status == "failed" and connection.state.retry_in is None)
    assert connection.state.failure is not None and connection.state.failure.stage == "handshake"


async def test_a_server_that_stayed_for_long_begins_with_the_first_pause_again(make: MakeConnection) -> None:
    connection = make(hostile(), backoff=(0.01, 0.02), settled_after=0.0)
    states = watch(connection)
    await connection.connect()
    for deaths in (1, 2, 3):
        children()[0].kill()
        await until(lambda: len([s for s in states if s.retry_in]) == deaths)  # noqa: B023
        await until(lambda: connection.state.status == "connected")
    assert [state.retry_in for state in states if state.retry_in] == [0.01] * 3


# Leaving


async def test_closing_answers_whoever_waits_and_leaves_no_process(make: MakeConnection) -> None:
    connection = make(hostile())
    call = asyncio.create_task(connection.call_tool("wait", {"seconds": 60}))
    await until(lambda: connection.state.status == "connected")
    await connection.close()
    assert await failure(call) == "cancelled"
    assert connection.state.status == "idle" and children() == []
    await connection.connect()  # it may be connected again
    await connection.close(for_good=True)
    assert await failure(connection.connect()) == "server_disabled"


async def test_quitting_while_a_server_is_being_connected_ends_it(make: MakeConnection) -> None:
    connection = make(hostile("--slow-start", "600"))
    waiting = asyncio.create_task(connection.connect())
    await until(children)
    await connection.close()
    assert await failure(waiting) == "cancelled"
    assert connection.state.status == "idle" and children() == []


async def test_quitting_during_a_pause_ends_the_attempts(make: MakeConnection) -> None:
    connection = make(hostile(), backoff=(600.0,))
    await connection.connect()
    children()[0].kill()
    await until(lambda: connection.state.retry_in is not None)
    await connection.close()
    assert connection.state == ServerState("idle")


async def test_a_server_that_is_closed_while_it_is_dying_is_not_brought_back(make: MakeConnection) -> None:
    connection = make(hostile("--ignore-end"), backoff=(0.01,))
    await failure(connection.call_tool("close_output", {}))
    await until(lambda: connection.state.status == "failed")
    assert children() != []  # its process takes its time
    await connection.close()
    assert (connection.state.status, children()) == ("idle", [])


async def test_a_stubborn_server_and_its_children_are_gone_within_six_seconds(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    connection = make(hostile("--ignore-end", "--grandchild", "group", "--record", str(record)))
    await connection.connect()
    await until(lambda: records(record, "grandchild"))
    began = time.monotonic()
    await connection.close()
    assert time.monotonic() - began < 6
    for each in (*records(record, "started"), *records(record, "grandchild")):
        assert not psutil.pid_exists(each["pid"]) or psutil.Process(each["pid"]).status() == psutil.STATUS_ZOMBIE


async def test_a_connection_is_used_and_closed_from_other_tasks_than_it_was_made_in(make: MakeConnection) -> None:
    connection = make(hostile())
    await asyncio.create_task(connection.connect())
    call = asyncio.create_task(connection.call_tool("wait", {"seconds": 60}))
    await asyncio.create_task(connection.list_tools())
    await asyncio.create_task(connection.close())
    assert await failure(call) == "cancelled"


def scripted_by(folder: Path, **script: Any) -> list[str]:
    """`scripted`, its script in a file: for scripts that are long, or that change while the command stays the same."""
    command = scripted(**script)
    file = folder / "script.json"
    file.write_text(command[-1])
    return [*command[:-1], f"@{file}"]


async def test_an_answer_outside_the_protocol_is_described_in_the_log_without_its_values(make: MakeConnection) -> None:
    connection = make(scripted(tools_call={"content": [{"type": "text", "text": None, "canary": "canary-1"}]}))
    await connection.call_tool("tool", {})
    told = [line for line in connection.log.tail(9) if line.startswith("outside the protocol: content.0")]
    assert told
    assert "canary-1" not in "".join(connection.log.tail(9))
