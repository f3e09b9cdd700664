"""The index that searches of the catalog run on: BM25F over the fields of an entry, then a closer look at the best.

Used by ``catalog_search`` alone. The settings did best on catalogs and queries of several sources; the surface around them is
flat, so there is little to gain from turning them.
"""

# pyright: reportUnknownMemberType=false
# (numpy's own annotations are incomplete to a strict checker)

from __future__ import annotations

import dataclasses
import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from desktop.catalog_entries import CatalogEntry, Kind
from desktop.host.search_parts import FIELDS, NAME_WORDS, SERVER, Floats, Hashes, Integers, Part
from desktop.host.search_words import Analyser, Word, name_words, texts_of

Positions = npt.NDArray[np.intp]

#: For each field of `texts_of`: how much a word there counts, and how much of that it loses in a long field. Labels count far
#: more than descriptions, so that a description stuffed with words gains little.
_WEIGHTS = np.array([3.0, 2.0, 1.5, 1.0, 0.5, 0.3], np.float32)
_LENGTH_LOSS = np.array([0.3, 0.3, 0.0, 0.6, 0.7, 0.3], np.float32)
_SATURATION = np.float32(0.9)
#: What the fields are called where a result says why it was found.
_FIELDS = ("name", "title", "server", "description", "parameters", "parameters")
#: Entries that are looked at closely. A search returns 50 at most.
_CLOSE = 64
#: Entries that are looked at for their meaning alone, and what the likest counts when the best by words counts 1.
_NEAREST = 50
_LIKENESS = 1.5
#: Of the likest's likeness; below it an entry has to be found by its words.
_NEAR_ENOUGH = 0.6
#: Of the highest score, tried in turn: what so many entries are above need not be looked for among all that have any.
_SHARES = (0.5, 0.2, 0.0)
#: Words of a query that are looked up: somebody may paste a page.
_QUERY_WORDS = 64
#: A query of so few words should be covered whole, and its unknown words are completed and corrected.
_SHORT = 6
#: Every word of a query of so few words may be a beginning.
_SHORTEST = 4
_BEGINNING, _ONE_ERROR, _TWO_ERRORS, _JOINED, _PERHAPS_BEGINNING, _SHORT_FORM = 0.8, 0.8, 0.6, 0.8, 0.35, 0.5
#: Letters of a label that may be the short form of a longer word: ``repo`` of ``repository``.
_SHORTEST_FORM = 4
_MOST_BEGINNINGS = 64


@dataclass(frozen=True, slots=True)
class Ranked:
    entry: CatalogEntry
    score: float
    """Comparable within one ranking; ``inf`` for what the query names exactly."""
    find_matched: Callable[[], tuple[str, ...]] = dataclasses.field(compare=False, repr=False)

    @property
    def matched(self) -> tuple[str, ...]:
        """Why it was found: words of the query with the fields that answer them, ``teams: name, description``; ``identifier`` for
        what the query names exactly, ``meaning`` where no word is answered.

        Found when it is asked for, which takes about as long as a ranking does for each ten; not from another thread.
        """
        return self.find_matched()


