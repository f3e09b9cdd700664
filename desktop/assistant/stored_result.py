"""One result on disk: the complete MCP result, its text as the limiter shows it, and how to find a place in that text.

Used by the store of results (``results.py``) and, in a process of its own, by the reader of large messages
(``large_message.py``); so it imports little. A result with the id ``x`` is ``x.json``, ``x.txt`` (UTF-8) and ``x.index``; all
are readable by their owner alone. The index is written last: without it there is no result.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from desktop.assistant.limiter import count_lines

#: Characters between two places of the text whose byte offset the index holds.
_STEP = 2**16
_SUFFIXES = (".json", ".txt", ".index")


class Index:
    """What is known of a stored result's text.

    Attributes:
        characters: Of the whole text.
        lines: Of the whole text.
        offsets: Byte offset of every 65,536th character; empty for ASCII, where each character is a byte.
    """

    def __init__(self, characters: int, lines: int, offsets: list[int]) -> None:
        self.characters = characters
        self.lines = lines
        self.offsets = offsets


def write_result(folder: Path, id_: str, result: bytes | memoryview) -> None:
    """Writes the complete MCP result (JSON). Raises OSError."""
    with _created(folder / f"{id_}.json") as file:
        file.write(result)


def write_text(folder: Path, id_: str, text: str) -> Index:
    """Writes the text and then the index, over those that are there. Raises OSError."""
    remove(folder, id_, (".txt", ".index"))
    ascii_ = text.isascii()
    offsets: list[int] = []
    position = 0
    with _created(folder / f"{id_}.txt") as file:
        for start in range(0, len(text), _STEP):
            offsets.append(position)
            position += file.write(text[start : start + _STEP].encode())
    index = Index(len(text), count_lines(text), [] if ascii_ else offsets)
    with _created(folder / f"{id_}.index") as file:
        file.write(json.dumps(vars(index)).encode())
    return index


def read_index(folder: Path, id_: str) -> Index:
    """Raises FileNotFoundError when there is no such result, any more or yet."""
    return Index(**json.loads((folder / f"{id_}.index").read_bytes()))


def read_text(folder: Path, id_: str, index: Index, offset: int, length: int) -> str:
    """At most `length` characters of the text from an offset in characters on. Takes time for what it reads alone."""
    skipped = offset % _STEP if index.offsets else 0
    with (folder / f"{id_}.txt").open("rb") as file:
        if index.offsets:
            file.seek(index.offsets[min(offset // _STEP, len(index.offsets) - 1)])
            return file.read(4 * (skipped + length)).decode(errors="ignore")[skipped : skipped + length]
        file.seek(offset)
        return file.read(length).decode()


def move(source: Path, target: Path, id_: str) -> None:
    """Moves a result into another folder of the same file system, the index last. Raises OSError."""
    for suffix in _SUFFIXES:
        os.replace(source / f"{id_}{suffix}", target / f"{id_}{suffix}")


def remove(folder: Path, id_: str, suffixes: tuple[str, ...] = _SUFFIXES) -> None:
    """Removes what there is of a result; what can't be removed stays."""
    for suffix in reversed(suffixes):
        with suppress(OSError):
            (folder / f"{id_}{suffix}").unlink()


def _created(path: Path) -> BinaryIO:
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))
