"""The log of one server: its error output, lines that are no messages, notices of its transport.

The transports write it, failures carry its last lines, the servers panel shows it. Whatever a server writes is untrusted and
may hold a secret of ours: hidden characters are made visible, registered secrets are left out.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from desktop.log import redacted
from desktop.paths import private_folder
from desktop.signals import Signal
from desktop.visible_text import visible

MOST_LINES = 500
LONGEST_LINE = 2000
FILE_SIZE = 1024 * 1024
"""Bytes of the file after which it becomes the old one (``.1``); there is one old one."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
#: Colours and the like: they hide nothing once they are gone.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")


class ServerLog:
    """The newest 500 lines in memory, and some 2 MiB of them in a private file.

    Attributes:
        appended: Emitted with the new lines, joined by line feeds.
    """

    def __init__(self, file: Path | None) -> None:
        self.appended: Signal[str] = Signal()
        self._file = file
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._unfinished = b""
        self._skipping = False

    def append(self, line: str) -> None:
        self.extend([line])

    def extend(self, lines: Iterable[str]) -> None:
        """Appends lines, each cut at 2,000 characters; a line feed within one begins another."""
        text = redacted(visible(_COLOURS.sub("", "\n".join(line[: 2 * LONGEST_LINE] for line in lines))))
        new = [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in text.split("\n")]
        self._lines.extend(new)
        self._write(new)
        self._emit("\n".join(new))

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
            self.extend(line.decode(errors="replace") for line in complete if line)

    def end_output(self) -> None:
        """Appends what came last without a line end; the error output is over."""
        self.feed(b"\n")

    def tail(self, lines: int) -> list[str]:
        """The newest lines, oldest first."""
        return list(self._lines)[-lines:] if lines > 0 else []

    def _write(self, lines: list[str]) -> None:
        if self._file is None:
            return
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        content = "".join(f"{now} {line}\n" for line in lines).encode(errors="replace")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        try:
            private_folder(self._file.parent)
            with open(self._file, "ab", opener=lambda path, _: os.open(path, flags, 0o600)) as file:
                file.write(content)
                full = file.tell() >= FILE_SIZE
            if full:
                os.replace(self._file, f"{self._file}.1")
        except OSError as error:
            self._file = None
            self.append(f"This log can't be kept in a file any more: {error.strerror}.")

    def _emit(self, text: str) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.appended.emit(text)
        else:  # soon and not now: what a watcher raises must reach the loop's hook, not the server's transport
            loop.call_soon(self.appended.emit, text)
