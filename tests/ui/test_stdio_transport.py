"""The transport of servers that are processes, on the window's loop: it must not rely on how a loop is made."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED

from desktop.host.server_log import MOST_LINES, ServerLog
from desktop.host.transport import StdioTransport
from tests.servers.running import hostile

pytestmark = pytest.mark.anyio


async def test_a_server_is_called_sends_much_dies_and_is_noticed(tmp_path: Path) -> None:
    async def read_large(file: Path) -> bytes:
        message = json.loads(file.read_bytes())
        file.unlink()
        return json.dumps({**message, "result": {"content": [{"type": "text", "text": "large"}]}}).encode()

    log = ServerLog(None)
    transport = StdioTransport(
        hostile("--stderr-flood", "0.5"),
        environment=dict(os.environ),
        folder=None,
        log=log,
        read_large=read_large,
        spool_folder=tmp_path / "spool",
    )
    async with asyncio.timeout(60), Client(transport, mode="legacy") as client:
        result = await client.call_tool("huge_text", {"megabytes": 5})
        assert result.content[0].text == "large"  # type: ignore[union-attr]
        waiting = asyncio.create_task(client.call_tool("silent"))
        await client.call_tool("echo", {"text": "the other is under way"})
        assert transport.pid is not None
        os.kill(transport.pid, signal.SIGKILL)
        await transport.ended.wait()
        with pytest.raises(MCPError) as raised:
            await waiting
        assert raised.value.code == CONNECTION_CLOSED
    assert transport.exit_status == -signal.SIGKILL
    assert len(log.tail(10**6)) == MOST_LINES
    assert list((tmp_path / "spool").iterdir()) == []
