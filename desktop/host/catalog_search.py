"""Ranks what servers offer by a query: the one engine behind the model's searches, the catalog panel and Guide.

`CatalogSearch` holds what was found in each part of the catalog (a server's tools, say): a part that changed is analysed anew,
the others are only joined again. That takes tens of milliseconds for thousands of entries: ``ServerCatalog`` does it in a
thread. A part is analysed by ``search_parts``, the ranking itself is ``search_index``, its words are ``search_words``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from rapidfuzz import fuzz, process

from desktop.catalog_entries import CatalogEntry, Kind
from desktop.host.meanings import Meanings, digest_of, text_of
from desktop.host.search_index import Index, Ranked
from desktop.host.search_parts import Key, Part, analyse
from desktop.host.search_words import Analyser
from desktop.host.sentence_encoder import Vectors

_LONGEST_TITLE = 100
#: Characters of a query that its meaning is taken from: somebody may paste a page.
_LONGEST_QUERY = 2000
#: Words that may be left of what is no longer offered before all is analysed anew.
_STALE_WORDS = 50_000
#: Percent; below it two names are not nearly the same.
_NEARLY = 75


class CatalogSearch:
    """The parts of the catalog and the index over them. Not for several threads at a time."""

    def __init__(self, meanings: Meanings | None = None) -> None:
        """With `meanings` the ranking also heeds what entries mean, as soon as that is known of all of them."""
        self._meanings = meanings
        self._digests: dict[Key, list[bytes]] = {}
        self._vectors: Vectors | None = None
        self._analyser = Analyser()
        self._texts: dict[Key, tuple[Sequence[CatalogEntry], str]] = {}
        self._parts: dict[Key, Part] = {}
        self._settled_words = 0
        self._index: Index | None = None

    def replace(self, kind: Kind, server: str, entries: Sequence[CatalogEntry], *, title: str = "") -> None:
        """Sets what a server offers of one kind; only these entries are analysed.

        `title` is what the server calls itself: its entries are found by it as by the name that the person gave the server.
        """
        self._index = self._vectors = None
        self._texts.pop((kind, server), None)
        self._parts.pop((kind, server), None)
        self._digests.pop((kind, server), None)
        if entries:
            self._texts[kind, server] = entries, title[:_LONGEST_TITLE]

    def rank(
        self, query: str, *, kinds: Iterable[Kind] | None = None, server: str | None = None, limit: int
    ) -> list[Ranked]:
        """The `limit` best entries of these kinds and this server (None: all), best first.

        Equal ones come by kind, server and name, in whatever order they were given. A query that is the identifier of a
        tool or prompt (in any case) or a URI or template (in this very case) finds only what it names. A query without a
        word that counts, or whose words nothing answers, finds nothing.
        """
        wanted = None if kinds is None else frozenset(kinds)
        index = self._index or self._join()
        typed, words = query.strip(), self._analyser.words(query)
        if exact := index.named(typed, words, wanted, server):
            return [Ranked(entry, float("inf"), lambda: ("identifier",)) for entry in exact[:limit]]
        return index.rank(typed, words, wanted, server, limit, partial(self._likeness, query))

    def _join(self) -> Index:
        if self._analyser.size > 2 * self._settled_words + _STALE_WORDS:
            self._analyser = Analyser()
            self._parts.clear()
            self._settled_words = 0
        new = {key: texts for key, texts in self._texts.items() if key not in self._parts}
        self._parts.update(analyse(new, self._analyser))
        self._settled_words = self._settled_words or self._analyser.size
        self._index = Index(self._parts, self._analyser)
        self._have_encoded()
        return self._index

    def _have_encoded(self) -> None:
        """Asks for the vectors of what is new."""
        if self._meanings is None:
            return
        new: dict[bytes, str] = {}
        for key, part in self._parts.items():
            if key not in self._digests:
                texts = [text_of(entry) for entry in part.entries]
                self._digests[key] = [digest_of(text) for text in texts]
                new.update(zip(self._digests[key], texts, strict=True))
        if new:
            self._meanings.want(new)

    def _likeness(self, query: str) -> Vectors | None:
        """How like a query's meaning is to each entry's, in the index's order; None where that isn't known of all."""
        if self._meanings is None:
            return None
        if self._vectors is None:
            digests = [digest for key in sorted(self._digests) for digest in self._digests[key]]
            self._vectors = self._meanings.of(digests)
        if self._vectors is None:
            return None
        vector = self._meanings.of_query(query[:_LONGEST_QUERY])
        return None if vector is None else self._vectors @ vector


def near_names(name: str, choices: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Of pairs of a name and what it stands for, the latter of those nearly named `name`, nearest first: at most three."""
    names = [each.lower() for each, _ in choices]
    found = process.extract(name.lower(), names, scorer=fuzz.ratio, score_cutoff=_NEARLY, limit=None)
    ordered = sorted((-score, choices[place][1]) for _, score, place in found)
    return tuple(dict.fromkeys(meant for _, meant in ordered))[:3]
