"""The check of structured results: right where it can be, bounded where a schema was made to run for ever."""

from __future__ import annotations

import time
from typing import Any

import pytest
from mcp_types import CallToolResult

from desktop.host.output_schema import mismatch

COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
EVIL = "^(a+)+$"


def check(schema: dict[str, Any], value: object) -> str | None:
    return mismatch(schema, CallToolResult(content=[], structured_content=value))


def test_a_result_that_fits_is_left_alone_and_one_that_does_not_is_told() -> None:
    assert check(COUNT, {"count": 1}) is None
    assert check(COUNT, {"count": "1"}) == "the structured content does not fit"
    assert (
        check({**COUNT, "additionalProperties": False}, {"count": 1, "x": 2}) == "the structured content does not fit"
    )
    assert (
        check({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}, "1") == "the structured content does not fit"
    )
    assert mismatch(COUNT, CallToolResult(content=[])) == "the structured content is missing"


@pytest.mark.parametrize("draft", ["draft-04", "draft-07", "draft/2019-09", "draft/2020-12"])
def test_every_revision_of_json_schema_is_checked(draft: str) -> None:
    host = "https://json-schema.org" if "/" in draft else "http://json-schema.org"
    schema = {"$schema": f"{host}/{draft}/schema#", **COUNT}
    assert (check(schema, {"count": 1}), check(schema, {})) == (None, "the structured content does not fit")


@pytest.mark.parametrize(
    "schema",
    [{"type": "nonsense"}, {"type": "object", "properties": 7}, {"$ref": "http://127.0.0.1:9/schema"}, {"required": 1}],
)
def test_a_schema_that_is_none_is_told_and_nothing_is_fetched(schema: dict[str, Any]) -> None:
    assert check(schema, {"a": 1}) == "the schema is not valid"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": EVIL}}}, {"a": "a" * 40 + "!"}),
        (
            {"properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": EVIL}}},
            {"a": "a" * 40 + "!"},
        ),
        ({"patternProperties": {EVIL: {}}, "additionalProperties": False}, {"a" * 40 + "!": 1}),
        ({"patternProperties": {EVIL: {}}, "unevaluatedProperties": False}, {"a" * 40 + "!": 1}),
        ({"uniqueItems": True}, [{"a": n} for n in range(30_000)]),
        ({"items": {"anyOf": [{"enum": list(range(20_000))}, {}]}}, [-1] * 100_000),
        (
            {
                "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}},
                "$ref": "#/$defs/d0",
            },
            {},
        ),
        ({"$ref": "#"}, {}),
    ],
    ids=["pattern", "named revision", "pattern properties", "unevaluated", "unique", "enum", "exponential", "endless"],
)
def test_a_schema_made_to_run_for_ever_ends_soon_and_is_not_held_against_the_result(
    schema: dict[str, Any], value: object
) -> None:
    began = time.monotonic()
    assert check(schema, value) is None
    assert time.monotonic() - began < 3
