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

from desktop.assistant.provider_messages import dialect_of
from desktop.assistant.schema_projection import Dialect, projected
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


def test_values_that_are_none_of_their_keywords_are_left_out() -> None:
    draft4 = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maxLength": "3", "enum": []}
    text = {"type": "string", "pattern": 5, "format": None, "minLength": -1, "maxLength": 3}
    assert projected({"properties": {"x": draft4, "y": text}})["properties"] == {
        "x": {"type": "number", "minimum": 0},
        "y": {"type": "string", "maxLength": 3},
    }


def test_one_property_of_two_alternatives_has_the_alternatives_of_both() -> None:
    schema = {"anyOf": [{"properties": {"x": {"type": "string"}}}, {"properties": {"x": {"type": "integer"}}}]}
    assert projected(schema)["properties"] == {"x": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}


def test_items_after_others_of_their_own_are_not_taken_for_all_items() -> None:
    schema = {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}}
    assert projected({"properties": {"x": schema}})["properties"] == {"x": {"type": "array", "items": {}}}


def test_anthropic_keeps_lists_of_types_and_constants() -> None:
    schema = {"properties": {"x": {"type": ["string", "array", "null"]}, "y": {"const": 1, "type": "integer"}}}
    assert projected(schema, "anthropic") == {
        "type": "object",
        "properties": {
            "x": {"type": ["string", "array", "null"], "items": {}},
            "y": {"const": 1, "type": "integer"},
        },
    }


SINGLE = [{"type": each} for each in ("string", "number", "boolean", "object", "null")]
ANYTHING = [*SINGLE, {"type": "array", "items": {"anyOf": SINGLE}}]


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({}, {"anyOf": ANYTHING}),
        ({"description": "d", "default": 1}, {"description": "d", "default": 1, "anyOf": ANYTHING}),
        ({"anyOf": [{"type": "string"}, {}]}, {"anyOf": ANYTHING}),
        ({"type": "array"}, {"type": "array", "items": {"anyOf": ANYTHING}}),
        ({"type": "object", "properties": {}}, {"type": "object"}),
        ({"type": "object", "required": ["b"]}, {"type": "object"}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": [1, "a"]}, {"anyOf": ANYTHING}),
        ({"type": "string", "enum": ["a", "", "b"]}, {"type": "string"}),
        ({"type": "string", "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        ({"type": "integer", "exclusiveMinimum": 0, "minimum": -5}, {"type": "integer", "minimum": 0}),
        ({"type": "string", "format": "email", "examples": ["x"]}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        (
            {"type": "array", "items": {"type": ["object", "null"], "properties": {"n": {"type": "number"}}}},
            {
                "type": "array",
                "items": {"anyOf": [{"type": "object", "properties": {"n": {"type": "number"}}}, {"type": "null"}]},
            },
        ),
        (
            {"allOf": [{"type": "string", "maxLength": 3}], "description": "d"},
            {"type": "string", "maxLength": 3, "description": "d"},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "integer"}}}],
            },
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
        ),
    ],
    ids=str,
)
def test_google_gets_a_type_everywhere_and_none_of_what_it_refuses(given: Any, taken: Any) -> None:
    result = projected({"properties": {"x": given}}, "google")
    assert result == {"type": "object", "properties": {"x": taken}}


def google_schemas_in(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    items = [schema["items"]] if "items" in schema else []
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *items):
        yield from google_schemas_in(inner)


def assert_google_takes(schema: Mapping[str, Any]) -> None:
    for each in google_schemas_in(schema):
        assert ("type" in each) != ("anyOf" in each)
        assert each.keys() <= {
            *("type", "title", "description", "default", "enum", "pattern", "format", "anyOf"),
            *("items", "minItems", "maxItems", "properties", "required", "minProperties", "maxProperties"),
            *("minimum", "maximum", "minLength", "maxLength"),
        }
        assert each.get("anyOf") != []
        assert each.get("properties") != {}
        assert set(each.get("required", ())) <= each.get("properties", {}).keys()
        assert ("items" in each) == (each.get("type") == "array")
        if each.get("type") == "string":
            assert all(isinstance(value, str) and value for value in each.get("enum", ()))


def _lists_in_lists(value: Any) -> bool:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return any((isinstance(value, list) and isinstance(each, list)) or _lists_in_lists(each) for each in inner)


@pytest.mark.parametrize("schema", [_doubling(25), _deep(500)], ids=["doubling", "deep"])
@pytest.mark.parametrize("dialect", ["anthropic", "google", "local"])
def test_size_and_depth_are_bounded_in_every_dialect(schema: dict[str, Any], dialect: Dialect) -> None:
    assert len(json.dumps(projected(schema, dialect))) < 1_000_000


