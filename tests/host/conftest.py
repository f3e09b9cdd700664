"""Connections to real servers' processes, closed at the end of the test."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from desktop.errors import AssistantError
from desktop.host.connection import Connection
from desktop.host.consent import Consent
from desktop.host.remembered import Remembered
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import ServerLog
from desktop.paths import Paths

#: Seconds. Generous: the machine of a test may be busy with others.
LONGEST_WAIT = 30.0

MakeConnection = Callable[..., Connection]


async def no_secrets(_name: str) -> str | None:
    return None


@pytest.fixture
async def make(paths: Paths) -> AsyncIterator[MakeConnection]:
    """Makes a connection to the server of a command; fields of the definition and arguments of the connection by name."""
    made: list[Connection] = []

    def make(command: Sequence[str] = (), **given: Any) -> Connection:
        arguments = {
            name: given.pop(name)
            for name in (
                "consent",
                "secret",
                "builtin",
                "backoff",
                "settled_after",
                "longest_call",
                "read_large",
                "desk",
            )
            if name in given
        }
        kind = given.pop("kind", "stdio")
        command_fields = {"command": command[0], "args": tuple(command[1:])} if command else {}
        definition = ServerDefinition(given.pop("name", "server"), kind, **command_fields, **given)
        connection = Connection(
            definition,
            log=ServerLog(None),
            legacy_servers=Remembered(paths.cache / "legacy_servers.json"),
            spool_folder=paths.results / "spool",
            **{"consent": Consent.for_everything(), "secret": no_secrets, "read_large": None, **arguments},
        )
        made.append(connection)
        return connection

    yield make
    await asyncio.gather(*(connection.close(for_good=True) for connection in made))


def scripted(**script: Any) -> list[str]:
    """The command of ``scripted_server.py``; in the names of methods, an underscore stands for a slash."""
    named = {name.replace("_", "/"): answer for name, answer in script.items()}
    return [sys.executable, str(Path(__file__).with_name("scripted_server.py")), json.dumps(named)]


async def until(condition: Callable[[], object]) -> None:
    """Waits, bounded, until a condition holds; looks at it at every turn of the loop for a while, then every 5 ms."""
    async with asyncio.timeout(LONGEST_WAIT):
        turns = 0
        while not condition():
            turns += 1
            await asyncio.sleep(0 if turns < 100 else 0.005)


async def failure(awaitable: Any) -> str:
    """The code of the AssistantError that is raised."""
    with pytest.raises(AssistantError) as raised:
        async with asyncio.timeout(LONGEST_WAIT):
            await awaitable
    return raised.value.diagnostic.code


def text(result: Any) -> str:
    return "".join(block.text for block in result.content)


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]


def records(file: Path, event: str) -> list[dict[str, Any]]:
    """What ``hostile.py --record`` wrote of an event."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [record for record in map(json.loads, lines) if record["event"] == event]
