"""Reads messages and results of many megabytes in a process of its own, so that the window never waits for one.

A program: ``python -m desktop.assistant.large_message OPERATION``, its arguments as a JSON object on standard input;
``results.py`` starts it. Parsing 50 MB of JSON holds Python's lock for up to a second, which stalls every thread of a process.
Exit status 0: done; `NOT_VALID`: what was given is not valid, the reason on standard output. Imports little: it starts for
every large message.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from desktop import json_text
from desktop.assistant import limiter, stored_result
from desktop.assistant.limiter import Shown
from desktop.json_text import Reader
from desktop.visible_text import one_line

#: The key in ``_meta`` of a reduced result under which its id stands.
LARGE_META = "deskhand/large"
#: Characters; a longer member of a result is left out of the reduced one.
_LONGEST_MEMBER = 64 * 1024
#: Characters shown around what was found.
_AROUND = 100
_MOST_MATCHES = 10_000
#: Seconds after which the process ends in any case.
_LONGEST_LIFE = 120
#: Exit status.
NOT_VALID = 3


class Facts:
    """What the store of results needs to know of a large one.

    Attributes:
        text: The beginning of its text, as much as the limiter needs to tell how much of it is shown.
        blocks: As in `Shown`, as far as they lie in that.
        characters: Of the whole text; so `lines`.
        complete: As in `Shown`; so `has_links`.
        error: Error number of the system, where it could not be stored.
    """

    def __init__(
        self,
        text: str,
        blocks: Sequence[tuple[int, int, str, bool]],
        characters: int,
        lines: int,
        complete: bool,
        has_links: bool,
        error: int | None = None,
    ) -> None:
        self.text = text
        self.blocks = blocks
        self.characters = characters
        self.lines = lines
        self.complete = complete
        self.has_links = has_links
        self.error = error

    @classmethod
    def of(cls, shown: Shown) -> Facts:
        text = shown.text[: limiter.DECISIVE]
        blocks = [block for block in shown.blocks if block[1] <= len(text)]
        lines = limiter.count_lines(shown.text)
        return cls(text, blocks, len(shown.text), lines, shown.complete, shown.has_links)


def receive(message: str, folder: str, id: str) -> bytes:
    """Stores the result that a JSON-RPC message carries; returns a line of `Facts` on it and the reduced message.

    An empty line: the message carries no complete result of a tool or a read, and stays as it is.
    """
    with open(message, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as received:
        text = str(received, "utf-8")
        reader = Reader(text)
        request_id, result, before, after = "null", None, 0, 0
        for key in reader.members():
            begin = reader.position
            if key == "result" and text.startswith("{", begin):
                result = limiter.shown(reader)
                before, after = len(text[:begin].encode()), len(text[reader.position :].encode())
            elif key == "id":
                reader.value()
                request_id = text[begin : reader.position]
        reader.end()
        if result is None or result.kind is None or result.others.get("resultType") not in (None, '"complete"'):
            return b"\n"
        facts = Facts.of(result)
        try:
            with memoryview(received) as whole, whole[before : len(whole) - after] as result_alone:
                stored_result.write_result(Path(folder), id, result_alone)
            stored_result.write_text(Path(folder), id, result.text)
        except OSError as error:
            stored_result.remove(Path(folder), id)
            facts.error = error.errno or 0
    return json.dumps(vars(facts)).encode() + b"\n" + _reduced(result, request_id, id).encode()


def name_server(folder: str, id: str, server: str) -> bytes:
    """Writes the text of a stored result anew, with the calls that read what it links to; returns `Facts`."""
    result = limiter.shown(Reader((Path(folder) / f"{id}.json").read_bytes().decode()), server)
    stored_result.write_text(Path(folder), id, result.text)
    return json.dumps(vars(Facts.of(result))).encode()


def find(folder: str, id: str, pattern: str, limit: int) -> bytes:
    """Where a stored text has the pattern, as it stands or else as a regular expression, ignoring case.

    Returns a line a place: its offset and line number, and what stands there.
    """
    index = stored_result.read_index(Path(folder), id)
    text = stored_result.read_text(Path(folder), id, index, 0, index.characters)
    how, (total, found) = "", _matches(re.escape(pattern), text, limit)
    if not found:
        with suppress(re.error, OverflowError, RecursionError):  # no regular expression after all
            how, (total, found) = " as a regular expression", _matches(pattern, text, limit)
    places: list[str] = []
    line, counted = 1, 0
    for start, end in found:
        line += text.count("\n", counted, start)
        counted = start
        begin = max(text.rfind("\n", 0, start) + 1, start - _AROUND)
        line_feed = text.find("\n", end)
        stop = min(line_feed if line_feed >= 0 else len(text), start + 2 * _AROUND)
        places.append(f"offset {start}, line {line}: {one_line(text[begin:stop], 3 * _AROUND)}")
    count = f"More than {_MOST_MATCHES}" if total > _MOST_MATCHES else str(total)
    shown = f"; the first {len(places)}:" if len(places) < total else ":" if places else "."
    return "\n".join([f"{count} places{how}{shown}", *places]).encode()


def select(folder: str, id: str, pointer: str) -> bytes:
    """The value that a pointer names: in the complete result, else in its structured content, else in a text that is JSON."""
    if pointer and not pointer.startswith("/"):
        raise ValueError("a pointer begins with /")
    nowhere: LookupError | None = None
    for source in _sources((Path(folder) / f"{id}.json").read_bytes().decode()):
        try:
            value = json_text.respaced(json_text.select(source, pointer))
        except LookupError as error:
            nowhere = nowhere or error
        else:
            end = limiter.head(value, limiter.PAGE_LINES, limiter.PAGE_BYTES)
            rest = f"\n[{end} of {len(value)} characters; select a part of it to see the rest.]"
            return (value[:end] + (rest if end < len(value) else "")).encode()
    raise ValueError(f"nothing is at {nowhere}")


def main(arguments: Sequence[str]) -> None:
    """Runs an operation and ends the process."""
    if sys.platform != "win32":
        signal.alarm(_LONGEST_LIFE)  # also when nobody is left who waits for it
    gc.disable()  # the process ends before there is garbage
    operation = {each.__name__: each for each in (receive, name_server, find, select)}[arguments[0]]
    status = 0
    try:
        output = operation(**json.load(sys.stdin.buffer))
    except ValueError as error:
        output, status = one_line(str(error)).encode(), NOT_VALID
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()
    os._exit(status)  # at once: taking apart millions of values takes as long as making them


def _reduced(result: Shown, request_id: str, id: str) -> str:
    """The JSON-RPC message with the head of the result's text instead of it; images stay."""
    text = result.text[: limiter.head(result.text)]
    others = {name: value for name, value in result.others.items() if len(value) <= _LONGEST_MEMBER}
    meta = others.pop("_meta", "{}")
    own = f"{json.dumps(LARGE_META)}: {json.dumps(id)}"
    others["_meta"] = f"{meta[:-1]}, {own}}}" if re.fullmatch(r"\{\s*[^\s}].*\}", meta, re.DOTALL) else f"{{{own}}}"
    parts: list[dict[str, str]]
    if result.kind == "content":
        parts = [{"type": "text", "text": text}]
        parts += [{"type": "image", "mimeType": mime_type, "data": data} for mime_type, data, _ in result.images]
    else:
        parts = [{"uri": "deskhand:head", "text": text}]
        parts += [{"uri": uri, "mimeType": mime_type, "blob": data} for mime_type, data, uri in result.images]
    members = {str(result.kind): json.dumps(parts)} | others
    joined = ", ".join(f"{json.dumps(name)}: {value}" for name, value in members.items())
    return f'{{"jsonrpc": "2.0", "id": {request_id}, "result": {{{joined}}}}}'


