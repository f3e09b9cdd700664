"""The labels of a catalog (words of names, titles and servers' names), where a word of a query is begun, mistyped or joined.

Used by ``search_index`` alone.
"""

# pyright: reportUnknownMemberType=false
# (numpy's own annotations are incomplete to a strict checker)

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from desktop.host.search_words import Analyser, Integers

_BEGINNING, _ONE_ERROR, _TWO_ERRORS, _JOINED = 0.8, 0.8, 0.6, 0.8
#: Letters of a label that may be the short form of a longer word: ``repo`` of ``repository``.
_SHORTEST_FORM = 4
_MOST_BEGINNINGS = 64
_MOST_NEAR = 8
#: After any character of a word.
_LAST = chr(0x10FFFF)

Letters = npt.NDArray[np.uint32]


class Labels:
    """Made ready when they are first asked for: most queries know the words they use."""

    def __init__(self, numbers: Integers, analyser: Analyser) -> None:
        """`numbers`: of the labels' spellings, in any order and number."""
        self._numbers = numbers
        self._analyser = analyser

    def meant(self, spelling: str) -> dict[int, float]:
        """The terms that an unknown word may stand for, each with how much it counts: begun, else mistyped, else joined."""
        return (
            dict.fromkeys(self.beginning_with(spelling), _BEGINNING) or self._near(spelling) or self._joined(spelling)
        )

    def beginning_with(self, spelling: str) -> list[int]:
        start = bisect_left(self._spellings, spelling)
        end = bisect_left(self._spellings, spelling + _LAST, start, min(start + _MOST_BEGINNINGS, len(self._spellings)))
        return self._of_spellings[start:end]

    def short_forms(self, spelling: str) -> list[int]:
        found = (self._terms.get(spelling[:length]) for length in range(_SHORTEST_FORM, len(spelling)))
        return [term for term in found if term is not None]

    def _near(self, spelling: str) -> dict[int, float]:
        """The labels with one typing error to a word of four letters or more, or with two to one of eight or more."""
        errors = 0 if len(spelling) < 4 else 1 if len(spelling) < 8 else 2
        if not errors:
            return {}
        labels, starts, letters = self._by_length
        first, last = (min(max(len(spelling) + each, 0), len(starts) - 1) for each in (-errors, errors + 1))
        # An error changes at most two of the letters that a word has at all: few labels are left to be compared.
        differing = np.bitwise_count(letters[starts[first] : starts[last]] ^ _letters([spelling])[0])
        choices = [labels[starts[first] + place] for place in np.flatnonzero(differing <= 2 * errors).tolist()]
        found = process.extract(spelling, choices, scorer=OSA.distance, score_cutoff=errors, limit=None)
        nearest = [(each, _ONE_ERROR) for each, distance, _ in found if distance <= 1]
        nearest = nearest or [(each, _TWO_ERRORS) for each, _, _ in found]
        return {self._terms[each]: weight for each, weight in nearest[:_MOST_NEAR]}

    def _joined(self, spelling: str) -> dict[int, float]:
        """The first two labels that a word is written together from."""
        for cut in range(2, len(spelling) - 1):
            first, second = self._terms.get(spelling[:cut]), self._terms.get(spelling[cut:])
            if first is not None and second is not None:
                return {first: _JOINED, second: _JOINED}
        return {}

    @cached_property
    def _terms(self) -> dict[str, int]:
        """Of each label, in their order."""
        spellings = list(self._analyser.spellings)
        is_label = np.zeros(len(spellings), np.bool_)
        is_label[self._numbers] = True
        numbers = np.flatnonzero(is_label).astype(np.int32)
        terms = self._analyser.terms_of(numbers).tolist()
        return dict(sorted(zip((spellings[number] for number in numbers.tolist()), terms, strict=True)))

    @cached_property
    def _spellings(self) -> list[str]:
        return list(self._terms)

    @cached_property
    def _of_spellings(self) -> list[int]:
        """The term of each of `_spellings`."""
        return list(self._terms.values())

    @cached_property
    def _by_length(self) -> tuple[list[str], list[int], Letters]:
        """The labels by length, where those of each length start, and the letters of each."""
        labels = sorted(self._spellings, key=len)
        lengths = [len(each) for each in labels]
        starts = [bisect_left(lengths, length) for length in range(max(lengths, default=0) + 2)]
        return labels, starts, _letters(labels)


def _letters(words: Sequence[str]) -> Letters:
    """Of each word, a bit for each letter that it has; some letters share one."""
    if not words:
        return np.zeros(0, np.uint32)
    codes = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), np.uint32)
    starts = np.cumsum([0, *(len(word) for word in words[:-1])])
    return np.bitwise_or.reduceat(np.left_shift(np.uint32(1), codes & 31), starts)
