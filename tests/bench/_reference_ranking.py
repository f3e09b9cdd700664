"""A known ranking to measure Deskhand's search against: BM25+ over weighted fields with prefixes, as MiniSearch 7 computes it,
and exact identifiers first.

Used by ``search.py`` and checked in ``tests/test_reference_ranking.py`` against scores that MiniSearch itself gave.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from desktop.catalog_entries import CatalogEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition

K, B, D = 1.2, 0.7, 0.5
PREFIX_WEIGHT = 0.375
STOP_WORDS = frozenset(["a", "an", "the", "for", "to", "and", "in", "of", "with", "tool", "tools", "mcp"])
#: The order of characters where names are compared: punctuation, digits, letters.
_ORDER = {
    character: place
    for place, character in enumerate("_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz")
}

Document = dict[str, str]


def tokens(text: str) -> list[str]:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower()
    return [word for word in re.split(r"[\W_]+", spaced) if word and word not in STOP_WORDS]


def collation_key(text: str) -> tuple[object, ...]:
    """Orders texts as a locale does: letters before their case."""
    places = [(_ORDER.get(character, 1000), character) for character in text.lower()]
    return places, [character.isupper() for character in text]


class ReferenceRanking:
    def __init__(self, entries: Sequence[CatalogEntry]) -> None:
        self._entries = list(entries)
        self._mixed = any(not isinstance(entry, ToolDefinition) for entry in entries)
        self._boosts = {"name": 4, "title": 4, "uri": 2, "description": 1, "server": 1}
        if not self._mixed:
            self._boosts = {"name": 4, "description": 1, "server": 1}
        self._lengths: dict[str, list[int]] = {}
        self._averages: dict[str, float] = {}
        self._postings: defaultdict[str, dict[str, dict[int, int]]] = defaultdict(dict)
        for field in self._boosts:
            self._add_field(field, [tokens(_texts(entry).get(field, "")) for entry in self._entries])
        self._terms = sorted(self._postings)

    def rank(self, query: str, limit: int) -> list[tuple[CatalogEntry, float]]:
        exact = [entry for entry in self._entries if _names(query.strip(), entry)]
        if exact:
            return [(entry, math.inf) for entry in sorted(exact, key=self._id)[: limit if self._mixed else 1]]
        scores: defaultdict[int, float] = defaultdict(float)
        matched: defaultdict[int, set[str]] = defaultdict(set)
        for word in tokens(query):
            for term in self._beginning_with(word):
                beyond = len(term) - len(word)
                weight = 1.0 if not beyond else PREFIX_WEIGHT * len(term) / (len(term) + 0.3 * beyond)
                for field, documents in self._postings[term].items():
                    self._add_scores(scores, field, documents, weight)
                    for document in documents:
                        matched[document].add(word)
        for document, words in matched.items():
            scores[document] *= len(words)
        best = sorted(scores, key=lambda document: (-scores[document], self._id(self._entries[document])))
        return [(self._entries[document], scores[document]) for document in best[:limit]]

    def _add_field(self, field: str, found: Sequence[Sequence[str]]) -> None:
        for document, words in enumerate(found):
            for word in words:
                documents = self._postings[word].setdefault(field, {})
                documents[document] = documents.get(document, 0) + 1
        self._lengths[field] = [len(set(words)) for words in found]
        self._averages[field] = sum(self._lengths[field]) / max(1, len(found))

    def _add_scores(self, scores: dict[int, float], field: str, documents: dict[int, int], weight: float) -> None:
        count = len(self._entries)
        rarity = math.log(1 + (count - len(documents) + 0.5) / (len(documents) + 0.5))
        for document, times in documents.items():
            length = self._lengths[field][document] / self._averages[field]
            part = D + times * (K + 1) / (times + K * (1 - B + B * length))
            scores[document] += weight * self._boosts[field] * rarity * part

    def _beginning_with(self, word: str) -> list[str]:
        found: list[str] = []
        for place in range(bisect_left(self._terms, word), len(self._terms)):
            if not self._terms[place].startswith(word):
                break
            found.append(self._terms[place])
        return found

    def _id(self, entry: CatalogEntry) -> tuple[object, ...]:
        if isinstance(entry, ToolDefinition) and not self._mixed:
            return collation_key(entry.native_name)
        kind, name = _kind_and_name(entry)
        return kind, collation_key(entry.server), collation_key(name)


def _kind_and_name(entry: CatalogEntry) -> tuple[str, str]:
    match entry:
        case ToolDefinition():
            return "tool", entry.name
        case PromptEntry():
            return "prompt", entry.name
        case ResourceEntry():
            return "resource", entry.uri
        case TemplateEntry():
            return "template", entry.template


def _texts(entry: CatalogEntry) -> Document:
    texts = {"name": entry.name, "description": entry.description, "server": entry.server}
    match entry:
        case ToolDefinition():
            return texts
        case ResourceEntry():
            return texts | {"title": entry.title, "uri": entry.uri}
        case TemplateEntry():
            return texts | {"title": entry.title, "uri": entry.template}
        case PromptEntry():
            return texts | {"title": entry.title or entry.name}


def _names(query: str, entry: CatalogEntry) -> bool:
    match entry:
        case ToolDefinition():
            return query.lower() in (entry.native_name.lower(), entry.identifier.lower())
        case PromptEntry():
            return query.lower() in (entry.name.lower(), f"{entry.server}.{entry.name}".lower())
        case ResourceEntry():
            return query == entry.uri
        case TemplateEntry():
            return query == entry.template
