"""What is found in the texts of one part of the catalog (a server's tools, say): the words of each field of each entry.

Used by ``catalog_search``, which analyses a part anew when it changed, and by ``search_index``, which joins the parts.
"""

# pyright: reportUnknownMemberType=false
# (numpy's own annotations are incomplete to a strict checker)

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from desktop.catalog_entries import CatalogEntry, Kind, PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition
from desktop.host.search_words import Analyser, Integers, name_words, texts_of

Floats = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.int64]
Key = tuple[Kind, str]
"""Of a part: the kind of its entries, and their server."""

#: The places of fields among those of `texts_of`, and how many there are.
NAME, SERVER, FIELDS = 0, 2, 6
#: The first fields are labels; in the last ones a word counts once, however many parameters say it.
_LABELS, _PARAMETERS = 3, 4
#: Words of a name that are compared with the query's.
NAME_WORDS = 12
#: Entries that are analysed at a time: enough to be fast, few enough to need little memory.
_AT_ONCE = 4000


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the catalog, analysed. A document is an entry by its place.

    A row says how often a term stands in a field of a document; rows are sorted by document, term and field.
    """

    entries: list[CatalogEntry]
    title: str
    terms: Integers
    """The term of each row."""
    places: Integers
    """The field of each row: ``document * FIELDS + field``."""
    counts: npt.NDArray[np.uint8]
    lengths: Floats
    """Words of each field, a row a document."""
    names: Integers
    """The first terms of each name, a row a document, filled up with -1."""
    labels: Integers
    """Numbers of the spellings in names, titles and server names."""
    spelled: Hashes
    """Of each name whatever its style: of its words' spellings, and of a name of stop words alone, of these."""
    selectors: Hashes
    """Of the two texts that name the document exactly, a row a document; see `_selectors`."""


def analyse(texts: Mapping[Key, tuple[Iterable[CatalogEntry], str]], analyser: Analyser) -> dict[Key, Part]:
    """Analyses parts of the catalog: of each its entries and what the server calls itself, which counts as a name of it."""
    parts: dict[Key, Part] = {}
    waiting: dict[Key, tuple[list[CatalogEntry], str]] = {}
    count = 0
    for key, (entries, title) in texts.items():
        ordered = sorted(entries, key=_name)
        waiting[key] = ordered, title
        count += len(ordered)
        if count >= _AT_ONCE:
            parts.update(_analysed(waiting, analyser))
            waiting, count = {}, 0
    return parts | _analysed(waiting, analyser)


def _analysed(parts: Mapping[Key, tuple[list[CatalogEntry], str]], analyser: Analyser) -> dict[Key, Part]:
    """All parts together: what numpy does of each call is much less than the call for a part of a few entries."""
    surfaces = array("i")
    for entries, title in parts.values():
        for entry in entries:
            texts = texts_of(entry)
            surfaces.extend(analyser.surfaces((*texts[:SERVER], f"{entry.server} {title}", *texts[SERVER + 1 :])))
    # No list of a word each: building and sorting it would stop the event loop, which is in another thread.
    spellings, places = analyser.spellings_of(np.array(surfaces, np.int32))
    terms = analyser.terms_of(spellings)
    documents, fields = np.divmod(places, FIELDS)
    ends = np.cumsum([0, *(len(entries) for entries, _ in parts.values())])
    size = int(ends[-1])

    of_names = np.flatnonzero(fields == NAME)
    spelled = _spelled(parts, spellings[of_names], documents[of_names], analyser)
    nth = np.arange(len(of_names)) - np.searchsorted(documents[of_names], documents[of_names])
    of_names, nth = of_names[nth < NAME_WORDS], nth[nth < NAME_WORDS]
    names = np.full((size, NAME_WORDS), -1, np.int32)
    names[documents[of_names], nth] = terms[of_names]
    of_labels = np.flatnonzero(fields < _LABELS)
    labels, documents = spellings[of_labels], documents[of_labels]

    keys, counts = np.unique(
        (places // FIELDS << 32 | terms.astype(np.int64)) * 8 + places % FIELDS, return_counts=True
    )
    rows, fields = np.divmod(keys, 8)
    counts[fields >= _PARAMETERS] = 1
    places = (rows >> 32) * FIELDS + fields
    lengths = np.bincount(places, counts, size * FIELDS).astype(np.float32).reshape(-1, FIELDS)
    terms, counts = (rows & 0xFFFFFFFF).astype(np.int32), np.minimum(counts, 255).astype(np.uint8)

    bounds = zip(
        pairwise(ends.tolist()),
        pairwise(np.searchsorted(places, ends * FIELDS).tolist()),
        pairwise(np.searchsorted(documents, ends).tolist()),
        strict=True,
    )
    return {
        key: Part(
            entries,
            title,
            terms[row:last_row].copy(),
            (places[row:last_row] - start * FIELDS).astype(np.int32),
            counts[row:last_row].copy(),
            lengths[start:end].copy(),
            names[start:end].copy(),
            labels[label:last_label].copy(),
            spelled[start:end].copy(),
            np.array([hash(text) for entry in entries for text in _selectors(entry)], np.int64).reshape(-1, 2),
        )
        for (key, (entries, title)), ((start, end), (row, last_row), (label, last_label)) in zip(
            parts.items(), bounds, strict=True
        )
    }


def _spelled(
    parts: Mapping[Key, tuple[list[CatalogEntry], str]],
    spellings: Integers,
    documents: npt.NDArray[np.intp],
    analyser: Analyser,
) -> Hashes:
    """See `Part.spelled`. `spellings` are those of all names, `documents` the places of the entries they name."""
    known = list(analyser.spellings)
    words: list[str] = [known[number] for number in map(int, spellings)]
    entries = [entry for some, _ in parts.values() for entry in some]
    bounds = np.searchsorted(documents, np.arange(len(entries) + 1)).tolist()
    return np.array(
        [
            hash(" ".join(words[start:end] or name_words(entry.name)))
            for entry, (start, end) in zip(entries, pairwise(bounds), strict=True)
        ],
        np.int64,
    )


def _name(entry: CatalogEntry) -> str:
    match entry:
        case ToolDefinition() | PromptEntry():
            return entry.name
        case ResourceEntry():
            return entry.uri
        case TemplateEntry():
            return entry.template


def _selectors(entry: CatalogEntry) -> tuple[str, str]:
    """The two texts that name an entry exactly: in small letters where case doesn't matter, after a ``=`` where it does."""
    match entry:
        case ToolDefinition():
            return entry.identifier.casefold(), entry.native_name.casefold()
        case PromptEntry():
            text = f"{entry.server}.{entry.name}".casefold()
        case ResourceEntry():
            text = f"={entry.uri}"
        case TemplateEntry():
            text = f"={entry.template}"
    return text, text
