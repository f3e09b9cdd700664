"""The person at a terminal answers Guide's questions and allows calls: a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from unicodedata import east_asian_width

import pytest

from desktop.terminal import row, typed
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


@pytest.mark.parametrize("columns", [0, 1, 2, 10, 80])
@pytest.mark.parametrize(
    "text", ["▶ billing.list_invoices {}" * 9, "請求書を一覧表示する" * 9, "e\u0301" * 100, "🧾" * 50]
)
def test_a_row_takes_no_more_columns_than_there_are_and_as_many_as_it_can(text: str, columns: int) -> None:
    cut = row(text, columns)
    wide = sum(east_asian_width(each) in "WF" for each in cut)
    taken = len(cut) + wide - cut.count("\u0301")
    assert 0 <= columns - taken <= 1
    assert cut == ("" if columns == 0 else text[: len(cut) - 1] + "…")


def test_a_row_that_fits_stays_whole() -> None:
    assert row("請求書 e\u0301", 8) == "請求書 e\u0301"


class Screen:
    """A program on a pseudo-terminal: what it printed, and what is typed."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.text = ""
        self.ended = asyncio.Event()
        self._grown = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            self.text += os.read(self.descriptor, 65536).decode(errors="replace")
        except OSError:  # the program has ended
            self.close()
            self.ended.set()
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


@asynccontextmanager
async def terminal(tmp_path: Path, *arguments: str, columns: int = 80) -> AsyncIterator[tuple[Screen, Process]]:
    """``deskhand ask`` with the reference server on a terminal of so many columns."""
    config = write_servers(tmp_path / "mcp.json", everything=real_servers.everything())
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "desktop", "ask", *arguments, "--config", str(config)),
        env=environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen = Screen(ours)
    try:
        yield screen, process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        with suppress(ValueError):
            screen.close()
        os.close(ours)


async def test_guide_asks_for_what_is_missing_and_calls_after_approval(tmp_path: Path) -> None:
    async with terminal(tmp_path, "get the sum of two numbers") as (screen, process):
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


@pytest.mark.parametrize("columns", [1, 24])
async def test_the_rows_of_calls_keep_to_the_width_of_the_terminal(tmp_path: Path, columns: int) -> None:
    wish = 'echo "請求書を一覧表示する請求書を一覧表示する"'
    async with terminal(tmp_path, wish, "--approve", "all", columns=columns) as (screen, process):
        async with asyncio.timeout(60):
            assert await process.wait() == 0
            await screen.ended.wait()
    rows = [line for line in screen.text.splitlines() if line[:1] in ("▶", "✔", "…")]
    assert len(rows) >= 6
    for each in rows:
        assert len(each) + sum(east_asian_width(letter) in "WF" for letter in each) <= columns
