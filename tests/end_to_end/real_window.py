"""Deskhand's window as a person has it: a process of its own on a real screen, driven by mouse and keyboard."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from desktop.paths import Paths
from tests.desktop_session import display
from tests.end_to_end.programs import environment


class RealWindow:
    """The running program.

    Attributes:
        process: The program's.
        seconds_to_show: From its start until the window was on the screen.
    """

    def __init__(self, process: asyncio.subprocess.Process, variables: dict[str, str], seconds_to_show: float) -> None:
        self.process = process
        self.seconds_to_show = seconds_to_show
        self._variables = variables

    @property
    def title(self) -> str:
        """What the window is called."""
        command = ["xdotool", "search", "--onlyvisible", "--name", "Deskhand", "getwindowname"]
        return subprocess.run(command, env=self._variables, capture_output=True, text=True, check=False).stdout

    async def type(self, text: str) -> None:
        await self._xdotool("type", "--delay", "5", "--", text)

    async def key(self, *names: str) -> None:
        """Presses keys by their X names, such as ``Return`` or ``ctrl+n``."""
        await self._xdotool("key", "--delay", "20", *names)

    async def allows(self, allowed: Callable[[], Any]) -> Any:
        """Goes to the call that waits and allows it once, until that is seen: the card comes soon after the call is kept."""

        async def press() -> None:
            while True:
                await self.key("ctrl+j", "a")
                await asyncio.sleep(0.5)

        pressing = asyncio.create_task(press())
        try:
            return await until(allowed)
        finally:
            pressing.cancel()
            await asyncio.gather(pressing, return_exceptions=True)

    async def click(self, x: int, y: int) -> None:
        await self._xdotool("mousemove", str(x), str(y), "click", "1")

    async def screenshot(self, file: Path) -> None:
        await _run(self._variables, "import", "-window", "root", str(file))

    async def _xdotool(self, *arguments: str) -> None:
        await _run(self._variables, "xdotool", *arguments)


@asynccontextmanager
async def real_window(*arguments: str, size: str = "1280x800", **extra: str) -> AsyncIterator[RealWindow]:
    """Starts ``deskhand`` on a screen of its own and waits for its window; ends it as a session's end would (SIGTERM)."""
    with display(size) as name:
        variables = environment(DISPLAY=name, QT_QPA_PLATFORM="xcb", **extra)
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "desktop", *arguments, env=variables)
        try:
            await _run(variables, "xdotool", "search", "--sync", "--onlyvisible", "--name", "Deskhand")
            yield RealWindow(process, variables, time.monotonic() - started)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                try:
                    async with asyncio.timeout(10):
                        await process.wait()
                except TimeoutError:
                    process.kill()
                    await process.wait()
                    raise


def messages(paths: Paths) -> list[dict[str, Any]]:
    """All messages that the history holds, oldest first."""
    if not paths.history_file.exists():
        return []
    connection = sqlite3.connect(f"file:{paths.history_file}?mode=ro", uri=True, timeout=5)
    try:
        return [json.loads(row[0]) for row in connection.execute("SELECT content FROM messages ORDER BY created")]
    except sqlite3.OperationalError:  # the tables are being made
        return []
    finally:
        connection.close()


def calls(paths: Paths) -> list[dict[str, Any]]:
    """All tool calls that the history holds, oldest first."""
    return [part for message in messages(paths) for part in message["parts"] if part["kind"] == "tool_call"]


async def until(condition: Callable[[], Any], time_limit: float = 60) -> Any:
    """Waits until a condition holds that another process brings about, and returns what it gave."""
    deadline = time.monotonic() + time_limit
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.02)
    return found


async def _run(variables: dict[str, str], *command: str, time_limit: float = 20) -> None:
    process = await asyncio.create_subprocess_exec(*command, env=variables, stdout=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(time_limit):
            assert await process.wait() == 0, command
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
