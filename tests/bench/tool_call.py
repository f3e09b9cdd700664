"""A tool call through Deskhand's connection against the same call through the bare SDK: server-everything over stdio."""

from __future__ import annotations

import asyncio
import statistics
import time

from mcp import Client, StdioServerParameters

from tests import real_servers
from tests.bench._measuring import core, home, report

CALLS = 300


async def main() -> None:
    command = real_servers.everything()
    with home() as paths:
        async with (
            core(paths, {"everything": command}) as deskhand,
            Client(StdioServerParameters(command=command[0], args=command[1:])) as client,
        ):
            connection = deskhand.host.connection("everything")
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
    figure = statistics.median(ours[20:]) / statistics.median(bare[20:])
    milliseconds = statistics.median(ours[20:]) * 1000
    report("tool_call", figure, "ratio", against="the bare SDK", budget=1.2, milliseconds=round(milliseconds, 3))


if __name__ == "__main__":
    asyncio.run(main())
