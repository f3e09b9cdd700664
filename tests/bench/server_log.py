"""20,000 log messages of a server with its log's window open, against the bare SDK that drops them: time, and the loop's gaps."""

from __future__ import annotations

import sys
import time

from mcp import Client, StdioServerParameters
from PySide6.QtWidgets import QApplication, QWidget

from desktop.ui import event_loop
from desktop.ui.dialogs.log_dialog import LogDialog
from tests.bench._measuring import core, gaps, home, report

MESSAGES = 20_000
SERVER = f"""
import json, sys
def send(**message):
    sys.stdout.write(json.dumps(dict(message, jsonrpc="2.0")) + chr(10))
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        server = {{"name": "flood", "version": "1"}}
        result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}, "logging": {{}}}}, "serverInfo": server}}
        send(id=asked["id"], result=result)
    elif asked.get("method") == "tools/call":
        for number in range({MESSAGES}):
            data = "message %d about something that happened" % number
            send(method="notifications/message", params={{"level": "info", "data": data}})
        send(id=asked["id"], result={{"content": []}})
    elif asked.get("method") == "tools/list":
        send(id=asked["id"], result={{"tools": [{{"name": "flood", "inputSchema": {{"type": "object"}}}}]}})
    elif "id" in asked:
        send(id=asked["id"], error={{"code": -32601, "message": "not known"}})
    sys.stdout.flush()
"""


async def main() -> None:
    command = [sys.executable, "-c", SERVER]
    with home() as paths:
        parameters = StdioServerParameters(command=command[0], args=command[1:])
        async with core(paths, {"flood": command}) as deskhand, Client(parameters, mode="legacy") as client:
            connection = deskhand.host.connection("flood")
            await connection.connect()
            window = QWidget()
            LogDialog.open_for(connection, window)
            started = time.perf_counter()
            await client.call_tool("flood", {})
            bare = time.perf_counter() - started
            async with gaps() as found:
                started = time.perf_counter()
                await connection.call_tool("flood", {})
                ours = time.perf_counter() - started
            more = {"seconds": round(ours, 2), "longest_gap_ms": round(found.longest * 1000)}
            report("server_log", ours / bare, "ratio", against="the bare SDK, which drops them", **more)
            for dialog in window.findChildren(LogDialog):
                dialog.close()


if __name__ == "__main__":
    application = QApplication([])
    event_loop.run(main())
