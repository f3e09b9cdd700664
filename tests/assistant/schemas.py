"""JSON schemas and values for property tests: small, wild, and often about each other."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "ab", "type", "properties"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "", "a", "aaa", "b"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])
REFERENCES = st.sampled_from(["#", "#/$defs/one", "#/$defs/two", "#/$defs/none", "#/properties/a"])


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=4),
            "const": VALUES,
            "minimum": st.integers(-2, 2),
            "maxLength": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "pattern": st.sampled_from(["^a", "b$"]),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "propertyNames": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "maxContains": st.integers(0, 1),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "description": st.text(max_size=5),
        },
    )


#: Without references.
SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.booleans() | _keywords(st.booleans()), _keywords, max_leaves=6)
_REFERRING = st.recursive(
    st.booleans() | st.builds(lambda reference: {"$ref": reference}, REFERENCES) | _keywords(st.booleans()),
    lambda inner: (
        _keywords(inner) | st.builds(lambda reference, rest: {"$ref": reference} | rest, REFERENCES, _keywords(inner))
    ),
    max_leaves=6,
)
#: Roots with definitions that refer to each other and to themselves.
REFERRING_SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda root, one, two: root | {"$defs": {"one": one, "two": two}}, _keywords(_REFERRING), _REFERRING, _REFERRING
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
