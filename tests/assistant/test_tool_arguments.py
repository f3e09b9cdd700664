"""What a model gives a tool is read and checked before anybody is asked: exactly, within bounds, never wrongly refused."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema_specifications import REGISTRY

from desktop.assistant.tool_arguments import check, parse
from desktop.errors import AssistantError
from tests.assistant.schemas import OBJECTS, REFERRING_SCHEMAS, SCHEMAS

SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "maxLength": 5},
        "count": {"type": ["integer", "null"], "minimum": 1},
        "kind": {"enum": ["a", "b"]},
        "lines": {"type": "array", "items": {"type": "object", "required": ["text"]}},
        "either": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"const": 1}}}]},
    },
    "required": ["to"],
    "additionalProperties": False,
}


def fault(arguments: dict[str, Any], schema: dict[str, Any]) -> str:
    """The message of the refusal; empty where there is none."""
    try:
        anyio.run(check, arguments, schema)
    except AssistantError as error:
        assert error.diagnostic.code == "arguments_invalid"
        return error.diagnostic.message
    return ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "not valid: missing `to`."),
        ({"to": 5}, "not valid at `to`: must be of type string."),
        ({"to": "abcdef"}, "not valid at `to`: breaks `maxLength` 5."),
        ({"to": "x", "count": "1"}, "not valid at `count`: must be of type integer or null."),
        ({"to": "x", "count": 0}, "not valid at `count`: breaks `minimum` 1."),
        ({"to": "x", "kind": "c"}, "not valid at `kind`: must be one of the values that the schema lists."),
        ({"to": "x", "lines": [{"text": ""}, {}]}, "not valid at `lines[1]`: missing `text`."),
        ({"to": "x", "either": 5}, "not valid at `either`: fits none of the forms that the schema allows."),
        ({"to": "x", "too\u202e": 1}, "not valid: unknown property `too`."),
        ({"to": "x", "count": None, "lines": [], "either": {"x": 1}}, ""),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_refusal_names_the_place_and_the_reason(arguments: dict[str, Any], told: str) -> None:
    assert fault(arguments, SCHEMA).removeprefix("The arguments are ") == told


def test_the_draft_that_a_schema_names_is_used() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"minimum": 1, "exclusiveMinimum": True}},
    }
    assert "`n`" in fault({"n": 1}, schema)
    assert fault({"n": 2}, schema) == ""


def test_local_references_are_followed() -> None:
    schema = {"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    assert fault({"n": "x"}, schema) == "The arguments are not valid at `n`: must be of type integer."


def _doubling(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": definitions | {f"d{levels}": {"type": "object"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        {"patternProperties": {"^(a+)+$": False}, "additionalProperties": False},
        {"propertyNames": {"pattern": "^(a+)+$"}},
        _doubling(40),
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "file:///etc/passwd"},
        {"$dynamicRef": "#nowhere"},
        {"type": "thing"},
        {"required": 5},
        {"properties": []},
        {"allOf": {}},
        {"$schema": 5},
        {"multipleOf": 0},
    ],
    ids=lambda schema: json.dumps(schema)[:40],
)
def test_a_hostile_or_broken_schema_checks_nothing_and_costs_little(schema: dict[str, Any]) -> None:
    began = time.perf_counter()
    assert fault({"a": "a" * 60 + "!", "a" * 60 + "!": 1, "n": 5}, schema) == ""
    assert time.perf_counter() - began < 3


@settings(deadline=None, max_examples=20)
@given(SCHEMAS | REFERRING_SCHEMAS, OBJECTS)
def test_valid_arguments_are_never_refused(schema: Any, arguments: dict[str, Any]) -> None:
    try:
        valid = Draft202012Validator(schema, registry=REGISTRY).is_valid(arguments)
    except Exception:  # a reference to nowhere, or without end
        return
    if valid and isinstance(schema, dict):
        assert fault(arguments, schema) == ""


@given(OBJECTS.map(json.dumps) | st.text(max_size=30) | st.text('{}[]",:\\ud80aé0.eE-+ntrufalsNI', max_size=30))
def test_text_is_an_object_that_can_be_sent_or_refused(text: str) -> None:
    try:
        arguments = parse(text)
    except AssistantError as error:
        assert error.diagnostic.code == "arguments_invalid"
        assert text.strip()
    else:
        assert isinstance(arguments, dict)
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()


def test_digits_stay_as_they_are() -> None:
    text = '{"a": 12345678901234567890123, "b": 0.1}'
    assert json.dumps(parse(text)) == text
