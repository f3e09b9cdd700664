"""Native names are legal for every provider and belong to one tool alone."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from desktop.tool_names import fingerprint, may_name_tool_of, native_name


def test_a_plain_pair_is_joined_as_it_is() -> None:
    assert native_name("github", "create_issue") == "mcp__github__create_issue"


def test_pairs_that_would_read_alike_get_different_names() -> None:
    assert native_name("a__b", "c") != native_name("a", "b__c")
    assert native_name("a_", "b") != native_name("a", "_b")
    assert native_name("s", "get.issue") != native_name("s", "get_issue")
    long = "x" * 70
    assert native_name("s", long + "1") != native_name("s", long + "2")


def test_a_long_pair_takes_exactly_64_characters() -> None:
    assert len(native_name("s" * 80, "t" * 300)) == 64


def test_a_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    assert fingerprint({"a": [1, 2]}) != fingerprint({"a": [2, 1]})


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", fullmatch=True), st.text(min_size=1, max_size=90))
def test_both_names_of_a_tool_begin_as_its_server(server: str, tool: str) -> None:
    assert may_name_tool_of(server, native_name(server, tool))
    assert may_name_tool_of(server, f"{server}.{tool}")


def test_an_identifier_does_not_begin_as_another_server() -> None:
    assert not may_name_tool_of("git", "github.create_issue")
    assert not may_name_tool_of("git", "mcp__github__create_issue")
    assert not may_name_tool_of("github", "GitHub.create_issue")
    assert not may_name_tool_of("github", "create_issue")


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=90), st.text(min_size=1, max_size=90)), unique=True, max_size=20)
)
def test_names_are_legal_and_unique(pairs: list[tuple[str, str]]) -> None:
    names = [native_name(server, tool) for server, tool in pairs]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert len(set(names)) == len(names)
