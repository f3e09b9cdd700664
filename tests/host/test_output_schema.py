"""The check of structured results: right where it can be, bounded where a schema was made to run for ever."""

from __future__ import annotations

import time
from typing import Any

import pytest
from mcp_types import CallToolResult

from desktop.host.output_schema import OutputSchema

COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
EVIL = "^(a+)+$"


pytestmark = pytest.mark.anyio


async def check(schema: dict[str, Any], value: object) -> str | None:
    """The verdict of the first check and of the second, which runs on the loop, and which must be the same."""
    output_schema = OutputSchema(schema)
    result = CallToolResult(content=[], structured_content=value)
    verdict = await output_schema.mismatch(result)
    assert await output_schema.mismatch(result) == verdict
    return verdict


async def test_a_result_that_fits_is_left_alone_and_one_that_does_not_is_told() -> None:
    unfit = "the structured content does not fit"
    assert await check(COUNT, {"count": 1}) is None
    assert await check(COUNT, {"count": "1"}) == unfit
    assert await check({**COUNT, "additionalProperties": False}, {"count": 1, "x": 2}) == unfit
    assert await check({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}, "1") == unfit
    assert await OutputSchema(COUNT).mismatch(CallToolResult(content=[])) == "the structured content is missing"


@pytest.mark.parametrize("draft", ["draft-04", "draft-07", "draft/2019-09", "draft/2020-12"])
async def test_every_revision_of_json_schema_is_checked(draft: str) -> None:
    host = "https://json-schema.org" if "/" in draft else "http://json-schema.org"
    schema = {"$schema": f"{host}/{draft}/schema#", **COUNT}
    assert (await check(schema, {"count": 1}), await check(schema, {})) == (None, "the structured content does not fit")


@pytest.mark.parametrize(
    "schema",
    [{"type": "nonsense"}, {"type": "object", "properties": 7}, {"$ref": "http://127.0.0.1:9/schema"}, {"required": 1}],
)
async def test_a_schema_that_is_none_is_told_and_nothing_is_fetched(schema: dict[str, Any]) -> None:
    assert await check(schema, {"a": 1}) == "the schema is not valid"


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
async def test_a_schema_made_to_run_for_ever_ends_soon_and_is_not_held_against_the_result(
    schema: dict[str, Any], value: object
) -> None:
    began = time.monotonic()
    assert await check(schema, value) is None
    assert time.monotonic() - began < 6
