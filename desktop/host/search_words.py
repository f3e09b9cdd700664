"""The words of what servers offer and of what is searched for: the same for both, so that they meet.

Used by ``catalog_search`` alone. Names in any style fall into their words (``listIssues``, ``list_issues``, ``LIST-ISSUES``),
words are reduced to their stems, and scripts that write no spaces are cut into pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast

import Stemmer

from desktop.catalog_entries import CatalogEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about an and any are as at be been but by can could do does for from had has have he her his how i if in into is it "
        "its just let like may me my need not of on or our out please she should so some than that the their them then there "
        "these they this to tool tools mcp us use using want was we were what when where which who will with would you your",
    )
)

_SURFACE_WORD = re.compile(r"[^\W_]+")
#: The same for ASCII, several times as fast.
_ASCII_SEPARATORS = {code: " " for code in range(128) if not chr(code).isalnum()}
#: Where a new word begins within one: at a capital after a small letter, at the last capital of several, at a digit and after it.
_SEAM = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])")
#: Han, kana and Hangul.
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+)")
_ACCENT = re.compile("[\u0300-\u036f]")
_MOST_REMEMBERED = 50_000
#: Characters of what a schema says that are looked at; a schema may have 64 KiB.
_LONGEST_TEXT = 8000


Found = TypeVar("Found")


class Word(NamedTuple):
    spelling: str
    """Lower case, without accents: what a typed beginning or a typing error is compared with."""
    term: str
    """The stem: what is looked up."""


class Analyser:
    """Finds the words of texts. Not for several threads at a time: the stemmer has a state of its own.

    Attributes:
        terms: Every term that was found by `numbers`, and its number. It only grows.
    """

    def __init__(self) -> None:
        self.terms: dict[str, int] = {}
        self._stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord  # pyright: ignore[reportUnknownMemberType]
        self._words = _Remembered(lambda surface: tuple(self._analyse(surface)))
        self._numbers = _Remembered(self._numbered)

    def words(self, text: str) -> list[Word]:
        """The words in their order, without stop words."""
        return list(chain.from_iterable(map(self._words.__getitem__, _surface_words(text))))

    def numbers(self, text: str) -> list[int]:
        """The numbers of the words' terms, in the words' order; a new term gets a new number."""
        return list(chain.from_iterable(map(self._numbers.__getitem__, _surface_words(text))))

    def _numbered(self, surface: str) -> tuple[int, ...]:
        return tuple(self.terms.setdefault(word.term, len(self.terms)) for word in self._analyse(surface))

    def _analyse(self, surface: str) -> Iterator[Word]:
        if not surface.isascii():
            surface = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", surface)))
        for piece in _SEAM.sub(" ", surface).lower().split():
            if piece.isascii():
                if piece not in STOP_WORDS:
                    yield Word(piece, self._stem(piece))
                continue
            for run in filter(None, _UNSPACED.split(piece)):
                if _UNSPACED.match(run):
                    pairs = [run[start : start + 2] for start in range(len(run) - 1)] or [run]
                    yield from (Word(pair, pair) for pair in pairs)
                else:
                    yield Word(run, run)


def _surface_words(text: str) -> list[str]:
    """Runs of letters and digits."""
    return text.translate(_ASCII_SEPARATORS).split() if text.isascii() else _SURFACE_WORD.findall(text)


def name_words(name: str) -> list[str]:
    """The words of a name in any style, in small letters."""
    return _SEAM.sub(" ", " ".join(_surface_words(name))).lower().split()


class _Remembered(dict[str, tuple[Found, ...]]):
    """What was found for a surface word: most words of a catalog come again and again."""

    def __init__(self, find: Callable[[str], tuple[Found, ...]]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, surface: str) -> tuple[Found, ...]:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        found = self[surface] = self._find(surface)
        return found


def texts_of(entry: CatalogEntry) -> tuple[str, str, str, str, str, str]:
    """An entry's name, title (with its URI or template), server, description, parameter names, and what is said of parameters."""
    match entry:
        case ToolDefinition():
            names, remarks = _schema_texts(entry.input_schema)
            texts = (" ".join(names)[:_LONGEST_TEXT], " ".join(remarks)[:_LONGEST_TEXT])
            return entry.name, entry.title, entry.server, entry.description, *texts
        case ResourceEntry():
            return entry.name, f"{entry.title} {entry.uri}", entry.server, entry.description, "", entry.mime_type
        case TemplateEntry():
            return entry.name, f"{entry.title} {entry.template}", entry.server, entry.description, "", entry.mime_type
        case PromptEntry(arguments=arguments):
            names = " ".join(argument.name for argument in arguments)
            remarks = " ".join(argument.description for argument in arguments)
            return entry.name, entry.title, entry.server, entry.description, names, remarks


def _schema_texts(schema: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The names of a schema's properties, and their descriptions and permitted values, at any depth."""
    names: list[str] = []
    remarks: list[str] = []
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += reversed(cast("list[Any]", node))
        if not isinstance(node, dict):
            continue
        for key, value in cast("dict[Any, Any]", node).items():
            if key == "description" and node is not schema:
                remarks.append(value if isinstance(value, str) else "")
            elif key in ("enum", "const"):
                values = cast("list[Any]", value if isinstance(value, list) else [value])
                remarks += [each for each in values if isinstance(each, str)]
            elif key in ("properties", "$defs", "definitions") and isinstance(value, dict):
                properties = cast("dict[str, Any]", value)
                if key == "properties":
                    names += properties
                waiting += properties.values()
            elif key in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
                waiting.append(value)
    return names, remarks
