"""What a server's form asks for, and which answers fit it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.host.elicitation_form import (
    Fault,
    FormField,
    Option,
    UnusableForm,
    fault_of,
    fields_of,
    is_absolute_uri,
    is_date,
    is_date_time,
    is_email,
    is_too_large,
)


def form(required: list[str] | None = None, /, **properties: Any) -> tuple[FormField, ...]:
    return fields_of({"type": "object", "properties": properties, "required": required or []})


def field(schema: dict[str, Any], *, required: bool = False) -> FormField:
    return form(["x"] if required else [], x=schema)[0]


def test_every_kind_of_field_is_understood_in_the_form_s_order() -> None:
    fields = form(
        ["name"],
        name={"type": "string", "title": "Your name", "description": "As on the card", "minLength": 2, "maxLength": 9},
        day={"type": "string", "format": "date"},
        size={"type": "number", "minimum": 0.5, "maximum": 2},
        count={"type": "integer", "default": 3},
        agree={"type": "boolean", "default": True},
        tone={"type": "string", "enum": ["f", "s"], "enumNames": ["Formal", "Short"]},
        plan={"type": "string", "oneOf": [{"const": "a", "title": "Plan A"}, {"const": "b"}]},
        tags={"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "minItems": 1, "maxItems": 2},
        days={"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}]}},
    )
    assert [(each.name, each.kind) for each in fields] == [
        ("name", "text"),
        ("day", "text"),
        ("size", "number"),
        ("count", "integer"),
        ("agree", "boolean"),
        ("tone", "choice"),
        ("plan", "choice"),
        ("tags", "choices"),
        ("days", "choices"),
    ]
    name, day, size, count, agree, tone, plan, tags, days = fields
    assert (name.title, name.description, name.required, name.low, name.high) == (
        "Your name",
        "As on the card",
        True,
        2,
        9,
    )
    assert (day.format, size.low, size.high, count.default, agree.default) == ("date", 0.5, 2, 3, True)
    assert tone.options == (Option("f", "Formal"), Option("s", "Short"))
    assert plan.options == (Option("a", "Plan A"), Option("b", "b"))
    assert (tags.low, tags.high, days.options) == (1, 2, (Option("mo", "Monday"),))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["a", "a"]},
        {"type": "string", "enum": []},
        {"type": "string", "enum": [str(number) for number in range(101)]},
        {"type": "string", "enum": ["a", 1]},
        {"type": "string", "oneOf": [{"title": "no constant"}]},
        {"type": "object", "properties": {}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": 5},
        {"$ref": "#/x"},
        [],
        None,
    ],
)
def test_a_field_that_can_not_be_asked_makes_the_form_unusable(schema: Any) -> None:
    with pytest.raises(UnusableForm):
        form(x=schema)


def test_a_form_has_at_most_fifty_fields_and_describes_what_it_requires() -> None:
    fifty = {f"f{number}": {"type": "string"} for number in range(50)}
    assert len(form(None, **fifty)) == 50
    with pytest.raises(UnusableForm):
        form(None, **fifty, more={"type": "string"})
    with pytest.raises(UnusableForm):
        form(["missing"], there={"type": "string"})
    with pytest.raises(UnusableForm):
        fields_of({"type": "object"})


def test_names_of_choices_that_do_not_match_them_are_not_used() -> None:
    assert field({"type": "string", "enum": ["a", "b"], "enumNames": ["A"]}).options == (
        Option("a", "a"),
        Option("b", "b"),
    )


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ({"type": "integer", "default": 2.5}, None),
        ({"type": "integer", "default": True}, None),
        ({"type": "number", "maximum": 1, "default": 2}, None),
        ({"type": "string", "format": "email", "default": "nobody"}, None),
        ({"type": "string", "enum": ["a"], "default": "b"}, None),
        ({"type": "string", "enum": ["a"], "default": "a"}, "a"),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a", "b"]}, ["a", "b"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a", "c"]}, None),
        ({"type": "boolean", "default": "yes"}, None),
    ],
)
def test_a_default_counts_where_it_fits(schema: dict[str, Any], default: object) -> None:
    assert field(schema).default == default


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        ({"type": "string", "minLength": 1}, "", Fault("too_short", 1)),
        ({"type": "string"}, "", None),
        ({"type": "string"}, "  ", None),
        ({"type": "string", "maxLength": 2}, "😀😀", None),  # characters, not code units
        ({"type": "string", "maxLength": 2}, "abc", Fault("too_long", 2)),
        ({"type": "string", "maxLength": 99_999}, "a" * 8193, Fault("too_long", 8192)),
        ({"type": "string"}, 5, Fault("no_text")),
        ({"type": "integer"}, 5.0, None),
        ({"type": "integer"}, 5.5, Fault("no_integer")),
        ({"type": "number", "minimum": 1}, 0.5, Fault("too_small", 1)),
        ({"type": "number", "maximum": 1}, 1.5, Fault("too_large", 1)),
        ({"type": "number"}, float("inf"), Fault("no_number")),
        ({"type": "number"}, True, Fault("no_number")),
        ({"type": "boolean"}, False, None),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1}, [], Fault("too_few", 1)),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, ["a", "b"], Fault("too_many", 1)),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a", "a"], Fault("no_choice")),
        ({"type": "string", "enum": ["a"]}, "b", Fault("no_choice")),
        ({"type": "string", "enum": ["a"]}, ["a"], Fault("no_choice")),
        ({"type": "array", "items": {"enum": ["a"]}}, [["a"]], Fault("no_choice")),
    ],
)
def test_an_answer_fits_its_field_or_is_told_why_not(schema: dict[str, Any], value: Any, fault: Fault | None) -> None:
    assert field(schema).fault(value) == fault


def test_what_is_required_has_to_be_given_and_the_first_fault_counts() -> None:
    fields = form(["a", "b"], a={"type": "boolean"}, b={"type": "integer"}, c={"type": "string"})
    assert fault_of(fields, {"a": False, "b": 1}) is None
    assert fault_of(fields, {"b": 1.5}) == ("a", Fault("missing"))
    assert fault_of(fields, {"a": True, "b": 1.5}) == ("b", Fault("no_integer"))


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("2024-02-29", True),
        ("1900-02-29", False),
        ("2000-02-29", True),
        ("2024-02-30", False),
        ("2024-2-3", False),
        ("0000-01-01", False),
        ("2024-13-01", False),
        ("２０２４-01-01", False),
        ("", False),
    ],
)
def test_a_date_is_a_day_of_the_calendar(text: str, valid: bool) -> None:
    assert is_date(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("2024-01-31T23:59:59Z", True),
        ("2024-01-31t23:59:59z", True),
        ("2024-01-31T23:59:59.123+23:59", True),
        ("2024-01-31T24:00:00Z", False),
        ("2024-01-31T23:59:60Z", False),
        ("2024-01-31T23:59:59+24:00", False),
        ("2024-01-31T23:59:59", False),
        ("2024-02-30T10:00:00Z", False),
        ("2024-01-31 10:00:00Z", False),
        ("2024-01-31", False),
    ],
)
def test_a_moment_has_a_day_a_time_of_day_and_a_zone(text: str, valid: bool) -> None:
    assert is_date_time(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("ann@example.org", True),
        ("ann@localhost", False),
        ("a b@example.org", False),
        ("@example.org", False),
        ("a@b@c.de", False),
    ],
)
def test_an_email_address_has_a_name_and_a_domain(text: str, valid: bool) -> None:
    assert is_email(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("https://example.org/x", True),
        ("urn:isbn:1", True),
        ("/path", False),
        ("https://a b", False),
        ("http://[x", False),
        ("", False),
    ],
)
def test_a_uri_is_absolute(text: str, valid: bool) -> None:
    assert is_absolute_uri(text) is valid


@pytest.mark.parametrize(
    ("name", "title", "secret"),
    [
        ("password", "", True),
        ("api_key", "", True),
        ("x", "Your access token", True),
        ("cardNumber", "", True),
        ("pin", "", True),
        ("pinned", "Pinned items", False),
        ("name", "City", False),
        ("company", "Company", False),
    ],
)
def test_a_field_that_seems_to_ask_for_a_secret_is_noticed(name: str, title: str, secret: bool) -> None:
    assert FormField(name, "text", title).looks_secret is secret


def test_an_answer_is_at_most_64_kib() -> None:
    assert not is_too_large({"a": "x" * 65_000})
    assert is_too_large({"a": "x" * 65_536})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_KEYS = st.sampled_from(
    ["type", "enum", "enumNames", "oneOf", "anyOf", "items", "default", "minLength", "maximum", "format"]
)


@given(
    st.dictionaries(
        st.text(max_size=5), st.dictionaries(_KEYS, _JSON | st.sampled_from(["string", "array", "integer"]))
    )
)
def test_whatever_a_server_sends_is_a_form_or_is_refused(properties: dict[str, Any]) -> None:
    try:
        fields = form(None, **properties)
    except UnusableForm:
        return
    assert [each.name for each in fields] == list(properties)
    assert all(each.default is None or each.fault(each.default) is None for each in fields)