@settings(deadline=None, max_examples=15)
@given(REFERRING_SCHEMAS, OBJECTS)
def test_what_the_server_takes_anthropic_is_allowed(schema: dict[str, Any], value: dict[str, Any]) -> None:
    result = projected(schema, "anthropic")
    Draft202012Validator.check_schema(result)
    assert not {"anyOf", "allOf", "oneOf"} & result.keys()
    try:
        valid = Draft202012Validator(schema, registry=REGISTRY).is_valid(value)
    except Exception:  # a reference to nowhere, or without end
        return
    if valid:
        assert Draft202012Validator(result).is_valid(value)


@settings(deadline=None, max_examples=15)
@given(REFERRING_SCHEMAS, OBJECTS)
def test_google_is_allowed_what_others_are(schema: dict[str, Any], value: dict[str, Any]) -> None:
    result = projected(schema, "google")
    assert_google_takes(result)
    # A schema that tells its type only by its keywords gets that type: what it says of values of others is lost.
    typed = all("type" in each or not {"properties", "items"} & each.keys() for each in schemas_in(projected(schema)))
    if typed and not _lists_in_lists(value) and Draft202012Validator(projected(schema)).is_valid(value):
        assert Draft202012Validator(result).is_valid(value)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({}, {"anyOf": ANYTHING}),
        ({"type": "string", "maxLength": 100_000, "pattern": "^a", "format": "email"}, {"type": "string"}),
        ({"type": ["string", "null"], "maxLength": 9}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"type": "array", "minItems": 1, "uniqueItems": True}, {"type": "array", "items": {"anyOf": ANYTHING}}),
        ({"type": "integer", "minimum": 1, "multipleOf": 2}, {"type": "integer", "minimum": 1}),
        ({"type": "number", "exclusiveMinimum": 0.5}, {"type": "number"}),
        (
            {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}, "minProperties": 1},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        ({"oneOf": [{"type": "string"}, {"$ref": "#/$defs/n"}]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    ],
    ids=str,
)
def test_a_local_server_gets_types_and_little_else(given: Any, taken: Any) -> None:
    schema = {"properties": {"x": given}, "$defs": {"n": {"type": "integer"}}, "additionalProperties": False}
    result = projected(schema, "local")
    assert result == {"type": "object", "properties": {"x": taken}, "additionalProperties": False}


@settings(deadline=None, max_examples=15)
@given(REFERRING_SCHEMAS, OBJECTS)
def test_a_local_server_gets_types_everywhere_and_allows_what_others_do(
    schema: dict[str, Any], value: dict[str, Any]
) -> None:
    result = projected(schema, "local")
    for each in schemas_in(result):
        assert ("type" in each) != ("anyOf" in each)
        assert each.keys() <= {
            *("type", "title", "description", "default", "enum", "format", "anyOf", "items", "properties"),
            *("required", "additionalProperties", "minimum", "maximum"),
        }
        assert each.get("format", "date-time") == "date-time"
    typed = all("type" in each or not {"properties", "items"} & each.keys() for each in schemas_in(projected(schema)))
    if typed and not _lists_in_lists(value) and Draft202012Validator(projected(schema)).is_valid(value):
        assert Draft202012Validator(result).is_valid(value)


@pytest.mark.parametrize(
    ("model", "api_base", "dialect"),
    [
        ("anthropic/claude-sonnet-4-5", "", "anthropic"),
        ("claude-sonnet-4-5", "", "anthropic"),
        ("openrouter/anthropic/claude-sonnet-4.5", "", "anthropic"),
        ("vertex_ai/claude-opus-4", "", "anthropic"),
        ("gemini/gemini-pro-latest", "", "google"),
        ("vertex_ai/medlm", "", "google"),
        ("openrouter/google/gemini-2.5-pro", "", "google"),
        ("openrouter/openai/gpt-5", "", "openai"),
        ("gpt-5", "", "openai"),
        ("mistral/mistral-large-latest", "", "openai"),
        ("openai/qwen3", "http://127.0.0.1:8080/v1", "local"),
        ("openai/google/gemma-3", "http://127.0.0.1:1234/v1", "local"),
        ("openai/claude-distilled", "http://127.0.0.1:1234/v1", "local"),
        ("ollama_chat/llama3.3", "", "local"),
        ("lm_studio/gemma-3", "", "local"),
    ],
)
def test_who_takes_what_is_told_by_the_models_name_and_address(model: str, api_base: str, dialect: Dialect) -> None:
    assert dialect_of(model, api_base) == dialect
