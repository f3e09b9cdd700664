"""Commands of the tiny servers, and their HTTP forms as running processes, for every test that needs a server."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from desktop import processes

FOLDER = Path(__file__).parent
#: Seconds. Generous: the machine of a test may be busy with others.
_START_LIMIT = 30


def hostile(*switches: str) -> list[str]:
    """The command of the server that misbehaves on demand; ``hostile.py`` describes its switches and tools."""
    return [sys.executable, str(FOLDER / "hostile.py"), *switches]


def friendly(*switches: str) -> list[str]:
    """The command of the small, well-behaved server; ``friendly.py`` describes what it offers."""
    return [sys.executable, str(FOLDER / "friendly.py"), *switches]


def asking(*switches: str) -> list[str]:
    """The command of the server whose tool asks the person; ``asking.py`` describes its switches."""
    return [sys.executable, str(FOLDER / "asking.py"), *switches]


def changing(*switches: str) -> list[str]:
    """The command of the server whose resources change; ``changing.py`` describes its switches."""
    return [sys.executable, str(FOLDER / "changing.py"), *switches]


@asynccontextmanager
async def http_server(command: Sequence[str], *, port: int = 0) -> AsyncIterator[str]:
    """Runs a server of this folder over HTTP and yields its URL; it is killed at the end.

    A `port` other than 0 brings a server back to where another one was.
    """
    process = await processes.start([*command, "--http", str(port)], stdout=PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_START_LIMIT):
            url = (await process.stdout.readline()).decode().strip()
        assert url.startswith(("http://127.0.0.1:", "https://127.0.0.1:")), f"the server did not start: {command}"
        yield url
    finally:
        processes.kill_tree(process.pid)
        await process.wait()
        # Closes the pipes at once; left to the collector they are reported as unclosed.
        process._transport.close()  # type: ignore[attr-defined]
