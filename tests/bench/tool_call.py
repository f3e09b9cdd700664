"""A tool call through Deskhand's connection against the same call through the bare SDK: server-everything over stdio."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.server_config import read_configuration
from desktop.paths import Paths
from tests import real_servers
from tests.end_to_end.programs import write_servers

CALLS = 300


async def main() -> None:
    command = real_servers.everything()
    with tempfile.TemporaryDirectory() as home:
        root = Path(home)
        paths = Paths(root / "config", root / "data", root / "cache", root / "logs", root / "results")
        configuration = read_configuration(write_servers(paths.servers_file, everything=command))
        host = Host(configuration, paths=paths, read_large=None, builtin=None, consent=Consent.for_everything())
        await host.start()
        connection = host.connection("everything")
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            ours: list[float] = []
            bare: list[float] = []
            for number in range(CALLS):  # interleaved, so that both see the same machine
                arguments = {"message": str(number)}
                started = time.perf_counter()
                await client.call_tool("echo", arguments)
                bare.append(time.perf_counter() - started)
                started = time.perf_counter()
                await connection.call_tool("echo", arguments, lambda *_: None)
                ours.append(time.perf_counter() - started)
        await host.close()
    figure = statistics.median(ours[20:]) / statistics.median(bare[20:])
    print(
        json.dumps(
            {
                "name": "tool_call",
                "figure": round(figure, 3),
                "unit": "ratio",
                "against": "the bare SDK",
                "budget": 1.2,
                "milliseconds": round(statistics.median(ours[20:]) * 1000, 3),
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main())
