"""A connection to servers over HTTP: sessions that are forgotten, refusals, broken connections."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path

import pytest

from desktop import processes
from desktop.errors import AssistantError
from tests import real_servers
from tests.host.conftest import LONGEST_WAIT, MakeConnection, failure, records, text, until
from tests.servers.running import friendly, hostile, http_server

pytestmark = pytest.mark.anyio


async def test_a_server_of_the_newer_era_is_used_over_http(make: MakeConnection) -> None:
    async with http_server(friendly()) as url:
        connection = make(kind="http", url=url)
        results = await asyncio.gather(*(connection.call_tool("echo", {"text": str(n)}) for n in range(20)))
        assert [text(result) for result in results] == [str(n) for n in range(20)]
        assert connection.state.protocol_version == "2026-07-28"
        assert len(await connection.list_prompts()) == 3
        await connection.close()


@pytest.mark.parametrize(("kind", "mode", "path"), [("http", "streamableHttp", "mcp"), ("sse", "sse", "sse")])
async def test_the_reference_server_of_the_older_era_is_used_over_http(
    make: MakeConnection, kind: str, mode: str, path: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environment = {**os.environ, "PORT": str(port), "HOST": "127.0.0.1"}
    process = await processes.start([*real_servers.everything(), mode], environment=environment)
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    await asyncio.sleep(0.02)
        connection = make(kind=kind, url=f"http://127.0.0.1:{port}/{path}")
        seen: list[float] = []
        arguments = {"duration": 0.4, "steps": 2}
        await connection.call_tool("trigger-long-running-operation", arguments, lambda done, *_: seen.append(done))
        assert seen[-1] == 2 and connection.state.protocol_version == "2025-11-25"
        assert len(await connection.list_tools()) > 5
        calls = [connection.call_tool("echo", {"message": str(number)}) for number in range(10)]
        assert [text(result) for result in await asyncio.gather(*calls)] == [f"Echo: {number}" for number in range(10)]
        if kind == "sse":  # all answers come on one stream: its end is the server's
            process.kill()
            await until(lambda: connection.state.status == "failed")
        await connection.close()
    finally:
        processes.kill_tree(process.pid)
        await process.wait()


async def test_a_forgotten_session_is_opened_again_once_and_no_call_is_sent_twice(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    async with http_server(hostile("--forget-session", "2", "--record", str(record))) as url:
        connection = make(kind="http", url=url)
        for number in range(2):
            assert text(await connection.call_tool("echo", {"text": str(number)})) == str(number)
        assert await failure(connection.call_tool("echo", {"text": "lost"})) == "session_lost"
        await until(lambda: connection.state.status == "connected")
        assert text(await connection.call_tool("echo", {"text": "new"})) == "new"
        texts = [each["arguments"]["text"] for each in records(record, "call")]
        assert texts == ["0", "1", "new"]
        await connection.call_tool("echo", {"text": "again"})  # the session is forgotten again after it
        assert len(await connection.list_tools()) > 5  # what only reads is asked again
        initialised = [each for each in records(record, "request") if each["method"] == "initialize"]
        assert len(initialised) == 3
        await connection.close()


@pytest.mark.parametrize(
    ("switches", "code"),
    [
        (["--unauthorized"], "authentication_required"),
        (["--status", "403"], "permission_denied"),
        (["--status", "500"], "connection_failed"),
        (["--redirect", "http://127.0.0.1:9/"], "connection_failed"),
    ],
)
async def test_a_refusal_is_told_for_what_it_is(make: MakeConnection, switches: list[str], code: str) -> None:
    async with http_server(hostile(*switches)) as url:
        connection = make(kind="http", url=url)
        assert await failure(connection.connect()) == code
        assert connection.state.status == "failed" and connection.state.failure is not None
        assert connection.state.failure.stage == "handshake"


async def test_a_server_that_takes_no_more_calls_is_asked_again_after_the_time_it_names(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    async with http_server(hostile("--busy", "tools/call", "2", "--record", str(record))) as url:
        connection = make(kind="http", url=url)
        await connection.connect()
        told: list[str | None] = []
        begun = time.monotonic()
        result = await connection.call_tool("echo", {"text": "late"}, lambda _, __, message: told.append(message))
        assert text(result) == "late" and time.monotonic() - begun >= 2
        assert told == ["The server takes the next request in 1 s."] * 2
        assert len(records(record, "call")) == 1
        assert "The request is sent again in 1 s, as the server asks." in connection.log.tail(5)
        await connection.close()


async def test_a_wait_that_is_longer_than_the_limit_is_told_at_once(make: MakeConnection) -> None:
    async with http_server(hostile()) as url:
        connection = make(kind="http", url=url, call_time_limit=20)
        with pytest.raises(AssistantError) as raised:
            await connection.call_tool("status", {"code": 429, "retry_after": 30})
        assert raised.value.diagnostic.code == "rate_limited"
        assert "it takes the next request in 30 seconds" in str(raised.value)
        assert text(await connection.call_tool("echo", {"text": "still here"})) == "still here"
        await connection.close()


async def test_a_server_that_takes_no_more_connections_is_connected_when_it_says_it_may_be(
    make: MakeConnection,
) -> None:
    async with http_server(hostile("--busy", "initialize", "1")) as url:
        connection = make(kind="http", url=url, protocol="legacy", backoff=(0.01, 0.01))
        assert await failure(connection.connect()) == "rate_limited"
        assert (connection.state.status, connection.state.retry_in) == ("failed", 1)
        await until(lambda: connection.state.status == "connected")
        await connection.close()


async def test_a_header_may_refer_to_a_secret(make: MakeConnection) -> None:
    async def secret(_name: str) -> str | None:
        return "good"

    async with http_server(hostile("--unauthorized")) as url:
        headers = {"Authorization": "Bearer ${keyring:token}"}
        connection = make(kind="http", url=url, headers=headers, secret=secret)
        await connection.connect()
        await connection.close()


async def test_a_server_that_is_not_there_is_told_and_found_when_it_is(make: MakeConnection) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    connection = make(kind="http", url=f"http://127.0.0.1:{port}/mcp")
    assert await failure(connection.connect()) == "connection_failed"
    async with http_server(hostile(), port=port):
        assert text(await connection.call_tool("echo", {"text": "here"})) == "here"
        await connection.close()


async def test_a_connection_cut_during_one_call_harms_no_other_and_nothing_is_sent_again(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    async with http_server(hostile("--record", str(record))) as url:
        connection = make(kind="http", url=url)
        await connection.connect()
        sibling = asyncio.create_task(connection.call_tool("wait", {"seconds": 1}))
        for where in ("before", "json", "sse"):
            assert await failure(connection.call_tool("cut", {"where": where})) == "connection_failed"
        assert not (await sibling).is_error
        assert text(await connection.call_tool("echo", {"text": "next"})) == "next"
        assert [each["name"] for each in records(record, "call")].count("cut") == 3
        await connection.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_stopped_call_is_told_to_the_server(make: MakeConnection, tmp_path: Path, era: str) -> None:
    record = tmp_path / "record"
    async with http_server(hostile("--era", era, "--record", str(record))) as url:
        connection = make(kind="http", url=url)
        call = asyncio.create_task(connection.call_tool("wait", {"seconds": 60}))
        await until(lambda: records(record, "call"))
        call.cancel()
        await asyncio.wait({call})
        # The older era has a notice for it; in the newer one the stream is closed.
        await until(lambda: records(record, "cancelled" if era == "legacy" else "disconnected"))
        assert text(await connection.call_tool("echo", {"text": "next"})) == "next"
        await connection.close()
