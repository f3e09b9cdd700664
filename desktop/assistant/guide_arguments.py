"""Finds a tool's arguments in what a person wrote, by the tool's schema. Used by Guide alone.

Deterministic and careful: what follows from the text and the schema alone is an argument; what is likely is a guess, which a form
shows before it is used; what isn't said stays open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from desktop.assistant.guide_parameters import PATTERNS, TEXTS, Kind, Parameter, parameters
from desktop.assistant.guide_wish import RELATED_VERBS, is_empty, stem, words_of
from desktop.assistant.text_values import TextValue, ValueKind, values_in

_FOLDERS = frozenset({"repo", "repository", "dir", "directory", "folder", "cwd", "root", "workspace"})
_COUNTS = frozenset({"count", "limit", "max", "n", "number", "size", "top", "amount"})
_NAMES = frozenset({"name", "pattern", "title", "filename"})
_FIRST = frozenset({"source", "src", "from", "start", "begin", "since", "after", "old", "min", "origin"})
_SECOND = frozenset({"destination", "dest", "dst", "target", "to", "end", "until", "before", "new", "max"})
_FLAG_FILLERS = ("include", "is", "show", "with", "enable", "use", "has", "should", "do")
#: Said of a number that was understood.
_SAID_OF_NUMBERS = frozenset({"first", "last", "latest", "top", "next"})
#: Characters beside a value in which the words about it are looked for.
_NEAR = 80
#: Between a tool's words and the text it is given, and a tool's name after the text.
_BEFORE_REST = re.compile(
    r"(?:(?:for|about|on|of|regarding|concerning|with|to|me|us|back|after|that|saying)\b\s*)*:?\s*", re.IGNORECASE
)
_AFTER_REST = re.compile(r"(?<!\s)\s+(?:using|with|via)\s+(?:the\s+)?(\S+?)(?:\s+tool)?[.!]?$", re.IGNORECASE)
_TYPED: tuple[ValueKind, ...] = ("zone", "url", "email", "datetime", "date", "time", "hash", "path")


@dataclass(frozen=True, slots=True)
class Found:
    values: dict[str, Any]
    """Arguments that follow from the text."""
    guesses: dict[str, Any]
    """Of other parameters; to be confirmed."""
    more_said: bool
    """The text says something that no parameter took and that isn't about the tool."""


def find_arguments(wish: str, schema: dict[str, Any], *, label: str, description: str) -> Found:
    """The arguments that a wish gives a tool of that schema (its local references resolved).

    `label`: the words of the tool's server, name and title; they and its `description` are not taken for values.
    """
    finder = _Finder(wish, parameters(schema), label)
    finder.find()
    return Found(finder.sure, finder.guesses, finder.more_said(description))


