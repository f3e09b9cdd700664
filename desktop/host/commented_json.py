"""JSON with comments and trailing commas: read with the place of everything in it, and changed without losing any of it.

Used by ``servers_file``. A change touches the text of what differs and nothing else: comments, order, indentation and the
digits of numbers stay as the person wrote them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_INDENTATION = re.compile(r"[ \t]*")
_REST_OF_LINE = re.compile(r"(?>(?:[ \t]+|/\*[^\n]*?\*/)*(?://[^\r\n]*)?)(?=\r?\n)")
_BLANK_REST = re.compile(r"[ \t]*\r?\n")
_DEEPEST = 100
_DECODER = json.JSONDecoder()
Path = Sequence["str | int"]


class NotJson(Exception):
    """The text is no such JSON, from `position` on (an offset)."""

    def __init__(self, position: int, *, too_deep: bool = False) -> None:
        super().__init__()
        self.position, self.too_deep = position, too_deep


@dataclass(frozen=True, slots=True)
class Member:
    """Where a member of an object stands: offsets of its key, its value, the value's end and the comma behind it (-1: none)."""

    key: str
    key_at: int
    value_at: int
    end: int
    comma: int


class JsonObject(dict[str, Any]):
    """An object; of a key that is given twice the last value counts.

    Attributes:
        members: All of them, in the text's order.
        repeated: The keys that are given more than once.
    """

    def __init__(self, members: Sequence[tuple[Member, Any]] = (), begin: int = 0, end: int = 0) -> None:
        super().__init__((member.key, value) for member, value in members)
        self.members = [member for member, _ in members]
        self.begin, self.end = begin, end
        self.last = {member.key: member for member in self.members}
        """The members whose values count."""
        self.repeated: set[str] = set()
        if len(self) < len(members):
            given = Counter(member.key for member in self.members)
            self.repeated = {key for key in self if given[key] > 1}

    def position(self, path: Path) -> int:
        """The offset of what a path of keys and list indexes leads to, or of the last part of it that is there."""
        position, value = self.begin, cast(object, self)
        for step in path:
            if isinstance(value, JsonObject) and step in value:
                position = value.last[str(step)].key_at
            elif isinstance(value, JsonArray) and isinstance(step, int) and step < len(value):
                position = value.places[step]
            else:
                break
            value = cast("Any", value)[step]
        return position


class JsonArray(list[Any]):
    def __init__(self, values: Sequence[Any], places: Sequence[int]) -> None:
        super().__init__(values)
        self.places = places
        """The elements' offsets."""


class Lines:
    """Tells lines and columns, both counted from 1, of offsets in a text."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, position: int) -> tuple[int, int]:
        line = bisect_right(self._starts, position)
        return line, position - self._starts[line - 1] + 1


def parse(text: str) -> Any:
    """The value that a text stands for; its objects and arrays are `JsonObject` and `JsonArray`. Raises NotJson."""
    value, end = _value(text, _skip(text, 0), 0)
    end = _skip(text, end)
    if end < len(text):
        raise NotJson(end)
    return value


def changed(text: str, old: JsonObject, new: Mapping[str, Any]) -> str:
    """The text of an object `old`, changed to stand for `new`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for start, end, replacement in sorted(_edits(text, old, new), key=lambda edit: edit[:2], reverse=True):
        text = text[:start] + replacement.replace("\n", newline) + text[end:]
    return text


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where ``true`` is not 1 and 1.0 is not 1, and order counts in arrays alone."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# Reading


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _value(text: str, position: int, depth: int) -> tuple[Any, int]:
    """The value at an offset, and its end."""
    if depth > _DEEPEST:
        raise NotJson(position, too_deep=True)
    match text[position : position + 1]:
        case "{":
            return _object(text, position, depth)
        case "[":
            return _array(text, position, depth)
        case _:
            try:
                return _DECODER.raw_decode(text, position)
            except json.JSONDecodeError as error:
                raise NotJson(max(position, error.pos)) from None
            except ValueError:  # a whole number of thousands of digits
                raise NotJson(position) from None


