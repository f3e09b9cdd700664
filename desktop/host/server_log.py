"""The log of one server: its error output, lines that are no messages, its messages, our notices, and a summary of each request.

The transports and the connection write it, failures carry its last lines, the log's window shows it. Whatever a server writes is
untrusted and may hold a secret of ours: hidden characters are made visible, registered secrets are left out.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import os
import re
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from desktop.log import redacted
from desktop.paths import private_folder
from desktop.signals import Signal
from desktop.visible_text import visible

MOST_LINES = 2000
MOST_REQUESTS = 500
LONGEST_LINE = 2000
FILE_SIZE = 1024 * 1024
"""Bytes of the file after which it becomes the old one (``.1``); there is one old one."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
#: Colours and the like: they hide nothing once they are gone.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
#: Seconds in which lines gather before they are written: a server may log thousands a second, and opening a file costs more
#: than a line.
_GATHERED = 0.1
#: Lines that may wait to be written; of more the file would not keep the first ones either.
_MOST_WAITING = 20_000

Kind = Literal["output", "stray", "message", "notice", "request"]
"""Error output; a line of the output that is no message; a message the server logged; Deskhand's own notice; a request's end."""
Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogLine:
    number: int
    """Counts up over all lines of a log."""
    time: float
    """Seconds since the epoch."""
    kind: Kind
    level: Level
    text: str


class ServerLog:
    """The newest 2,000 lines and 500 requests in memory, and some 2 MiB of the lines in a private file, which is written in a
    thread some 0.1 s later (at once where no loop runs).

    Attributes:
        appended: Emitted soon after lines came, once for all of them.
        file: Where the lines are kept; None: nowhere.
    """

    def __init__(self, file: Path | None) -> None:
        self.appended: Signal[()] = Signal()
        self.file = file
        self._lines: deque[LogLine] = deque(maxlen=MOST_LINES)
        self._requests: deque[LogLine] = deque(maxlen=MOST_REQUESTS)
        self._count = 0
        self._unfinished = b""
        self._skipping = False
        self._told = True
        """Whether watchers have heard of all lines, or will."""
        self._waiting: deque[LogLine] = deque(maxlen=_MOST_WAITING)
        self._writing: asyncio.Task[None] | None = None

    def append(self, line: str, kind: Kind = "notice", level: Level = "info") -> None:
        self.extend([line], kind, level)

    def extend(self, lines: Iterable[str], kind: Kind = "notice", level: Level = "info") -> None:
        """Appends lines, each cut at 2,000 characters; a line feed within one begins another."""
        text = redacted(visible(_COLOURS.sub("", "\n".join(line[: 2 * LONGEST_LINE] for line in lines))))
        new = [self._line(line, kind, level) for line in text.split("\n")]
        self._lines.extend(new)
        if self.file is not None:
            self._waiting.extend(new)
            self._write_soon()
        self._tell_soon()

    def feed(self, output: bytes) -> None:
        """Takes error output as it comes; a line is appended once it is complete. Costs some microseconds a line."""
        if self._skipping and not _LINE_END.search(output):
            return
        *complete, rest = _LINE_END.split(output)
        if complete:
            complete[0] = self._unfinished + complete[0]
            if self._skipping:
                del complete[0]
            self._unfinished, self._skipping = b"", False
        self._unfinished += rest
        if len(self._unfinished) > 2 * LONGEST_LINE:
            complete.append(self._unfinished)
            self._unfinished, self._skipping = b"", True
        if any(complete):
            self.extend((line.decode(errors="replace") for line in complete if line), "output")

    def end_output(self) -> None:
        """Appends what came last without a line end; the error output is over."""
        self.feed(b"\n")

    def note_request(self, method: str, number: int | None, seconds: float, size: int | None, outcome: str) -> None:
        """Notes that a request is over: the protocol's name of it, its id (None: it has none), how long it took, about how many
        bytes the answer had (None: too many to stand in memory), and ``ok`` or what became of it. Nothing of what was asked or
        answered; kept in memory alone.
        """
        told = "over 1 MiB" if size is None else f"{size:,} B"
        named = method if number is None else f"{method} #{number}"
        text = f"{named} {seconds * 1000:,.0f} ms, {told}, {outcome}"
        self._requests.append(self._line(text, "request", "info" if outcome == "ok" else "warning"))
        self._tell_soon()

    def tail(self, lines: int) -> list[str]:
        """The texts of the newest lines, oldest first, without requests."""
        return [line.text for line in list(self._lines)[-lines:]] if lines > 0 else []

    def lines(self, after: int = 0) -> list[LogLine]:
        """What memory holds of the lines and requests behind a number, oldest first."""
        return list(heapq.merge(*(_behind(each, after) for each in (self._lines, self._requests)), key=_number))

    def clear(self) -> None:
        """Forgets what memory holds; the file stays."""
        self._lines.clear()
        self._requests.clear()

    async def flush(self) -> None:
        """Returns when the file has what was appended before."""
        while self._writing is not None:
            await asyncio.wait({self._writing})

    def _line(self, text: str, kind: Kind, level: Level) -> LogLine:
        self._count += 1
        cut = text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
        return LogLine(self._count, time.time(), kind, level, cut)

    def _write_soon(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._note_fault(self._write())
            return
        if self._writing is None or self._writing.get_loop() is not loop:
            self._writing = loop.create_task(self._write_later())

    async def _write_later(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(_GATHERED)
                self._note_fault(await asyncio.to_thread(self._write))
        except asyncio.CancelledError:  # the loop ends
            self._write()
            raise
        finally:
            self._writing = None

    def _write(self) -> str | None:
        """Writes what waits, in whatever thread it is called. Returns why there can't be a file any more, or None."""
        lines: list[LogLine] = []
        with suppress(IndexError):  # it is empty
            while True:
                lines.append(self._waiting.popleft())
        if self.file is None or not lines:
            return None
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        try:
            private_folder(self.file.parent)
            with open(self.file, "ab", opener=lambda path, _: os.open(path, flags, 0o600)) as file:
                file.write(_content(lines))
                full = file.tell() >= FILE_SIZE
            if full:
                os.replace(self.file, f"{self.file}.1")
        except OSError as error:
            return error.strerror or type(error).__name__
        return None

    def _note_fault(self, fault: str | None) -> None:
        if fault is not None:
            self.file = None
            self._waiting.clear()
            self.append(f"This log can't be kept in a file any more: {fault}.", level="warning")

    def _tell_soon(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.appended.emit()
            return
        if self._told:
            self._told = False
            loop.call_soon(self._tell)  # soon and not now: what a watcher raises must reach the loop's hook

    def _tell(self) -> None:
        self._told = True
        self.appended.emit()


def _content(lines: Sequence[LogLine]) -> bytes:
    """Lines as the file has them, with their times."""
    texts: list[str] = []
    second, stamp = -1, ""
    for line in lines:
        if int(line.time) != second:
            second = int(line.time)
            stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        texts.append(f"{stamp} {line.text}\n")
    return "".join(texts).encode(errors="replace")


def _behind(lines: Sequence[LogLine], number: int) -> list[LogLine]:
    """The lines behind a number; only the new ones are looked at."""
    found = list(itertools.takewhile(lambda line: line.number > number, reversed(lines)))
    found.reverse()
    return found


def _number(line: LogLine) -> int:
    return line.number
