"""JSON with comments: what is read, where things are, and that a change touches what differs alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.host.commented_json import JsonObject, Lines, NotJson, changed, parse, same_value

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([1.5, 1e300, "é", 'a"\\\n', ""]),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from("abcd"), children, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)
spaces = st.sampled_from(["", " ", "\n  ", "\r\n\t", "/* one */", " // two\n", "\n  // three\n  "])


def edited(text: str, new: Mapping[str, Any]) -> str:
    old = parse(text)
    assert isinstance(old, JsonObject)
    return changed(text, old, new)


@given(values)
def test_plain_json_is_read_as_json_reads_it(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=3, ensure_ascii=False)):
        assert same_value(parse(text), value)


@given(st.data(), objects, objects)
def test_a_changed_text_stands_for_the_new_value_and_keeps_every_comment_between_members(
    data: st.DataObject, old: dict[str, Any], new: dict[str, Any]
) -> None:
    def written(value: Any) -> str:
        def space() -> str:
            return data.draw(spaces)

        if not isinstance(value, dict):
            return json.dumps(value)
        members = [
            f"{space()}{json.dumps(key)}{space()}:{space()}{written(each)}{space()}" for key, each in value.items()
        ]
        comma = data.draw(st.sampled_from(["", ","])) if members else ""
        return "{" + ",".join(members) + comma + space() + "}"

    text = written(old)
    after = edited(text, new)
    assert same_value(parse(after), new)
    if same_value(old, new):
        assert after == text


@given(objects, objects, st.sampled_from([None, 2, "\t"]))
def test_plain_json_stays_plain(old: dict[str, Any], new: dict[str, Any], indent: int | str | None) -> None:
    assert same_value(json.loads(edited(json.dumps(old, indent=indent), new)), new)


def test_a_place_is_that_of_the_key_or_the_element_or_of_what_is_there_of_a_path() -> None:
    text = '{\n  "a": {"b": [1,\n    2]}\n}'
    content = parse(text)
    assert isinstance(content, JsonObject)
    lines = Lines(text)
    for path, place in (
        ((), (1, 1)),
        (("a",), (2, 3)),
        (("a", "b"), (2, 9)),
        (("a", "b", 1), (3, 5)),
        (("a", "b", 7), (2, 9)),
        (("a", "c", 0), (2, 3)),
        (("x",), (1, 1)),
    ):
        assert lines.place(content.position(path)) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[",
        '{"a"}',
        '{"a":}',
        '{"a":1 "b":2}',
        "[1 2]",
        "[,]",
        "{,}",
        "[1,,]",
        "{a:1}",
        "'a'",
        '"a',
        "/",
        "1 /*",
        "tru",
    ],
)
def test_what_is_no_such_json_says_where(text: str) -> None:
    with pytest.raises(NotJson) as raised:
        parse(text)
    assert 0 <= raised.value.position <= len(text)


def test_depth_is_bounded() -> None:
    parse("[" * 100 + "]" * 100)
    for text in ("[" * 102 + "]" * 102, '{"a":' * 200_000):
        with pytest.raises(NotJson) as raised:
            parse(text)
        assert raised.value.too_deep


@pytest.mark.parametrize("filling", ["/**/", "//\n", " ", "/* ", "\n"])
def test_a_mebibyte_of_space_and_comments_takes_no_longer_than_any_other(filling: str) -> None:
    text = '{"a": 1' + filling * (2**20 // len(filling))
    begun = time.monotonic()
    with pytest.raises(NotJson):
        parse(text)
    if filling != "/* ":
        edited(text + "}", {"a": 1, "b": 2})
    assert time.monotonic() - begun < 5
