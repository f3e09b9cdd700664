"""A 45 MB text result and a 45 MB structured one, over stdio and HTTP, on the window's loop.

For each: the longest gap of the loop while it comes, and its time against writing the same bytes to a file and parsing them
in this process. Last: the memory that is left over once all have been spilled.
"""

from __future__ import annotations

import gc
import json
import tempfile
import time
from pathlib import Path

from PySide6.QtWidgets import QApplication

from desktop.assistant.conversation import ToolOutput
from desktop.core import Core
from desktop.ui import event_loop
from tests.bench._measuring import core, gaps, home, report, resident
from tests.servers.running import hostile, http_server

MEGABYTES = 45


async def main() -> None:
    with home() as paths:
        async with (
            http_server(hostile()) as json_url,
            http_server(hostile("--sse")) as stream_url,
            core(paths, {"stdio": hostile(), "http": json_url, "stream": stream_url}) as started,
        ):
            for server in ("stdio", "http", "stream"):
                await call(started, server, "echo", {"text": "warm"})
            before = resident()
            for server in ("stdio", "http", "stream"):
                for tool in ("huge_text", "huge_structured"):
                    await measure(started, server, tool)
            gc.collect()
            kept = (resident() - before) / 2**20
            report("large_result_memory_kept", kept, "MiB", against="before the six results", budget=50)


async def measure(started: Core, server: str, tool: str) -> None:
    async with gaps() as found:
        began = time.perf_counter()
        output = await call(started, server, tool, {"megabytes": MEGABYTES})
        took = time.perf_counter() - began
    assert output.spilled is not None
    assert output.spilled.size > MEGABYTES * 10**6
    name = f"large_result_{server}_{tool.removeprefix('huge_')}"
    ratio = took / write_and_parse(Path(output.spilled.path))
    report(name, ratio, "ratio", against="writing and parsing the same bytes", budget=3, seconds=round(took, 2))
    report(f"{name}_gap", found.longest * 1000, "ms", against="a loop that never waits", budget=100)


async def call(started: Core, server: str, tool: str, arguments: dict[str, object]) -> ToolOutput:
    connection = started.host.connection(server)
    result = await connection.call_tool(tool, arguments, lambda *_: None)
    return await started.results.output(result, conversation_id="bench", server=server)


def write_and_parse(file: Path) -> float:
    """Seconds that it takes to write a file's content to another and to parse it."""
    content = file.read_bytes()
    began = time.perf_counter()
    with tempfile.TemporaryFile() as copy:
        copy.write(content)
        json.loads(content)
    return time.perf_counter() - began


if __name__ == "__main__":
    application = QApplication([])
    event_loop.run(main())
