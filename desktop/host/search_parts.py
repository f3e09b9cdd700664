"""What is found in the texts of one part of the catalog (a server's tools, say): the words of each field of each entry.

Used by ``catalog_search``, which analyses a part anew when it changed, and by ``search_index``, which joins the parts.
"""

# pyright: reportUnknownMemberType=false
# (numpy's own annotations are incomplete to a strict checker)

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from desktop.catalog_entries import CatalogEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition
from desktop.host.search_words import Analyser, name_words, texts_of

Integers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.int64]

#: The places of fields among those of `texts_of`, and how many there are.
NAME, SERVER, FIELDS = 0, 2, 6
#: The first fields are labels; in the last ones a word counts once, however many parameters say it.
_LABELS, _PARAMETERS = 3, 4
#: Words of a name that are compared with the query's.
NAME_WORDS = 12


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the catalog, analysed. A document is an entry by its place; a posting, a term in a document.

    Postings are sorted by term, then by document.
    """

    entries: list[CatalogEntry]
    title: str
    terms: Integers
    documents: Integers
    counts: npt.NDArray[np.uint8]
    """How often the term stands in each field, a row a posting."""
    lengths: Floats
    """Words of each field, a row a document."""
    names: Integers
    """The first terms of each name, a row a document, filled up with -1."""
    labels: dict[str, int]
    """Spellings in names, titles and server names, and their terms."""
    spelled: Hashes
    """Of each name whatever its style: of its words' spellings, and of a name of stop words alone, of these."""
    selectors: Hashes
    """Of the two texts that name the document exactly, a row a document; see `_selectors`."""


def analyse(entries: Iterable[CatalogEntry], title: str, analyser: Analyser) -> Part:
    """Analyses entries of one server, of one kind; at least one. `title` counts as a name of the server."""
    ordered = sorted(entries, key=_name)
    found = array("i")
    lengths = np.zeros((len(ordered), FIELDS), np.int32)
    names = np.full((len(ordered), NAME_WORDS), -1, np.int32)
    labels: dict[str, int] = {}
    spelled = np.zeros(len(ordered), np.int64)
    for document, entry in enumerate(ordered):
        for field, text in enumerate(texts_of(entry)):
            if field == SERVER:
                text = f"{text} {title}"
            numbers = analyser.numbers(text)
            if field >= _PARAMETERS:
                numbers = list(dict.fromkeys(numbers))
            found.extend(numbers)
            lengths[document, field] = len(numbers)
            if field < _LABELS:
                spellings = [word.spelling for word in analyser.words(text)]
                labels.update(zip(spellings, numbers, strict=True))
                if field == NAME:
                    names[document, : len(numbers)] = numbers[:NAME_WORDS]
                    spelled[document] = hash(" ".join(spellings or name_words(text)))
    # No list of a posting each: building and sorting it would stop the event loop, which is in another thread.
    documents, fields = np.divmod(np.repeat(np.arange(lengths.size), lengths.ravel()), FIELDS)
    keys, places = np.unique(np.array(found, np.int64) * len(ordered) + documents, return_inverse=True)
    counts = np.bincount(places * FIELDS + fields, minlength=len(keys) * FIELDS)
    terms, documents = np.divmod(keys, len(ordered))
    return Part(
        ordered,
        title,
        terms.astype(np.int32),
        documents.astype(np.int32),
        np.minimum(counts, 255).astype(np.uint8).reshape(-1, FIELDS),
        lengths.astype(np.float32),
        names,
        labels,
        spelled,
        np.array([[hash(text) for text in _selectors(entry)] for entry in ordered], np.int64).reshape(-1, 2),
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
