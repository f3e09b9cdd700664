"""The person at a terminal answers Guide's questions and allows calls: a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from desktop.terminal import typed
from tests import real_servers
from tests.end_to_end.programs import environment, write_servers

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")]


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("7", {"type": "integer"}, 7),
        ("2.5", {"type": "number"}, 2.5),
        ("yes", {"type": "boolean"}, True),
        ("a, b", {"type": "array", "items": {"type": "string"}}, ["a", "b"]),
        ("1,2", {"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ('["x"]', {"type": "array"}, ["x"]),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
        ("plain", {}, "plain"),
    ],
)
def test_a_typed_line_becomes_a_value_of_the_schemas_type(text: str, schema: dict[str, object], value: object) -> None:
    assert typed(text, schema) == value


@pytest.mark.parametrize(("text", "kind"), [("x", "integer"), ("maybe", "boolean"), ("{", "object")])
def test_a_line_of_another_type_is_refused(text: str, kind: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        typed(text, {"type": kind})


class Screen:
    """A program on a pseudo-terminal: what it printed, and what is typed."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.text = ""
        self._grown = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            self.text += os.read(self.descriptor, 65536).decode(errors="replace")
        except OSError:  # the program has ended
            self.close()
        self._grown.set()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.descriptor)

    async def until(self, words: str, time_limit: float = 30) -> None:
        async with asyncio.timeout(time_limit):
            while words not in self.text:
                self._grown.clear()
                await self._grown.wait()

    def type(self, line: str) -> None:
        os.write(self.descriptor, f"{line}\n".encode())


async def test_guide_asks_for_what_is_missing_and_calls_after_approval(tmp_path: Path) -> None:
    config = write_servers(tmp_path / "mcp.json", everything=real_servers.everything())
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "desktop", "ask", "get the sum of two numbers", "--config", str(config)),
        env=environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen = Screen(ours)
    try:
        await screen.until(" = ")
        screen.type("19")
        await screen.until("b", 5)
        screen.type("23")
        await screen.until("Allow?")
        assert '"a": 19' in screen.text
        screen.type("o")
        await screen.until("42")
        async with asyncio.timeout(20):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        with suppress(ValueError):
            screen.close()
        os.close(ours)