class Index:
    """The postings of all parts joined, with what each adds to an entry's score. Never changed: a new one replaces it."""

    def __init__(self, parts: Mapping[tuple[Kind, str], Part], analyser: Analyser) -> None:
        """`analyser`: the one of all parts. The entries' order decides between equals: by kind, server and name."""
        joined = [(kind, server, parts[kind, server]) for kind, server in sorted(parts)]
        offsets = list(itertools.accumulate((len(part.entries) for _, _, part in joined), initial=0))
        self._ranges = [
            (kind, server, slice(start, stop))
            for (kind, server, _), (start, stop) in zip(joined, itertools.pairwise(offsets), strict=True)
        ]
        self._analyser = analyser
        self._terms: Mapping[str, int] = analyser.terms
        self._titles = {(kind, server): part.title for kind, server, part in joined}
        self._entries = [entry for _, _, part in joined for entry in part.entries]
        self._names = np.concatenate([np.empty((0, NAME_WORDS), np.int32), *(part.names for _, _, part in joined)])
        self._spelled = _sorted([part.spelled for _, _, part in joined])
        self._selectors = _sorted([part.selectors.ravel() for _, _, part in joined])
        self._labels: dict[str, int] = {}
        for _, _, part in joined:
            self._labels.update(part.labels)
        self._spellings = sorted(self._labels)
        self._by_length: defaultdict[int, list[str]] = defaultdict(list)
        for spelling in self._spellings:
            self._by_length[len(spelling)].append(spelling)

        lengths = np.concatenate([np.empty((0, FIELDS), np.float32), *(part.lengths for _, _, part in joined)])
        average = lengths.sum(axis=0) / max(len(lengths), 1)
        weights = _WEIGHTS / (1 - _LENGTH_LOSS + _LENGTH_LOSS * lengths / np.where(average > 0, average, 1))
        numbers = np.concatenate([np.empty(0, np.int32), *(part.terms for _, _, part in joined)])
        documents = np.concatenate(
            [
                np.empty(0, np.int32),
                *(part.documents + np.int32(offset) for (_, _, part), offset in zip(joined, offsets, strict=False)),
            ]
        )
        counts = np.concatenate([np.empty((0, FIELDS), np.uint8), *(part.counts for _, _, part in joined)])
        frequency = np.einsum("ij,ij->i", counts, np.take(weights, documents, axis=0))
        held_by = np.bincount(numbers, minlength=len(self._terms))
        rarity = np.log1p((len(self._entries) - held_by + 0.5) / (held_by + 0.5)).astype(np.float32)
        impacts = rarity[numbers] * frequency / (frequency + _SATURATION)
        order = np.argsort(numbers, kind="stable")  # the parts are sorted: stable sorting merges their runs
        self._documents = documents[order]
        self._impacts = impacts[order].astype(np.float32)
        self._starts = np.concatenate([[0], np.cumsum(held_by)])

    def named(self, text: str, kinds: frozenset[Kind] | None, server: str | None) -> list[CatalogEntry]:
        """The entries that a text names exactly; of stop words alone it is the name of those that have that very name."""
        wanted = self._wanted(kinds, server)
        places = {place for name in (text.casefold(), f"={text}") for place in _equal(self._selectors, name) // 2}
        if (words := name_words(text)) and not self._analyser.words(text):
            places |= set(_equal(self._spelled, " ".join(words)))
        return [self._entries[place] for place in sorted(places) if wanted is None or wanted[place]]

    def rank(
        self,
        words: Sequence[Word],
        kinds: frozenset[Kind] | None,
        server: str | None,
        limit: int,
        likeness: Callable[[], Floats | None] = lambda: None,
    ) -> list[Ranked]:
        """The best entries for a query's words, best first; none when no entry has a word that answers one of them.

        `likeness` gives how like the query's meaning is to that of each entry in turn. It isn't asked for a short query with an
        unknown word, most likely a name that is being typed: there meaning would mislead.
        """
        named = np.sort(_equal(self._spelled, " ".join(word.spelling for word in words)))
        words = list(dict.fromkeys(words))[:_QUERY_WORDS]
        answers = [self._answers(word, len(words)) for word in words]
        scores = np.zeros(len(self._entries), np.float32)
        holders: list[Integers] = []
        for answer in answers:
            documents, impacts = self._postings(answer)
            scores[documents] += impacts
            holders.append(documents)
        wanted = self._wanted(kinds, server)
        if wanted is not None:
            scores[~wanted] = 0
            named = named[wanted[named]]
        close = _highest(scores)
        if not len(close):
            return []
        close = np.union1d(close, named)
        found = scores[close]
        if len(words) <= _SHORT:
            found *= np.sqrt(np.mean([_held(documents, close) for documents in holders], axis=0, dtype=np.float32))
        found *= 1 + self._explained(close, answers)
        is_typed = len(words) <= _SHORTEST and any(1.0 not in answer.values() for answer in answers)
        if not is_typed and (like := likeness()) is not None:
            close, found = _with_likeness(close, found, like, wanted)
        found[_held(named, close)] += found.max()
        best = np.lexsort((close, -found))[:limit]
        return [
            Ranked(
                self._entries[close[place]],
                float(found[place]),
                partial(self._matched, int(close[place]), words, answers),
            )
            for place in best
        ]

    def _matched(self, place: int, words: Sequence[Word], answers: Sequence[Mapping[int, float]]) -> tuple[str, ...]:
        """See `Ranked.matched`. Analyses the entry again: only the few that are returned need it."""
        entry = self._entries[place]
        title = next(self._titles[kind, server] for kind, server, places in self._ranges if place < places.stop)
        texts = [f"{text} {title}" if field == SERVER else text for field, text in enumerate(texts_of(entry))]
        held = [set(self._analyser.numbers(text)) for text in texts]
        reasons: dict[str, str] = {}
        for word, answer in zip(words, answers, strict=True):
            fields = dict.fromkeys(
                name for name, numbers in zip(_FIELDS, held, strict=True) if not numbers.isdisjoint(answer)
            )
            if fields:
                reasons.setdefault(word.spelling, f"{word.spelling}: {', '.join(fields)}")
        return tuple(reasons.values()) or ("meaning",)

    def _wanted(self, kinds: frozenset[Kind] | None, server: str | None) -> npt.NDArray[np.bool_] | None:
        """Which entries are of these kinds and this server; None: all."""
        if kinds is None and server is None:
            return None
        wanted = np.zeros(len(self._entries), np.bool_)
        for kind, owner, places in self._ranges:
            wanted[places] = (kinds is None or kind in kinds) and server in (None, owner)
        return wanted

    def _postings(self, answer: Mapping[int, float]) -> tuple[Integers, Floats]:
        """The entries that hold a term which answers a word, in order, and the most that one of them adds to their scores."""
        places = [slice(self._starts[term], self._starts[term + 1]) for term in answer]
        if len(places) == 1:
            return self._documents[places[0]], self._impacts[places[0]] * np.float32(*answer.values())
        most = np.zeros(len(self._entries), np.float32)
        for of_term, weight in zip(places, answer.values(), strict=True):
            if weight == 1:  # the word itself; the others are few, and often rare
                most[self._documents[of_term]] = self._impacts[of_term]
        weak = [(of_term, weight) for of_term, weight in zip(places, answer.values(), strict=True) if weight < 1]
        if weak:
            impacts = [self._impacts[of_term] * np.float32(weight) for of_term, weight in weak]
            np.maximum.at(most, np.concatenate([self._documents[each] for each, _ in weak]), np.concatenate(impacts))
        documents = np.flatnonzero(most).astype(np.int32)
        return documents, most[documents]

    def _explained(self, close: Positions, answers: Sequence[Mapping[int, float]]) -> Floats:
        """How far each entry's name and the query explain each other, from 0 to 1: the product of the shares of their words."""
        names = self._names[close]
        of_name = np.zeros(names.shape, np.bool_)
        of_query = np.zeros(len(close), np.float32)
        for answer in answers:
            equal = (names[:, :, None] == np.fromiter(answer, np.int32, len(answer))).any(axis=2)
            of_name |= equal
            of_query += equal.any(axis=1)
        words = np.maximum((names >= 0).sum(axis=1, dtype=np.float32), np.float32(1))
        of_name_share = of_name.sum(axis=1, dtype=np.float32) / words
        return (of_name_share * of_query / len(answers)).astype(np.float32)

    def _answers(self, word: Word, count: int) -> dict[int, float]:
        """The terms that answer a word of a query of `count` words, each with its weight."""
        term = self._terms.get(word.term)
        if term is not None and term + 1 < len(self._starts) and self._starts[term] < self._starts[term + 1]:
            answer = {term: 1.0}
            if count <= _SHORTEST and len(word.spelling) >= 3:
                for longer in self._beginning_with(word.spelling):
                    answer.setdefault(longer, _PERHAPS_BEGINNING)
        elif count > _SHORT:
            return {}
        else:
            answer = (
                dict.fromkeys(self._beginning_with(word.spelling), _BEGINNING)
                or self._nearly(word.spelling)
                or self._joined(word.spelling)
            )
        if count <= _SHORT:
            for length in range(_SHORTEST_FORM, len(word.spelling)):
                shorter = self._labels.get(word.spelling[:length])
                if shorter is not None:
                    answer.setdefault(shorter, _SHORT_FORM)
        return answer

    def _beginning_with(self, spelling: str) -> list[int]:
        start = bisect_left(self._spellings, spelling)
        following = self._spellings[start : start + _MOST_BEGINNINGS]
        return [self._labels[each] for each in following if each.startswith(spelling)]

    def _nearly(self, spelling: str) -> dict[int, float]:
        """The labels with one typing error to a word of four letters or more, or with two to one of eight or more."""
        errors = 0 if len(spelling) < 4 else 1 if len(spelling) < 8 else 2
        for most, weight in ((1, _ONE_ERROR), (2, _TWO_ERRORS))[:errors]:
            lengths = range(len(spelling) - most, len(spelling) + most + 1)
            choices = [each for length in lengths for each in self._by_length.get(length, ())]
            near = process.extract(spelling, choices, scorer=OSA.distance, score_cutoff=most, limit=8)
            if near:
                return {self._labels[each[0]]: weight for each in near}
        return {}

    def _joined(self, spelling: str) -> dict[int, float]:
        """The first two labels that a word is written together from."""
        for cut in range(2, len(spelling) - 1):
            first, second = self._labels.get(spelling[:cut]), self._labels.get(spelling[cut:])
            if first is not None and second is not None:
                return {first: _JOINED, second: _JOINED}
        return {}


def _sorted(hashes: Sequence[Hashes]) -> tuple[Hashes, Positions]:
    """All hashes in order, and the places each came from."""
    joined = np.concatenate([np.empty(0, np.int64), *hashes])
    order = np.argsort(joined)
    return joined[order], order


def _equal(hashes: tuple[Hashes, Positions], text: str) -> Positions:
    """The places where the hash is the text's."""
    ordered, places = hashes
    return places[np.searchsorted(ordered, hash(text)) : np.searchsorted(ordered, hash(text), "right")]


def _held(documents: npt.NDArray[Any], close: Positions) -> npt.NDArray[np.bool_]:
    """Which of `close` are among the documents, which are in order."""
    if not len(documents):
        return np.zeros(len(close), np.bool_)
    return documents[np.minimum(np.searchsorted(documents, close), len(documents) - 1)] == close


def _with_likeness(
    close: Positions, found: Floats, like: Floats, wanted: npt.NDArray[np.bool_] | None
) -> tuple[Positions, Floats]:
    """The entries found by words and those nearest in meaning, with scores of which each is a part."""
    if wanted is not None:
        like = np.where(wanted, like, np.float32(-1))
    likest = max(float(like.max()), 1e-6)
    nearest = np.argpartition(-like, min(_NEAREST, len(like)) - 1)[:_NEAREST]
    every = np.union1d(close, nearest[like[nearest] > _NEAR_ENOUGH * likest])
    scores = _LIKENESS * like[every] / likest
    scores[np.searchsorted(every, close)] += found / found.max()
    return every, scores.astype(np.float32)


def _highest(scores: Floats) -> Positions:
    """The places of the highest scores: of `_CLOSE`, where so many are above 0, and of some that equal the last."""
    highest = scores.max(initial=0)
    for share in _SHARES:
        found = np.flatnonzero(scores > share * highest)
        if len(found) >= _CLOSE:
            values = scores[found]
            least = np.partition(values, -_CLOSE)[-_CLOSE]
            return found[values >= least][: 4 * _CLOSE]
    return np.flatnonzero(scores > 0)
