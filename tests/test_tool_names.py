"""Native names are legal for every provider and belong to one tool alone."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from desktop.tool_names import fingerprint, native_name


def test_a_plain_pair_is_joined_as_it_is() -> None:
    assert native_name("github", "create_issue") == "mcp__github__create_issue"


def test_pairs_that_would_read_alike_get_different_names() -> None:
    assert native_name("a__b", "c") != native_name("a", "b__c")
    assert native_name("s", "get.issue") != native_name("s", "get_issue")
    long = "x" * 70
    assert native_name("s", long + "1") != native_name("s", long + "2")


def test_a_long_pair_takes_exactly_64_characters() -> None:
    assert len(native_name("s" * 80, "t" * 300)) == 64


def test_a_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    assert fingerprint({"a": [1, 2]}) != fingerprint({"a": [2, 1]})


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=90), st.text(min_size=1, max_size=90)), unique=True, max_size=20)
)
def test_names_are_legal_and_unique(pairs: list[tuple[str, str]]) -> None:
    names = [native_name(server, tool) for server, tool in pairs]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert len(set(names)) == len(names)
