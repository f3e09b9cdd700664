"""Values that stand in what a person writes: quotations, addresses, paths, dates, times, time zones, numbers.

Used by Guide alone: to fill a tool's arguments (``guide_arguments.py``), and to leave them out of a search (``guide_wish.py``).
"""

from __future__ import annotations

import functools
import re
import zoneinfo
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ValueKind = Literal["quoted", "url", "email", "datetime", "date", "time", "zone", "hash", "path", "number"]


@dataclass(frozen=True, slots=True)
class TextValue:
    kind: ValueKind
    value: str | int | float
    start: int
    end: int
    """Where it stands in the text, quotation marks included."""


#: In this order: what an earlier one takes, a later one doesn't see.
_PATTERNS: tuple[tuple[ValueKind, re.Pattern[str]], ...] = (
    (
        "quoted",
        re.compile(
            r"```\w*\n?(?P<a>.*?)```|`(?P<b>[^`\n]+)`|\"(?P<c>[^\"]*)\"|“(?P<d>[^“”]*)”|„(?P<e>[^„“”]*)[“”]|«(?P<f>[^«»]*)»"
            r"|(?<!\w)'(?P<g>[^'\n]*)'(?!\w)|(?<!\w)‘(?P<h>[^’\n]*)’(?!\w)",
            re.DOTALL,
        ),
    ),
    ("url", re.compile(r"(?<![\w+.-])[a-zA-Z][a-zA-Z0-9+.-]*://[^\s<>\"']*[^\s<>\"'.,;:!?)\]]")),
    ("email", re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("datetime", re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")),
    ("date", re.compile(r"\b\d{4}-\d\d-\d\d\b")),
    (
        "time",
        re.compile(
            r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::(?P<second>\d\d))?)?(?:\s*(?P<half>[ap]\.?m\b\.?))?",
            re.IGNORECASE,
        ),
    ),
    ("zone", re.compile(r"\b[^\W\d_]+(?:[/_ -][^\W\d_]+)*")),
    ("hash", re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,40}\b")),
    (
        "path",
        re.compile(
            r"(?<![\w/:.])(?:~|\.{1,2})?/(?:[^\s\"'<>|]*[^\s\"'<>|.,;:!?)\]])?"  # /a/b, ~/a, ./a, ../a, /
            r"|\b[A-Za-z]:\\[^\s\"'<>|]*[^\s\"'<>|.,;:!?)\]]"
            r"|(?<![\w/.-])(?:[\w.-]+/)*(?:\*+[\w.*/-]*|[\w-]+(?:\.[\w-]+)*\.[A-Za-z]\w{0,4})(?![\w/@])"  # *.py, a/b.md, c.txt
        ),
    ),
    (
        "number",
        re.compile(
            r"(?<![\w.,])(?:(?<![\d)] )[-−])?(?>\d{1,3}(?:,\d{3}){1,99}|\d{1,300})(?>(?:\.\d{1,99})?)(?![\w.]*\w)"
        ),
    ),
)
_REGIONS = ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


def values_in(text: str) -> list[TextValue]:
    """The values in their order in the text; they don't overlap."""
    found: list[TextValue] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            found += _zones(match) if kind == "zone" else _value(kind, match)
        text = _without(text, found)
    return sorted(found, key=lambda each: each.start)


def _without(text: str, values: Iterable[TextValue]) -> str:
    """The text with each value blotted out; positions stay."""
    characters = list(text)
    for each in values:
        characters[each.start : each.end] = "\n" * (each.end - each.start)  # no pattern goes beyond a line
    return "".join(characters)


def _value(kind: ValueKind, match: re.Match[str]) -> list[TextValue]:
    value: str | int | float
    match kind:
        case "quoted":
            value = next(str(each) for each in match.groups() if each is not None)
            value = value.strip() if match["f"] is not None else value  # French quotation marks have spaces within
        case "time":
            value = _clock(match)
            if not value:
                return []
        case "number":
            digits = match[0].replace(",", "").replace("−", "-")
            value = float(digits) if "." in digits else int(digits)
        case _:
            value = match[0]
    return [TextValue(kind, value, *match.span())]


def _clock(match: re.Match[str]) -> str:
    """A time of day as HH:MM or HH:MM:SS; empty for what is only a number."""
    hour, minute, half = int(match["hour"]), int(match["minute"] or 0), (match["half"] or "").lower()
    if not (match["minute"] or half) or hour > (12 if half else 23) or minute > 59:
        return ""
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    return f"{hour:02}:{minute:02}" + (f":{match['second']}" if match["second"] else "")


def _zones(match: re.Match[str]) -> list[TextValue]:
    """Names of time zones and of their cities in a run of words; cities with a capital, or after *in*, *to* and the like."""
    words = list(re.finditer(r"[^\W\d_]+(?:[/_-][^\W\d_]+)*", match[0]))
    zones = _zone_names()
    found: list[TextValue] = []
    at = 0
    while at < len(words):
        for count in (4, 3, 2, 1):
            last = at + count - 1
            if last >= len(words):
                continue
            begin, end = words[at].start(), words[last].end()
            name = match[0][begin:end]
            zone = zones.get(re.sub(r"[ _]", " ", name).lower())
            before = words[at - 1][0].lower() if at else ""
            if zone and (name[0].isupper() or before in ("in", "to", "from", "for", "at", "of", "and")):
                found.append(TextValue("zone", zone, match.start() + begin, match.start() + end))
                at = last
                break
        at += 1
    return found


@functools.cache
def _zone_names() -> dict[str, str]:
    """Time zones by their names and by their cities' names, in small letters with spaces. Empty where the system has none."""
    # By the names of the system's files: `available_timezones` reads each of them, which takes a tenth of a second.
    zones = {
        path.relative_to(root).as_posix()
        for root in map(Path, zoneinfo.TZPATH)
        for region in _REGIONS
        for path in (root / region).rglob("*")
        if path.is_file()
    } or {each for each in zoneinfo.available_timezones() if each.startswith(_REGIONS)}
    names: dict[str, str] = {}
    for zone in sorted(zones, key=lambda each: (-each.count("/"), each)):
        names[zone.rpartition("/")[2].lower().replace("_", " ")] = zone
    names |= {zone.lower().replace("_", " "): zone for zone in zones}
    return names | {"utc": "UTC", "gmt": "UTC"}