def _object(text: str, begin: int, depth: int) -> tuple[JsonObject, int]:
    members: list[tuple[Member, Any]] = []
    position = _skip(text, begin + 1)
    while text[position : position + 1] != "}":
        if text[position : position + 1] != '"' or (members and members[-1][0].comma < 0):
            raise NotJson(position)
        key_at = position
        key, position = _value(text, position, depth)
        position = _skip(text, position)
        if text[position : position + 1] != ":":
            raise NotJson(position)
        value_at = _skip(text, position + 1)
        value, end = _value(text, value_at, depth + 1)
        position = _skip(text, end)
        comma = position if text[position : position + 1] == "," else -1
        members.append((Member(key, key_at, value_at, end, comma), value))
        if comma >= 0:
            position = _skip(text, position + 1)
    return JsonObject(members, begin, position), position + 1


def _array(text: str, begin: int, depth: int) -> tuple[JsonArray, int]:
    values: list[Any] = []
    places: list[int] = []
    position = _skip(text, begin + 1)
    parted = True
    while text[position : position + 1] != "]":
        if not parted:
            raise NotJson(position)
        places.append(position)
        value, position = _value(text, position, depth + 1)
        values.append(value)
        position = _skip(text, position)
        parted = text[position : position + 1] == ","
        if parted:
            position = _skip(text, position + 1)
    return JsonArray(values, places), position + 1


# Changing

Edit = tuple[int, int, str]
"""From an offset to another, and the text that takes its place."""


def _edits(text: str, old: JsonObject, new: Mapping[str, Any]) -> Iterator[Edit]:
    """What changes of an object's text; no two edits overlap."""
    kept: list[Member] = []
    for member in old.members:
        same = member.key in new and same_value(new[member.key], old[member.key])
        if member.key not in new or not (same or old.last[member.key] is member):
            yield from _removal(text, member)
            continue
        kept.append(member)
        if same:
            continue
        before, after = old[member.key], new[member.key]
        if isinstance(before, JsonObject) and isinstance(after, Mapping):
            yield from _edits(text, before, cast("Mapping[str, Any]", after))
        else:
            yield member.value_at, member.end, _dumped(after, _indentation(text, member.key_at), "  ")
    added = {key: value for key, value in new.items() if key not in old}
    if added:
        yield from _addition(text, old, kept, added)
    if (
        kept
        and kept[-1].comma >= 0
        and old.members[-1].comma < 0
        and ("\n" not in text[old.begin : old.end] or not added)
    ):
        yield kept[-1].comma, kept[-1].comma + 1, ""  # what stood behind it is gone


def _removal(text: str, member: Member) -> Iterator[Edit]:
    start, end = member.key_at, member.end
    if member.comma >= 0:
        if text[end : member.comma].strip():  # a remark in between stays
            yield member.comma, member.comma + 1, ""
        else:
            end = member.comma + 1
    line = text.rfind("\n", 0, start) + 1
    rest = _BLANK_REST.match(text, end)
    if rest and line and not text[line:start].strip():  # a line of its own goes whole
        start, end = line, rest.end()
    yield start, end, ""


def _addition(text: str, old: JsonObject, kept: Sequence[Member], added: Mapping[str, Any]) -> Iterator[Edit]:
    """New members behind those that are kept, written as those are: on lines of their own, or on their line."""
    if kept and "\n" not in text[old.begin : old.end]:
        at = kept[-1].comma if kept[-1].comma >= 0 else kept[-1].end
        yield at, at, ", " + json.dumps(added, ensure_ascii=False)[1:-1]
        return
    base = _indentation(text, old.begin)
    indentation = _indentation(text, kept[0].key_at) if kept else ""
    if len(indentation) <= len(base) or not indentation.startswith(base):
        indentation = f"{base}  "
    written = ",".join(
        f"\n{indentation}{json.dumps(key, ensure_ascii=False)}: {_dumped(value, indentation, indentation[len(base) :])}"
        for key, value in added.items()
    )
    if not kept:
        at = old.begin + 1
        yield at, at, written if "\n" in text[at : old.end] else f"{written}\n{base}"
        return
    written += "," if old.members[-1].comma >= 0 else ""
    at = kept[-1].end if kept[-1].comma < 0 else kept[-1].comma + 1
    rest = _REST_OF_LINE.match(text, at)  # a remark on the same line stays with what it is about
    end = rest.end() if rest else at
    if kept[-1].comma < 0:
        yield at, at, "," if end > at else f",{written}"
    if kept[-1].comma >= 0 or end > at:
        yield end, end, written


def _dumped(value: Any, indentation: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indentation}")


def _indentation(text: str, position: int) -> str:
    """That of the line of an offset."""
    match = _INDENTATION.match(text, text.rfind("\n", 0, position) + 1)
    return match[0] if match else ""
