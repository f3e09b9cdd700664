"""A tool's schema as providers accept it: nothing they refuse, nothing that the server would have taken refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from jsonschema_specifications import REGISTRY

from desktop.assistant.schema_projection import projected
from tests.assistant.schemas import OBJECTS, REFERRING_SCHEMAS

REFUSED = {
    "$ref",
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "oneOf",
    "if",
    "then",
    "else",
    "const",
    "$comment",
    "$anchor",
}


def schemas_in(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    for inner in (
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *schema.get("allOf", ()),
        *(schema[name] for name in ("items", "additionalProperties") if isinstance(schema.get(name), dict)),
    ):
        yield from schemas_in(inner)


def assert_acceptable(schema: Mapping[str, Any]) -> None:
    assert schema["type"] == "object"
    assert not {"anyOf", "allOf", "enum", "not"} & schema.keys()
    for each in schemas_in(schema):
        assert not REFUSED & each.keys()
        assert isinstance(each.get("type", ""), str)
        if each.get("type") == "array":
            assert isinstance(each["items"], dict)
        assert all(isinstance(inner, dict) for inner in each.get("properties", {}).values())


def test_local_references_are_put_in_place_and_the_definitions_dropped() -> None:
    assert projected(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "x",
            "type": "object",
            "properties": {
                "when": {"$ref": "#/$defs/a~1b", "description": "own words"},
                "who": {"type": "array", "items": {"$ref": "#/definitions/Person"}},
            },
            "required": ["when"],
            "additionalProperties": False,
            "$defs": {"a/b": {"type": "string", "description": "a date", "format": "date"}},
            "definitions": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}}},
        }
    ) == {
        "type": "object",
        "properties": {
            "when": {"type": "string", "description": "own words", "format": "date"},
            "who": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        },
        "required": ["when"],
        "additionalProperties": False,
    }


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}, "all": {"$ref": "#"}},
        "$defs": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}}
        },
    }
    tree = projected(schema)["properties"]["tree"]
    assert tree == {"type": "object", "properties": {"next": {}, "v": {"type": "integer"}}}


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/x", "other.json#/a", "#anchor", "#/$defs/none", "#/required/7", 5]
)
def test_a_reference_to_elsewhere_is_dropped(reference: Any) -> None:
    schema = {"properties": {"x": {"$ref": reference, "description": "stays"}}, "required": ["x"]}
    assert projected(schema)["properties"]["x"] == {"description": "stays"}


def test_properties_named_like_keywords_stay() -> None:
    names = ["definitions", "$ref", "if", "const", "oneOf", "items", "type", "properties"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    assert projected(schema) == schema


def test_data_is_not_taken_for_schemas() -> None:
    value = {"$ref": "#/$defs/x", "oneOf": [1]}
    schema = {"type": "object", "properties": {"x": {"default": value, "enum": [value], "examples": [value]}}}
    assert projected(schema) == schema


def test_a_list_of_types_becomes_alternatives() -> None:
    schema = {
        "type": "array",
        "items": {
            "type": ["object", "null"],
            "description": "d",
            "properties": {"a": {"type": ["string"]}},
            "maxLength": 3,
        },
    }
    assert projected({"properties": {"x": schema}})["properties"]["x"] == {
        "type": "array",
        "items": {
            "description": "d",
            "anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "null"}],
        },
    }


def test_values_go_with_their_types() -> None:
    schema = {"type": ["string", "integer", "null"], "enum": ["a", 1, True]}
    assert projected({"properties": {"x": schema}})["properties"]["x"] == {
        "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]
    }


def test_alternatives_at_the_root_become_one_object() -> None:
    schema = {
        "description": "d",
        "oneOf": [
            {"type": "object", "properties": {"id": {"type": "integer"}, "x": {}}, "required": ["id", "x"]},
            {"type": "object", "properties": {"name": {"type": "string"}, "x": {}}, "required": ["name", "x"]},
        ],
        "allOf": [{"properties": {"y": {}}, "required": ["y"]}],
        "additionalProperties": False,
    }
    assert projected(schema) == {
        "description": "d",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "x": {}, "y": {}},
        "required": ["y", "x"],
    }


def test_hidden_text_is_taken_out_of_descriptions() -> None:
    schema = {"type": "object", "title": "a\u202eb", "properties": {"x": {"description": "c\U000e0041\x1b[8md"}}}
    assert projected(schema) == {"type": "object", "title": "ab", "properties": {"x": {"description": "cd"}}}


def _doubling(levels: int) -> dict[str, Any]:
    each = {
        f"d{n}": {"type": "object", "properties": {x: {"$ref": f"#/$defs/d{n + 1}"} for x in "ab"}}
        for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": each | {f"d{levels}": {}}}


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


@pytest.mark.parametrize("schema", [_doubling(25), _deep(500)], ids=["doubling", "deep"])
def test_size_and_depth_are_bounded(schema: dict[str, Any]) -> None:
    began = time.perf_counter()
    result = projected(schema)
    assert time.perf_counter() - began < 2
    assert len(json.dumps(result)) < 200_000
    assert_acceptable(result)


@settings(deadline=None, max_examples=20)
@given(REFERRING_SCHEMAS, OBJECTS)
def test_what_the_server_takes_the_projection_allows(schema: dict[str, Any], value: dict[str, Any]) -> None:
    before = deepcopy(schema)
    result = projected(schema)
    assert schema == before
    assert result == projected(schema)
    assert_acceptable(result)
    try:
        valid = Draft202012Validator(schema, registry=REGISTRY).is_valid(value)
    except Exception:  # a reference to nowhere, or without end
        return
    if valid:
        assert Draft202012Validator(result).is_valid(value)
