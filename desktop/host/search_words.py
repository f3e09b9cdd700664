"""The words of what servers offer and of what is searched for: the same for both, so that they meet.

Used by ``catalog_search`` alone. Names in any style fall into their words (``listIssues``, ``list_issues``, ``LIST-ISSUES``),
words are reduced to their stems, and scripts that write no spaces are cut into pairs of characters.
"""

# pyright: reportUnknownMemberType=false
# (numpy's own annotations are incomplete to a strict checker)

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
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
#: After each text where many are looked at together.
_MARK = "\x1f"
_WORD_OR_MARK = re.compile(rf"[^\W_]+|{_MARK}")
#: The same for ASCII as bytes, several times as fast: whatever stands between words becomes a space.
_ASCII = bytes(code if chr(code).isalnum() or chr(code) == _MARK else ord(" ") for code in range(128)) + bytes(128)
#: Where a new word begins within one: at a capital after a small letter, at the last capital of several, at a digit and after it.
_SEAM = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])")
#: Han, kana and Hangul.
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+)")
_ACCENT = re.compile("[\u0300-\u036f]")
_MOST_REMEMBERED = 50_000
#: Of a schema: those that say something of parameters, or hold schemas that may.
_TOLD, _DEFINED = ("description", "enum", "const"), ("properties", "$defs", "definitions")
_HELD = ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties")
_KEYWORDS = frozenset([*_TOLD, *_DEFINED, *_HELD])
#: Characters of what a schema says that are looked at; a schema may have 64 KiB.
_LONGEST_TEXT = 8000

Integers = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]
Surface = TypeVar("Surface", str, bytes)
Found = TypeVar("Found")


class Word(NamedTuple):
    spelling: str
    """Lower case, without accents: what a typed beginning or a typing error is compared with."""
    term: str
    """The stem: what is looked up."""


class Analyser:
    """Finds the words of texts. Not for several threads at a time: the stemmer has a state of its own.

    What texts are made of is numbered as `surfaces` meets it, and the numbers only grow.

    Attributes:
        terms: Every term so far, and its number.
        spellings: Every spelling so far, and its number.
    """

    def __init__(self) -> None:
        self.terms: dict[str, int] = {}
        self.spellings: dict[str, int] = {}
        self._stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord  # its own memory is slower than none
        self._words = _Remembered[str, tuple[Word, ...]](
            lambda surface: tuple(self._analyse(surface)), _MOST_REMEMBERED
        )
        self._surfaces = _Remembered[bytes, int](self._numbered)
        self._starts, self._found = array("i", [0, 0]), array("i")
        self._terms_of_spellings = array("i")
        self._surfaces[_MARK.encode()] = 0

    @property
    def size(self) -> int:
        """How many surface words have a number."""
        return len(self._surfaces)

    def words(self, text: str) -> list[Word]:
        """The words in their order, without stop words."""
        return list(chain.from_iterable(map(self._words.__getitem__, _SURFACE_WORD.findall(text))))

    def surfaces(self, texts: Sequence[str]) -> Iterable[int]:
        """The numbers of the surface words of texts in their order, after each text a 0. `spellings_of` tells what they mean."""
        joined = f" {_MARK} ".join((*texts, ""))
        if joined.count(_MARK) != len(texts):
            return self.surfaces([text.replace(_MARK, " ") for text in texts])
        if joined.isascii():
            found = joined.encode().translate(_ASCII)
        else:
            found = " ".join(_WORD_OR_MARK.findall(joined)).encode(errors="surrogatepass")
        return map(self._surfaces.__getitem__, found.split())

    def spellings_of(self, surfaces: Integers) -> tuple[Integers, Places]:
        """The numbers of the spellings that surface words fall into, in their order, and the text that each stands in."""
        starts, found = np.array(self._starts, np.int32), np.array(self._found, np.int32)
        counts = starts[surfaces + 1] - starts[surfaces]
        before = np.cumsum(counts) - counts
        places = np.repeat(starts[surfaces] - before, counts) + np.arange(counts.sum())
        return found[places], np.repeat(np.cumsum(surfaces == 0), counts)

    def terms_of(self, spellings: Integers) -> Integers:
        """The numbers of the terms of spellings."""
        return np.array(self._terms_of_spellings, np.int32)[spellings]

    def _numbered(self, surface: bytes) -> int:
        word = surface.decode(errors="surrogatepass")
        is_plain = surface.isalpha() and surface.islower() and word not in STOP_WORDS  # most are; of bytes: ASCII alone
        for spelling in (word,) if is_plain else _spellings(word):
            number = self.spellings.get(spelling)
            if number is None:
                number = self.spellings[spelling] = len(self._terms_of_spellings)
                self._terms_of_spellings.append(self.terms.setdefault(self._term(spelling), len(self.terms)))
            self._found.append(number)
        self._starts.append(len(self._found))
        return len(self._surfaces)

    def _analyse(self, surface: str) -> tuple[Word, ...]:
        return tuple(Word(spelling, self._term(spelling)) for spelling in _spellings(surface))

    def _term(self, spelling: str) -> str:
        return self._stem(spelling) if spelling.isascii() else spelling


def _spellings(surface: str) -> list[str]:
    """The words that a surface word falls into, without stop words."""
    if not surface.isascii():
        surface = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", surface)))
    # Nearly all words have no seam.
    whole = (
        surface.islower() or surface.isupper() or surface[1:].islower() if surface.isalpha() else surface.isdecimal()
    )
    pieces = [surface.lower()] if whole else _SEAM.sub(" ", surface).lower().split()
    found: list[str] = []
    for piece in pieces:
        if piece.isascii():
            if piece not in STOP_WORDS:
                found.append(piece)
            continue
        for run in filter(None, _UNSPACED.split(piece)):
            if _UNSPACED.match(run):
                found += [run[start : start + 2] for start in range(len(run) - 1)] or [run]
            else:
                found.append(run)
    return found


def name_words(name: str) -> list[str]:
    """The words of a name in any style, in small letters."""
    return _SEAM.sub(" ", " ".join(_SURFACE_WORD.findall(name))).lower().split()


class _Remembered(dict[Surface, Found]):
    """What was found for a surface word: most words of a catalog come again and again."""

    def __init__(self, find: Callable[[Surface], Found], most: int | None = None) -> None:
        """Forgets all when there are `most`."""
        super().__init__()
        self._find = find
        self._most = most

    def __missing__(self, surface: Surface) -> Found:
        if len(self) == self._most:
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
            if key not in _KEYWORDS:
                continue
            if key == "description":
                if node is not schema:
                    remarks.append(value if isinstance(value, str) else "")
            elif key in _TOLD:
                values = cast("list[Any]", value if isinstance(value, list) else [value])
                remarks += [each for each in values if isinstance(each, str)]
            elif key not in _DEFINED:
                waiting.append(value)
            elif isinstance(value, dict):
                properties = cast("dict[str, Any]", value)
                if key == "properties":
                    names += properties
                waiting += properties.values()
    return names, remarks
