"""A connection under everything at once: calls, stops, closing, connecting anew, a server that is killed, from many tasks.

Row 15 of the field's failures: one task owns a server's client, whoever opens and closes it.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import psutil
import pytest

from desktop.errors import AssistantError
from desktop.host.connection import Connection
from tests.host.conftest import LONGEST_WAIT, MakeConnection, children, failure, records, text, until
from tests.servers.running import hostile, http_server

pytestmark = pytest.mark.anyio
SECONDS = 3.0
#: What may become of a request in the turmoil. Nobody who was not cancelled gets a CancelledError, and nobody waits in vain.
ENDS = {"cancelled", "server_exited", "connection_failed", "session_lost"}


class Turmoil:
    """Tasks that do things to a connection, by chance but the same ones for a seed."""

    def __init__(self, connection: Connection, seed: int) -> None:
        self.connection = connection
        self.ends: Counter[str] = Counter()
        self.most_processes = 0
        self._random = random.Random(seed)
        self._numbers = itertools.count()

    async def rage(self, *, kills: bool) -> None:
        deeds = [self.call, self.call, self.stopped_call, self.list_, self.late_waiter]
        rough = [self.connection.close, self.connection.reconnect, self.connection.connect]
        async with asyncio.timeout(LONGEST_WAIT), asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(self._keep_doing(deeds, 0.0))
            for _ in range(2):
                group.create_task(self._keep_doing(rough, 0.2))
            if kills:
                group.create_task(self._keep_doing([self.kill], 0.5))

    async def call(self) -> None:
        word = f"word {next(self._numbers)}"
        result = await self.connection.call_tool("echo", {"text": word})
        assert text(result) == word

    async def stopped_call(self) -> None:
        call = asyncio.create_task(self.connection.call_tool("wait", {"seconds": 5}))
        await asyncio.sleep(self._random.random() / 50)
        call.cancel()
        await self._cancelled(call)

    async def late_waiter(self) -> None:
        """Gives up while it is being connected."""
        waiter = asyncio.create_task(self.connection.connect())
        await asyncio.sleep(0)
        waiter.cancel()
        await self._cancelled(waiter)

    async def list_(self) -> None:
        assert {"echo", "wait"} <= {tool.name for tool in await self.connection.list_tools()}

    async def kill(self) -> None:
        for child in children():
            self.most_processes = max(self.most_processes, len(children()))
            child.kill()

    async def _cancelled(self, task: asyncio.Task[object]) -> None:
        try:
            await task
        except asyncio.CancelledError:
            self.ends["stopped"] += 1

    async def _keep_doing(self, deeds: Sequence[Callable[[], Awaitable[None]]], pause: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + SECONDS
        while loop.time() < end:
            await asyncio.sleep(pause * self._random.random())
            try:
                await self._random.choice(deeds)()
                self.ends["done"] += 1
            except AssistantError as error:
                self.ends[error.diagnostic.code] += 1


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_happens_at_once_each_request_ends_once_and_nothing_is_left(
    make: MakeConnection, tmp_path: Path, seed: int
) -> None:
    record = tmp_path / "record"
    connection = make(hostile("--record", str(record)), protocol="legacy", backoff=(0.01,) * 50, settled_after=0.0)
    turmoil = Turmoil(connection, seed)
    before = len(children())
    await turmoil.rage(kills=True)
    assert set(turmoil.ends) <= {"done", "stopped"} | ENDS
    assert turmoil.ends["done"] and turmoil.ends["stopped"]
    assert turmoil.most_processes <= 1
    words = [each["arguments"]["text"] for each in records(record, "call") if each["name"] == "echo"]
    assert len(words) == len(set(words))  # nothing was sent twice
    await connection.reconnect()  # the last deed may have killed it this very moment
    assert text(await connection.call_tool("echo", {"text": "after it all"})) == "after it all"
    await connection.close(for_good=True)
    assert connection.state.status == "idle" and len(children()) == before
    pids = [each["pid"] for each in records(record, "started")]
    assert pids
    await until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("server ")]


async def test_an_attempt_that_is_closed_in_the_moment_it_begins_keeps_nobody_waiting(make: MakeConnection) -> None:
    connection = make(hostile())
    waiting = [asyncio.create_task(connection.connect()) for _ in range(2)]
    closing = asyncio.create_task(connection.close())
    assert await failure(waiting[0]) == await failure(waiting[1]) == "cancelled"
    await closing
    assert connection.state.status == "idle"
    await connection.connect()
    assert connection.state.status == "connected"


async def test_the_same_over_http(make: MakeConnection, tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with http_server(hostile("--forget-session", "40", "--record", str(record))) as url:
        connection = make(kind="http", url=url, protocol="legacy", backoff=(0.01,) * 50, settled_after=0.0)
        turmoil = Turmoil(connection, 3)
        await turmoil.rage(kills=False)
        assert set(turmoil.ends) <= {"done", "stopped"} | ENDS
        assert turmoil.ends["done"]
        words = [each["arguments"]["text"] for each in records(record, "call") if each["name"] == "echo"]
        assert len(words) == len(set(words))
        await connection.close(for_good=True)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("server ")]
