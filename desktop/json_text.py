"""JSON as text: laid out anew and taken apart without changing a digit, the order of keys, or a key that is there twice.

Used by the limiter, the reader of large messages, the transports and the widgets that show JSON. What needs values uses
`parse`; what shows JSON uses the text itself, since a number that was parsed is another number.
"""
# pyright: reportUnknownMemberType=false
# (numpy's functions are typed for array-likes of any kind)

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

#: Deeper JSON is left as it is.
MAX_DEPTH = 100
#: JSON that would grow to more than this many times its length (and more than `_SMALL`) is left as it is.
_MAX_GROWTH = 4
_SMALL = 2**20
_CHUNK = 2**17
#: A byte after which a chunk may end: neither a backslash that escapes the next one, nor white space or an opening
#: bracket, which may belong to an empty container.
_END_OF_CHUNK = re.compile(rb"[^\\{\[ \t\r\n]")
_SPACE = re.compile(r"[ \t\r\n]*")
_INDEX = re.compile("0|[1-9][0-9]{0,17}")
#: For `bytes.translate`: 1 for what is structure when it stands between strings.
_STRUCTURAL = bytes(byte in b"{}[],:" for byte in range(256))
#: Integers stay text (as bytes, so that they differ from strings): Python refuses to convert very long ones.
_decoder = json.JSONDecoder(parse_int=str.encode)


def parse(text: str) -> Any:
    """The value, its integers as the bytes of their digits. Raises ValueError for what is no JSON or nested too deep."""
    reader = Reader(text)
    content = reader.value()
    reader.end()
    return content


class Reader:
    """Reads JSON from its beginning, value by value, and knows where each stands in the text.

    Attributes:
        text: All of the text.
        position: Where the next value begins; after a value, where that ended.

    Every method raises ValueError where the text is not the JSON that it reads.
    """

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position
        self._skip_space()

    def value(self) -> Any:
        """The value, its integers as the bytes of their digits."""
        try:
            content, self.position = _decoder.raw_decode(self.text, self.position)
        except RecursionError as error:
            raise ValueError("nested too deep") from error
        return content

    def members(self) -> Iterator[str]:
        """The keys of an object; after each, `position` is where its value begins, and whoever iterates may read that or not."""
        yield from self._parts("{", "}")

    def elements(self) -> Iterator[int]:
        """The indices of an array; after each, `position` is where the element begins."""
        for index, _ in enumerate(self._parts("[", "]")):
            yield index

    def end(self) -> None:
        """Makes sure that nothing but white space follows."""
        self._skip_space()
        if self.position != len(self.text):
            raise ValueError("something follows the value")

    def _parts(self, opening: str, closing: str) -> Iterator[str]:
        self._take(opening)
        if self._next() == closing:
            self.position += 1
            return
        while True:
            key = ""
            if opening == "{":
                if self._next() != '"':
                    raise ValueError(f"no key at character {self.position}")
                key = self.value()
                self._skip_space()
                self._take(":")
            begin = self.position
            yield key
            if self.position == begin:
                self.value()
            self._skip_space()
            if self._next() == closing:
                self.position += 1
                return
            self._take(",")

    def _next(self) -> str:
        return self.text[self.position : self.position + 1]

    def _take(self, mark: str) -> None:
        if self._next() != mark:
            raise ValueError(f"no {mark} at character {self.position}")
        self.position += 1
        self._skip_space()

    def _skip_space(self) -> None:
        match = _SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position


def select(text: str, pointer: str) -> str:
    """The text of the value that an RFC 6901 pointer names. Of keys that are there twice the last counts, as for most readers.

    Raises LookupError with the beginning of the pointer that leads nowhere, ValueError for what is no pointer or no JSON.
    """
    if pointer and not pointer.startswith("/"):
        raise ValueError("a pointer begins with /")
    reader = Reader(text)
    walked = ""
    for part in pointer.split("/")[1:]:
        walked += f"/{part}"
        token = part.replace("~1", "/").replace("~0", "~")
        begin = None
        if text.startswith("{", reader.position):
            for key in reader.members():
                if key == token:
                    begin = reader.position
        elif text.startswith("[", reader.position) and _INDEX.fullmatch(token):
            begin = next((reader.position for index in reader.elements() if index == int(token)), None)
        if begin is None:
            raise LookupError(walked)
        reader.position = begin
    begin = reader.position
    reader.value()
    return text[begin : reader.position]


def respaced(text: str) -> str:
    """Valid JSON with an indent of two spaces: only white space between tokens changes.

    Linear and the same for every shape of JSON (a million brackets cost what a million letters do), so it works on arrays of
    bytes instead of tokens: 45 MB take about as long as parsing them. Text that is nested deeper than `MAX_DEPTH`, or would
    become many times as long, is returned as it is.
    """
    if not text.startswith(("{", "[")):
        return text
    import numpy as np  # here: most results need no layout, and the reader of large messages starts sooner without

    data = text.encode(errors="surrogatepass")
    limit = max(_SMALL, _MAX_GROWTH * len(data))
    pieces: list[bytes] = []
    length = position = depth = 0
    in_string = False
    while position < len(data):
        safe = _END_OF_CHUNK.search(data, position + _CHUNK)
        chunk = data[position : safe.end() if safe else len(data)]
        position += len(chunk)
        byte = quotes = np.frombuffer(chunk, np.uint8)
        if b"\\" in chunk:  # escaped backslashes and quotes become letters: what quotes are left begin or end a string
            quotes = np.frombuffer(chunk.replace(b"\\\\", b"__").replace(b'\\"', b"__"), np.uint8)
        quotes = quotes == ord('"')
        inside = np.bitwise_xor.accumulate(quotes) ^ in_string  # the opening quote is inside, the closing one is not
        in_string = bool(inside[-1])
        between = ~(inside | quotes)
        structural = between & np.frombuffer(chunk.translate(_STRUCTURAL), np.bool_)
        if (space := between & (byte <= ord(" "))).any():
            byte, structural = byte[~space], structural[~space]
        if not byte.size:
            continue
        at = np.flatnonzero(structural)
        mark = byte[at]
        opening = (mark == ord("{")) | (mark == ord("["))
        closing = (mark == ord("}")) | (mark == ord("]"))
        depths = np.cumsum(opening.astype(np.int32) - closing, dtype=np.int32) + depth
        if at.size:
            depth = int(depths[-1])
            if depths.max() > MAX_DEPTH:
                return text
        empty = np.flatnonzero(opening[:-1] & closing[1:] & (at[1:] == at[:-1] + 1))
        break_after, break_before = opening | (mark == ord(",")), closing
        break_after[empty] = break_before[empty + 1] = False
        after = np.where(break_after, 1 + 2 * depths, mark == ord(":"))
        before = np.where(break_before, 1 + 2 * depths, 0)
        width = np.ones(byte.size, np.int32)
        width[at] += after + before
        ends = np.cumsum(width, dtype=np.int64)
        length += int(ends[-1])
        if length > limit:
            return text
        laid_out = np.full(int(ends[-1]), ord(" "), np.uint8)
        places = ends - 1
        places[at] -= after
        laid_out[places] = byte
        marks = places[at]
        laid_out[marks[break_after] + 1] = laid_out[(marks - before)[break_before]] = ord("\n")
        pieces.append(laid_out.tobytes())
    return b"".join(pieces).decode(errors="surrogatepass")
