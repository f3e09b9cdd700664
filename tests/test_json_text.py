"""JSON is laid out and taken apart without a changed token."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop import json_text

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_TEXTS = st.text(st.sampled_from('ab"\\{}[],: \n\té狐\ud800'), max_size=8)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXTS, inner, max_size=5),
    max_leaves=30,
)


@pytest.mark.parametrize(
    "text",
    [
        "12345678901234567890123",
        "1e999",
        "-0",
        "1.10",
        "1.0E+2",
        "1" * 6000,
        r'"\u00e9\/\ud800"',
        '{"a": 1, "a": 2}',
        '{"z": 1, "a": 2}',
    ],
)
def test_digits_escapes_order_and_keys_that_are_there_twice_stay(text: str) -> None:
    laid_out = json_text.respaced(f'{{"x":[{text}]}}')
    assert _TOKEN.findall(laid_out) == _TOKEN.findall(f'{{"x":[{text}]}}')


@given(_VALUES, st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:  ")]), st.booleans())
def test_the_layout_is_that_of_an_indent_of_two(value: Any, separators: tuple[str, str], ascii_: bool) -> None:
    text = json.dumps(value, separators=separators, ensure_ascii=ascii_)
    assert json_text.respaced(text) == json.dumps(value, indent=2, ensure_ascii=ascii_)


@given(_VALUES, st.integers(1, 9))
def test_where_a_chunk_ends_makes_no_difference(value: Any, chunk: int) -> None:
    text = json.dumps(value, separators=(" , ", " : "))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "_CHUNK", chunk)
        assert json_text.respaced(text) == json.dumps(value, indent=2)


def test_json_that_is_nested_too_deep_stays_as_it_is() -> None:
    deep = "[" * 101 + "1" + "]" * 101
    assert json_text.respaced(deep) == deep
    assert json_text.respaced(deep[1:-1]).startswith("[\n  [\n")


def test_json_that_would_grow_many_times_stays_as_it_is() -> None:
    wide = "[" * 90 + "1," * 20_000 + "1" + "]" * 90
    assert json_text.respaced(wide) == wide


@given(_VALUES)
def test_values_read_as_python_reads_them_but_for_integers(value: Any) -> None:
    text = json.dumps(value)
    reader = json_text.Reader(f"  {text}  ")
    assert reader.value() == json.loads(text, parse_int=str.encode)
    reader.end()


def test_integers_of_any_length_are_told_apart_and_from_text() -> None:
    assert json_text.parse("[1, 12345678901234567890]") == json_text.parse("[1,12345678901234567890]")
    assert json_text.parse("12345678901234567890") != json_text.parse("12345678901234567891")
    assert json_text.parse("1") != json_text.parse('"1"')
    assert json_text.parse("1" * 5000) != json_text.parse("1" * 5001)


@pytest.mark.parametrize("text", ["", "{", '{"a"}', '{"a":1,}', "[1 2]", "{1:2}", "1 2", "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        json_text.parse(text)
    reader = json_text.Reader(text)
    with pytest.raises(ValueError):
        list(reader.members())
        reader.end()


def test_members_know_where_their_values_stand() -> None:
    reader = json_text.Reader('{"a": [1, {"b": 2}] , "c":3 }')
    assert [(key, reader.position) for key in reader.members()] == [("a", 6), ("c", 26)]
    assert list(json_text.Reader("{ }").members()) == []
    assert list(json_text.Reader("[ ]").elements()) == []


#: RFC 6901, section 5.
_EXAMPLE = '{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\\\j":5,"k\\"l":6," ":7,"m~n":8}'


@pytest.mark.parametrize(
    ("pointer", "selected"),
    [
        ("", _EXAMPLE),
        ("/foo", '["bar","baz"]'),
        ("/foo/0", '"bar"'),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ('/k"l', "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
    ],
)
def test_a_pointer_selects_what_its_standard_says(pointer: str, selected: str) -> None:
    assert json_text.select(_EXAMPLE, pointer) == selected


@pytest.mark.parametrize("pointer", ["/foo/2", "/foo/01", "/foo/-", "/foo/bar", "/bar", "/foo/0/x"])
def test_a_pointer_that_leads_nowhere_says_where(pointer: str) -> None:
    with pytest.raises(LookupError) as raised:
        json_text.select(_EXAMPLE, pointer)
    assert pointer.startswith(str(raised.value.args[0]))


def test_a_pointer_selects_the_text_itself_and_the_last_of_two_keys() -> None:
    assert json_text.select('{"a": {"n": 1.50}, "a": {"n": 1e999}}', "/a/n") == "1e999"
    with pytest.raises(ValueError):
        json_text.select("{}", "a")
