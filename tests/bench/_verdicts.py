"""Figures judged by what they should be at least or at most: what is missed is said, and gates nothing. Used by ``search.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench._measuring import report


class Verdicts:
    """Attributes:
    missed: What was missed, a line each.
    """

    def __init__(self) -> None:
        self.missed: list[str] = []

    def report(
        self,
        name: str,
        figure: float,
        unit: str,
        *,
        against: str,
        budget: float | None = None,
        floors: Mapping[str, float] | None = None,
        **more: Any,
    ) -> None:
        """Prints a figure, marked where it is above its budget, or where one of those named in `floors` (``figure``, or one of
        `more`) is below its floor, both as they are printed."""
        measured = {"figure": round(figure, 3), **more}
        missed = [
            f"{each} {measured[each]} < {floor}" for each, floor in (floors or {}).items() if measured[each] < floor
        ]
        if budget is not None and measured["figure"] > budget:
            missed.append(f"figure {measured['figure']} > {budget}")
        marks = ({"floors": floors} if floors else {}) | ({"MISSED": missed} if missed else {})
        report(name, figure, unit, against=against, budget=budget, **more, **marks)
        self.missed += [f"{name} ({against}): {each}" for each in missed]

    def conclude(self, name: str) -> None:
        """Prints a last line that names all that was missed."""
        report(name, len(self.missed), "floors and budgets missed", against="all above", MISSED=self.missed)