class _Finder:
    """Goes through the ways in which people say values, the plainest first; each takes what it understands."""

    def __init__(self, wish: str, every: list[Parameter], label: str) -> None:
        self.sure: dict[str, Any] = {}
        self.guesses: dict[str, Any] = {}
        self._wish = wish
        self._every = every
        self._label = label
        self._values = values_in(wish)
        """Those that no parameter has taken."""
        self._taken: list[tuple[int, int]] = []
        """Where the text is used up."""

    def find(self) -> None:
        self._named()
        self._choices()
        self._flags()
        self._pairs()
        self._folder_and_files()
        self._numbers()
        self._typed()
        self._lists()
        self._quotations()
        self._rest()
        self._defaults()

    def more_said(self, description: str) -> bool:
        parts = [self._label, description]
        parts += [f"{each.name} {each.schema.get('description', '')}" for each in self._every]
        known = {stem(word) for word in words_of(" ".join(parts))}
        left = list(self._wish)
        for start, end in self._taken:
            left[start:end] = " " * (end - start)
        said = [word for word in words_of("".join(left)) if word not in _SAID_OF_NUMBERS]
        return bool(self._values) or any(known.isdisjoint(_stems(word)) for word in said)

    def _open(self, *kinds: Kind, required: bool | None = None, arrays: bool = False) -> list[Parameter]:
        """Parameters without an argument yet."""
        return [
            each
            for each in self._every
            if each.name not in self.sure
            and (not kinds or each.kind in kinds)
            and each.is_array == arrays
            and required in (None, each.required)
        ]

    def _take(self, parameter: Parameter, value: Any, *values: TextValue, span: tuple[int, int] | None = None) -> None:
        if not parameter.within_bounds(value):
            self.guesses.setdefault(parameter.name, value)
            return
        self.sure[parameter.name] = value
        self.guesses.pop(parameter.name, None)
        spans = [(each.start, each.end) for each in values] + ([] if span is None else [span])
        self._taken += spans
        self._values = [
            each for each in self._values if not any(_overlap((each.start, each.end), span) for span in spans)
        ]

    def _guess(self, parameter: Parameter, value: Any) -> None:
        self.guesses.setdefault(parameter.name, value)

    def _named(self) -> None:
        """``limit=5``, ``zone Europe/Rome``, ``branch called x``; ``called x`` alone, where one parameter is a name."""
        for parameter in sorted(self._open(), key=lambda each: -len(each.words)):
            name = "|".join(parameter.spellings())
            between = r"\s*(?P<sign>[:=])\s*|\s+(?P<called>named|called)\s+|\s+(?:of\s+|to\s+)?"
            for match in re.finditer(rf"(?<![\w/.-])(?:{name})(?:{between})(?=\S)", self._wish, re.IGNORECASE):
                if self._take_at(parameter, match):
                    break
        names = [each for each in self._open("text", "path") if each.words[-1] in _NAMES]
        if len(names) == 1 and (match := re.search(r"\b(?P<called>named|called)\s+(?=\S)", self._wish, re.IGNORECASE)):
            self._take_at(names[0], match)

    def _take_at(self, parameter: Parameter, match: re.Match[str]) -> bool:
        """Takes what follows a parameter's name; whether it did. Only a sign between them makes any word a value."""
        sign = match.groupdict().get("sign") or match["called"]
        value = next((each for each in self._values if each.start == match.end()), None)
        if value is not None:
            is_text = parameter.kind in ("text", "path", "hash") and sign is not None
            if parameter.takes(value) or is_text:
                text = value.value if parameter.takes(value) else self._wish[value.start : value.end]
                self._take(parameter, text, span=(match.start(), value.end))
            return parameter.name in self.sure
        end = r"[,;\n]|$" if sign == ":" and parameter.kind == "text" else r"[.!?]*(?:[\s,;]|$)"
        word = re.compile(rf".+?(?={end})").match(self._wish, match.end())
        if word is None or parameter.kind not in ("text", "path", "hash", "enum"):
            return False
        if sign and (parameter.kind != "enum" or word[0] in parameter.schema["enum"]):
            self._take(parameter, word[0], span=(match.start(), word.end()))
        elif parameter.required and parameter.kind != "enum" and not is_empty(word[0]):
            self._guess(parameter, word[0])
        return parameter.name in self.sure

    def _choices(self) -> None:
        """Permitted values; of a parameter that isn't required only after a word such as *by*."""
        for parameter in self._open("enum"):
            found: dict[str, re.Match[str]] = {}
            for option in parameter.schema["enum"]:
                words = r"[\s_-]*".join(map(re.escape, words_of(str(option), all_of_them=True)))
                before = r"(?:\b(?:by|as|type|sorted|order|format|mode)\s+(?:an?\s+|the\s+)?|[:=]\s*)"
                pattern = rf"{'' if parameter.required else before}(?<![\w-]){words}(?![\w-])"
                if words and isinstance(option, str) and (match := re.search(pattern, self._wish, re.IGNORECASE)):
                    found[option] = match
            for option, match in found.items():
                if len(found) == 1:
                    self._take(parameter, option, span=match.span())
                else:
                    self._guess(parameter, option)

    def _flags(self) -> None:
        """``with image``, ``without image``; a name of several words also alone: ``dry run``."""
        for parameter in self._open("flag"):
            words = [word for word in parameter.words if word not in _FLAG_FILLERS] or list(parameter.words)
            name = r"(?:an?\s+|the\s+|any\s+)?" + r"[\s_-]*".join(map(re.escape, words)) + r"\b"
            said = rf"\b(?P<no>without|no|not|excluding|skip)\s+{name}|\b(?:with|including|include|and)\s+{name}"
            if len(words) > 1:
                said += rf"|\b{name}"
            if match := re.search(said, self._wish, re.IGNORECASE):
                self._take(parameter, match["no"] is None, span=match.span())

    def _pairs(self) -> None:
        """Source and destination, start and end: two values of one kind in their order, or as *from* says."""
        for first in self._open():
            second = next((each for each in self._open() if _is_pair(first, each)), None)
            for kind in ("quoted", *_TYPED, "number") if second is not None else ():
                two = [each for each in self._values if each.kind == kind and _may_take(first, each)]
                if second is not None and len(two) == 2:
                    one, other = reversed(two) if self._is_reversed(*two) else two
                    self._take(first, one.value, one)
                    self._take(second, other.value, other)
                    break

    def _is_reversed(self, one: TextValue, other: TextValue) -> bool:
        if self._word_before(other) == "from":
            return True
        clock = next((each for each in self._values if each.kind == "time"), None)
        # "in Tokyo when it is 9:00 in Berlin": the zone after the time is the one that is known.
        return one.kind == "zone" and clock is not None and one.end < clock.start < other.start

    def _folder_and_files(self) -> None:
        """Several parameters for paths are told apart by their names and the paths' endings."""
        paths = [each for each in self._every if each.kind == "path" and each.required and each.name not in self.sure]
        for parameter in paths if len(paths) > 1 else ():
            wants_folder = parameter.is_named(_FOLDERS)
            fitting = [each for each in self._values if parameter.takes(each) and _is_folder(each) == wants_folder]
            if parameter.is_array and fitting:
                self._take(parameter, [each.value for each in fitting], *fitting)
            elif len(fitting) == 1:
                self._take(parameter, fitting[0].value, fitting[0])

    def _numbers(self) -> None:
        """By the words around them; then by their order, where all that are required are there; then the only one as a count."""
        for value in [each for each in self._values if each.kind == "number"]:
            rated = [(self._rating(each, value), each) for each in self._open("number") if each.takes(value)]
            best = max((rating for rating, _ in rated), default=0)
            fitting = [each for rating, each in rated if rating == best]
            if best and len(fitting) == 1:
                self._take(fitting[0], value.value, value)
        left = [each for each in self._values if each.kind == "number"]
        wanted = self._open("number", required=True) or [
            each for each in self._open("number") if each.is_named(_COUNTS)
        ]
        if len(left) == len(wanted) and all(map(Parameter.takes, wanted, left)):
            for parameter, value in zip(wanted, left, strict=True):
                self._take(parameter, value.value, value)

    def _rating(self, parameter: Parameter, value: TextValue) -> int:
        """How well the word before a number and the two after it fit a parameter's name (twice) and description."""
        after = re.findall(r"[^\W\d_]+", re.split(r"[,;.]|\d", self._wish[value.end :][:_NEAR], maxsplit=1)[0])[:2]
        around = {stem(word.lower()) for word in (self._word_before(value), *after) if word and not is_empty(word)}
        described = {stem(word) for word in words_of(str(parameter.schema.get("description") or ""))}
        return 2 * len(around & {stem(word) for word in parameter.words}) + len(around & described)

    def _typed(self) -> None:
        """Values whose kind tells the parameter: as many as are required, or as there are parameters; else they are guesses."""
        for parameter in self._open("text"):
            globs = [each for each in self._values if "*" in str(each.value) and each.kind == "path"]
            if parameter.is_named(PATTERNS) and len(globs) == 1:
                self._take(parameter, globs[0].value, globs[0])
        for kind in _TYPED:
            required, optional = self._open(kind, required=True), self._open(kind, required=False)
            every = [*required, *optional]
            left = [each for each in self._values if every and every[0].takes(each)]
            if len(left) == 1 and not required and len(optional) > 1:
                side = _FIRST if self._word_before(left[0]) in _FIRST else _SECOND
                said = self._word_before(left[0]) in _FIRST | _SECOND
                every = [each for each in optional if said and each.is_named(side)]
            for parameter, value in zip(every, left, strict=False):
                if len(left) in (len(required), len(every)):
                    self._take(parameter, value.value, value)
                elif parameter.required:
                    self._guess(parameter, value.value)

    def _lists(self) -> None:
        for parameter in self._open(required=True, arrays=True):
            fitting = [each for each in self._values if parameter.takes(each)]
            if fitting:
                self._take(parameter, [each.value for each in fitting], *fitting)

    def _quotations(self) -> None:
        """For any text that is still open, one each in their order."""
        quoted = [each for each in self._values if each.kind == "quoted"]
        wanted = self._open("text", *_TYPED, required=True) or self._open("text", required=False)
        if len(quoted) == len(wanted):
            for parameter, value in zip(wanted, quoted, strict=True):
                self._take(parameter, value.value, value)
        elif len(quoted) == 1 and (texts := [each for each in wanted if each.is_named(TEXTS)]):
            self._guess(texts[0], quoted[0].value)

    def _rest(self) -> None:
        """What a wish says beyond the tool's own words, where the tool needs one text and nothing else."""
        required = [each for each in self._every if each.required]
        if len(required) != 1 or required[0] not in self._open("text", "path", "hash", "url", "date"):
            return
        parameter = required[0]
        own = {stem(word) for word in words_of(f"{self._label} {parameter.name}")}
        start = 0
        for token in re.finditer(r"[^\s:,]+[\s:,]*", self._wish):
            words = words_of(token[0], all_of_them=True)
            if words and not any(map(is_empty, words)) and all(not own.isdisjoint(_stems(word)) for word in words):
                start = token.end()
            elif not all(map(is_empty, words)):
                break
        named = start > 0
        if marker := _BEFORE_REST.match(self._wish, start):
            start = marker.end()
        rest = "".join(
            character
            for at, character in enumerate(self._wish)
            if at >= start and not any(begin <= at < end for begin, end in self._taken)
        )
        if (tail := _AFTER_REST.search(rest)) and not own.isdisjoint(_stems(tail[1].lower())):
            rest = rest[: tail.start()]
        rest = rest.strip(" ,").rstrip("?")
        if rest and named and parameter.kind == "text":
            self._take(parameter, rest, span=(0, len(self._wish)))
        elif rest:
            self._guess(parameter, rest)

    def _defaults(self) -> None:
        for parameter in self._every:
            for key in ("default", "const"):
                if parameter.required and parameter.schema.get(key) is not None:
                    self.sure.setdefault(parameter.name, parameter.schema[key])

    def _word_before(self, value: TextValue) -> str:
        words: Sequence[str] = re.findall(r"[^\W\d_]+", self._wish[max(0, value.start - _NEAR) : value.start])
        return words[-1].lower() if words else ""


def _stems(word: str) -> set[str]:
    """Of a word and of what tools call it."""
    return {stem(word), *map(stem, RELATED_VERBS.get(word, "").split())}


def _is_pair(first: Parameter, second: Parameter) -> bool:
    return (
        first.kind == second.kind
        and first.is_named(_FIRST)
        and second.is_named(_SECOND)
        and set(first.words) - _FIRST == set(second.words) - _SECOND
    )


def _may_take(parameter: Parameter, value: TextValue) -> bool:
    """Where any text will do, as for a source and a destination, a path or an address will."""
    return parameter.takes(value) or (parameter.kind == "text" and value.kind in ("path", "url"))


def _is_folder(value: TextValue) -> bool:
    return re.search(r"[^/.]\.\w{1,5}$", str(value.value)) is None


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]