def _matches(expression: str, text: str, limit: int) -> tuple[int, list[tuple[int, int]]]:
    """How many matches there are (at most one more than `_MOST_MATCHES`), and where the first ones are."""
    total, found = 0, list[tuple[int, int]]()
    for match in re.finditer(expression, text, re.IGNORECASE | re.MULTILINE):
        if match.end() > match.start():
            total += 1
            if len(found) < limit:
                found.append(match.span())
            if total > _MOST_MATCHES:
                break
    return total, found


def _sources(result: str) -> Iterator[str]:
    """The JSON that a pointer may mean."""
    yield result
    reader = Reader(result)
    texts: list[object] = []
    for key in reader.members():
        begin = reader.position
        value = reader.value()
        if key == "structuredContent":
            yield result[begin : reader.position]
        elif key in ("content", "contents") and isinstance(value, list):
            for part in cast("list[object]", value):
                content = cast("dict[str, object]", part) if isinstance(part, dict) else {}
                resource = content.get("resource")
                texts.append(
                    (cast("dict[str, object]", resource) if isinstance(resource, dict) else content).get("text")
                )
    for text in texts:
        if isinstance(text, str):
            with suppress(ValueError):
                json_text.parse(text)
                yield text


if __name__ == "__main__":
    main(sys.argv[1:])
