"""Values are found where they stand in what a person writes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.assistant.text_values import values_in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("read /tmp/a.txt, then ~/b and ./c/d.md.", [("path", "/tmp/a.txt"), ("path", "~/b"), ("path", "./c/d.md")]),
        ("open C:\\Users\\me\\x.txt", [("path", "C:\\Users\\me\\x.txt")]),
        ("find *.py in src/main.py", [("path", "*.py"), ("path", "src/main.py")]),
        ("list /", [("path", "/")]),
        ("this and/or that, 24/7 at 3.5 km/h", [("number", 24), ("number", 7), ("number", 3.5)]),
        ("say \"a b\" and 'it' but don't", [("quoted", "a b"), ("quoted", "it")]),
        ("„so“ “or” «  thus » `x`", [("quoted", "so"), ("quoted", "or"), ("quoted", "thus"), ("quoted", "x")]),
        ("write ```py\nprint(1)\n``` to a.py", [("quoted", "print(1)\n"), ("path", "a.py")]),
        ("see https://example.org/a?b=c.", [("url", "https://example.org/a?b=c")]),
        ("mail bob@example.com", [("email", "bob@example.com")]),
        ("from 2024-01-02 to 2024-01-02T10:00Z", [("date", "2024-01-02"), ("datetime", "2024-01-02T10:00Z")]),
        (
            "at 9am, 5 p.m., 14:30 or 25:00",
            [("time", "09:00"), ("time", "17:00"), ("time", "14:30"), ("number", 25), ("number", 0)],
        ),
        ("12am and 12pm", [("time", "00:00"), ("time", "12:00")]),
        (
            "2+3, -4.5, 1,000 and 5 - 3",
            [("number", 2), ("number", 3), ("number", -4.5), ("number", 1000), ("number", 5), ("number", 3)],
        ),
        ("v1.2.3 and x2 and 10s", []),
        ("9" * 5000, []),
        (
            "in Berlin, New York and Europe/Rome",
            [("zone", "Europe/Berlin"), ("zone", "America/New_York"), ("zone", "Europe/Rome")],
        ),
        ("in tokyo, UTC", [("zone", "Asia/Tokyo"), ("zone", "UTC")]),
        ("a paris match, a jersey", []),
        ("commit abc1234f, deadbeef", [("hash", "abc1234f")]),
    ],
)
def test_each_kind_is_found_and_nothing_else(text: str, found: list[tuple[str, Any]]) -> None:
    assert [(each.kind, each.value) for each in values_in(text)] == found


@given(st.text(alphabet=st.sampled_from(list("ab1 /.\\*'\"`«»“”@:-+,_~T")), max_size=80))
def test_values_are_in_order_and_do_not_overlap(text: str) -> None:
    values = values_in(text)
    assert all(0 <= each.start < each.end <= len(text) for each in values)
    assert all(one.end <= other.start for one, other in pairwise(values))
