"""The index that searches of the catalog run on: BM25F over the fields of an entry, then a closer look at the best.

Used by ``catalog_search`` alone. The settings did best on catalogs and queries of several sources; the surface around them is
flat, so there is little to gain from turning them.
"""

# pyright: reportUnknownMemberType=false
# (numpy's own annotations are incomplete to a strict checker)

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from desktop.catalog_entries import CatalogEntry, Kind
from desktop.host.search_labels import Labels
from desktop.host.search_parts import FIELDS, NAME_WORDS, SERVER, Floats, Hashes, Key, Part
from desktop.host.search_words import Analyser, Places, Word, name_words, texts_of

Held = Callable[[Places], npt.NDArray[np.bool_]]

#: For each field of `texts_of`: how much a word there counts, and how much of that it loses in a long field. Labels count far
#: more than descriptions, so that a description stuffed with words gains little.
_WEIGHTS = np.array([3.0, 2.0, 1.5, 1.0, 0.5, 0.3], np.float32)
_LENGTH_LOSS = np.array([0.3, 0.3, 0.0, 0.6, 0.7, 0.3], np.float32)
_SATURATION = np.float32(1.0)
#: What the fields are called where a result says why it was found.
_FIELDS = ("name", "title", "server", "description", "parameters", "parameters")
#: Entries that are looked at closely. A search returns 50 at most.
_CLOSE = 64
#: Entries that are looked at for their meaning alone, and what the likest counts when the best by words counts 1.
_NEAREST = 50
_LIKENESS = 1.5
#: Of the likest's likeness; below it an entry has to be found by its words.
_NEAR_ENOUGH = 0.6
#: Entries of the same name, in whatever style, among which the typed one is looked for.
_SAME_NAMES = 20
#: Of the highest score, tried in turn: what so many entries are above need not be looked for among all that have any.
_SHARES = (0.5, 0.3, 0.15, 0.0)
#: Words of a query that are looked up: somebody may paste a page.
_QUERY_WORDS = 64
#: A query of so few words should be covered whole, and its unknown words are completed and corrected.
_SHORT = 6
#: Letters of a last word of such a query that is as likely the beginning of a longer label, where there is one.
_BEGUN = 3
#: Every word of a query of so few words may be a beginning.
_SHORTEST = 4
_PERHAPS_BEGINNING, _SHORT_FORM = 0.35, 0.5


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

    def __init__(self, parts: Mapping[Key, Part], analyser: Analyser) -> None:
        """`analyser`: the one of all parts. The entries' order decides between equals: by kind, server and name."""
        keys = sorted(parts)
        joined = [parts[key] for key in keys]
        offsets = list(itertools.accumulate((len(part.entries) for part in joined), initial=0))
        self._ranges = [
            (*key, slice(start, stop)) for key, (start, stop) in zip(keys, itertools.pairwise(offsets), strict=True)
        ]
        self._analyser = analyser
        self._terms: Mapping[str, int] = analyser.terms
        self._titles = {key: parts[key].title for key in keys}
        self._entries = [entry for part in joined for entry in part.entries]
        self._names = np.concatenate([np.empty((0, NAME_WORDS), np.int32), *(part.names for part in joined)])
        self._name_lengths = np.maximum(np.count_nonzero(self._names >= 0, axis=1), 1).astype(np.float32)
        self._spelled = _sorted([part.spelled for part in joined])
        self._selectors = _sorted([part.selectors.ravel() for part in joined])
        self._labels = Labels(np.concatenate([np.empty(0, np.int32), *(part.labels for part in joined)]), analyser)
        self._words_of_terms = np.zeros(len(analyser.terms) + 1, np.uint64)  # see `_explained`

        terms = np.concatenate([np.empty(0, np.int32), *(part.terms for part in joined)])
        places = np.concatenate([np.empty(0, np.int32), *(part.places for part in joined)])
        counts = np.concatenate([np.empty(0, np.uint8), *(part.counts for part in joined)])
        rows = [len(part.terms) for part in joined]
        places += np.repeat(np.array(offsets[:-1], np.int32) * FIELDS, rows)
        lengths = np.concatenate([np.empty((0, FIELDS), np.float32), *(part.lengths for part in joined)])
        average = lengths.sum(axis=0) / max(len(lengths), 1)
        weights = _WEIGHTS / (1 - _LENGTH_LOSS + _LENGTH_LOSS * lengths / np.where(average > 0, average, 1))
        # A posting, a term in a document, is the sum of its rows, one a field.
        documents = places // FIELDS
        begins = np.ones(len(terms), np.bool_)
        begins[1:] = (terms[1:] != terms[:-1]) | (documents[1:] != documents[:-1])
        postings = np.flatnonzero(begins)
        frequency = weights.ravel()[places] * counts
        frequency = np.add.reduceat(frequency, postings) if len(postings) else frequency
        terms, documents = terms[postings], documents[postings]
        held_by = np.bincount(terms, minlength=len(self._terms))
        rarity = np.log1p((len(self._entries) - held_by + 0.5) / (held_by + 0.5)).astype(np.float32)
        # By term, and within a term in the order they are in. Sorting both as one number is several times as fast as argsort.
        order = np.sort(terms.astype(np.int64) << 32 | np.arange(len(terms))) & 0xFFFFFFFF
        self._documents = documents[order].astype(
            np.intp
        )  # what numpy looks up by: anything else it converts each time
        self._impacts = (rarity[terms] * frequency / (frequency + _SATURATION))[order]
        self._starts: list[int] = [0, *np.cumsum(held_by).tolist()]

    def named(
        self, text: str, words: Sequence[Word], kinds: frozenset[Kind] | None, server: str | None
    ) -> list[CatalogEntry]:
        """The entries that a text names exactly; one without `words`, of stop words alone, names those of this very name."""
        found = [*_equal(self._selectors, text.casefold()), *_equal(self._selectors, f"={text}")]
        places = {int(place) // 2 for place in found}
        if not words and (spelled := name_words(text)):
            places.update(_equal(self._spelled, " ".join(spelled)).tolist())
        if not places:
            return []
        wanted = self._wanted(kinds, server)
        return [self._entries[place] for place in sorted(places) if wanted is None or wanted[place]]

    def rank(
        self,
        typed: str,
        words: Sequence[Word],
        kinds: frozenset[Kind] | None,
        server: str | None,
        limit: int,
        likeness: Callable[[], Floats | None] = lambda: None,
    ) -> list[Ranked]:
        """The best entries for a query's words, best first; none when no entry has a word that answers one of them.

        Of names that differ in their style alone, the one that was `typed` comes first. `likeness` gives how like the query's
        meaning is to that of each entry in turn. It isn't asked for a name that is being typed: there meaning would mislead.
        """
        named = np.sort(_equal(self._spelled, " ".join(word.spelling for word in words)))
        words = list(dict.fromkeys(words))[:_QUERY_WORDS]
        answers = [self._answers(word, len(words)) for word in words]
        scores, holders = self._scored(answers)
        wanted = self._wanted(kinds, server)
        if wanted is not None:
            scores[~wanted] = 0
            named = named[wanted[named]]
        close = _highest(scores)
        if not len(close):
            return []
        if len(named):
            close = np.union1d(close, named)
        found = scores[close]
        if len(words) <= _SHORT:
            found *= np.sqrt(sum((held(close) for held in holders), np.zeros(len(close), np.float32)) / len(words))
        found *= 1 + self._explained(close, answers)
        if not _is_typed(words, answers) and (like := likeness()) is not None:
            close, found = _with_likeness(close, found, like, wanted)
        if len(named):
            found[_held(named, close)] += found.max()
        best = (-found).argsort(kind="stable")[: max(limit, _SAME_NAMES)]
        ranked = [
            (self._entries[place], score, place)
            for place, score in zip(map(int, close[best]), map(float, found[best]), strict=True)
        ]
        name = typed.casefold()
        ranked.sort(key=lambda each: each[0].name.casefold() != name)
        return [
            Ranked(entry, score, partial(self._matched, place, words, answers))
            for entry, score, place in ranked[:limit]
        ]

    def _matched(self, place: int, words: Sequence[Word], answers: Sequence[Mapping[int, float]]) -> tuple[str, ...]:
        """See `Ranked.matched`. Analyses the entry again: only the few that are returned need it."""
        entry = self._entries[place]
        title = next(self._titles[kind, server] for kind, server, places in self._ranges if place < places.stop)
        texts = [f"{text} {title}" if field == SERVER else text for field, text in enumerate(texts_of(entry))]
        held = [{self._terms.get(word.term) for word in self._analyser.words(text)} for text in texts]
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

    def _scored(self, answers: Sequence[Mapping[int, float]]) -> tuple[Floats, list[Held]]:
        """The sum of what each word of a query adds to each entry, and for each word which of some entries answer it."""
        scores = np.zeros(len(self._entries), np.float32)
        holders: list[Held] = []
        for answer in answers:
            places = [slice(self._starts[term], self._starts[term + 1]) for term in answer]
            if [*answer.values()] == [1.0]:  # the word itself
                documents = self._documents[places[0]]
                np.add.at(scores, documents, self._impacts[places[0]])
                holders.append(partial(_held, documents))
            elif places:
                most = np.zeros(len(self._entries), np.float32)
                weights = np.fromiter(answer.values(), np.float32, len(answer))
                impacts = np.concatenate([self._impacts[each] for each in places])
                impacts *= weights.repeat([each.stop - each.start for each in places])
                np.maximum.at(most, np.concatenate([self._documents[each] for each in places]), impacts)
                scores += most
                holders.append(partial(_above_zero, most))
        return scores, holders

    def _explained(self, close: Places, answers: Sequence[Mapping[int, float]]) -> Floats:
        """How far each entry's name and the query explain each other, from 0 to 1: the product of the shares of their words."""
        words: dict[int, int] = {}  # of each term, the words that it answers, a bit each
        for place, answer in enumerate(answers):
            for term in answer:
                words[term] = words.get(term, 0) | 1 << place
        terms = np.fromiter(words, np.intp, len(words))
        self._words_of_terms[terms] = np.fromiter(words.values(), np.uint64, len(words))
        explained = self._words_of_terms[self._names[close]]
        self._words_of_terms[terms] = 0
        of_query = np.bitwise_count(np.bitwise_or.reduce(explained, axis=1))
        of_name = (explained != 0).sum(axis=1)
        return (of_name / self._name_lengths[close] * of_query / len(answers)).astype(np.float32)

    def _answers(self, word: Word, count: int) -> dict[int, float]:
        """The terms that answer a word of a query of `count` words, each with its weight."""
        term = self._terms.get(word.term)
        if term is not None and self._starts[term] < self._starts[term + 1]:
            answer = {term: 1.0}
            if count <= _SHORTEST and len(word.spelling) >= 3:
                for longer in self._labels.beginning_with(word.spelling):
                    answer.setdefault(longer, _PERHAPS_BEGINNING)
        elif count > _SHORT:
            return {}
        else:
            answer = self._labels.meant(word.spelling)
        if count <= _SHORT:
            for shorter in self._labels.short_forms(word.spelling):
                answer.setdefault(shorter, _SHORT_FORM)
        return answer


def _is_typed(words: Sequence[Word], answers: Sequence[Mapping[int, float]]) -> bool:
    """Whether a query is most likely a name that is being typed: short, with a word that is near a label or just begins one.

    A word that is nothing of the kind is one that the catalog has not, which is what its meaning is for.
    """
    if len(words) > _SHORTEST:
        return False
    is_begun = len(words[-1].spelling) <= _BEGUN and len(answers[-1]) > 1
    return is_begun or any(answer and 1.0 not in answer.values() for answer in answers)


def _sorted(hashes: Sequence[Hashes]) -> tuple[Hashes, Places]:
    """All hashes in order, and the places each came from."""
    joined = np.concatenate([np.empty(0, np.int64), *hashes])
    order = np.argsort(joined)
    return joined[order], order


def _equal(hashes: tuple[Hashes, Places], text: str) -> Places:
    """The places where the hash is the text's."""
    ordered, places = hashes
    wanted = hash(text)
    start = ordered.searchsorted(wanted)
    if start == len(ordered) or ordered[start] != wanted:
        return places[:0]
    return places[start : ordered.searchsorted(wanted, "right")]


def _held(documents: Places, close: Places) -> npt.NDArray[np.bool_]:
    """Which of `close` are among the documents, which are in order and at least one."""
    return documents[np.minimum(documents.searchsorted(close), len(documents) - 1)] == close


def _above_zero(scores: Floats, close: Places) -> npt.NDArray[np.bool_]:
    return scores[close] > 0


def _with_likeness(
    close: Places, found: Floats, like: Floats, wanted: npt.NDArray[np.bool_] | None
) -> tuple[Places, Floats]:
    """The entries found by words and those nearest in meaning, with scores of which each is a part."""
    if wanted is not None:
        like = np.where(wanted, like, np.float32(-1))
    likest = max(float(like.max()), 1e-6)
    nearest = np.argpartition(-like, min(_NEAREST, len(like)) - 1)[:_NEAREST]
    every = np.union1d(close, nearest[like[nearest] > _NEAR_ENOUGH * likest])
    scores = _LIKENESS * like[every] / likest
    scores[np.searchsorted(every, close)] += found / found.max()
    return every, scores.astype(np.float32)


def _highest(scores: Floats) -> Places:
    """The places of the highest scores: of `_CLOSE`, where so many are above 0, and of some that equal the last."""
    highest = scores.max(initial=0)
    for share in _SHARES:
        found = np.flatnonzero(scores > share * highest)
        if len(found) >= _CLOSE:
            values = scores[found]
            least = np.partition(values, -_CLOSE)[-_CLOSE]
            return found[values >= least][: 4 * _CLOSE]
    return np.flatnonzero(scores > 0)
