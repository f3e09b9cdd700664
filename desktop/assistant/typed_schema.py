"""A projected schema with a type or alternatives everywhere and few keywords, as Google and local servers take it; and a schema
as an object without alternatives, which other providers want at the root, too. Used by ``schema_projection.py`` alone.

Google takes OpenAPI's small share of JSON Schema. llama.cpp makes a grammar of a schema: it fails for one without a type, for a
pattern that is not a whole line's, and for lengths of thousands; Ollama reads types, properties, items and values alone; the
templates by which vLLM and LM Studio write tools into a text want a type of each property. What they lose, the server checks.

For Google, litellm turns type names and null alternatives into Google's form and drops keywords that Google has not. It also
takes every schema without a type for an object, drops all that stands beside alternatives, and ``allOf`` whole: none of these
is left here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Share = Mapping[str, frozenset[str]]
"""What is kept beside the description: of each type what says something of it."""
FOR_GOOGLE: Share = {
    "object": frozenset({"properties", "required", "minProperties", "maxProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"enum", "minLength", "maxLength", "pattern"}),
    "number": frozenset({"enum", "minimum", "maximum"}),
    "integer": frozenset({"enum", "minimum", "maximum"}),
}
FOR_LOCAL_SERVERS: Share = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items"}),
    "string": frozenset({"enum"}),
    "number": frozenset({"enum"}),
    "integer": frozenset({"enum", "minimum", "maximum"}),
}


def typed(schema: Mapping[str, Any], share: Share) -> dict[str, Any]:
    """The schema with a type or alternatives everywhere, and with no keyword beyond the share."""
    schema = _joined(schema)
    kind = schema.get("type") or _implied_type(schema)
    about = {name: schema[name] for name in ("title", "description", "default") if name in schema}
    if kind is None:
        alternatives = [typed(each, share) for each in schema.get("anyOf", ())]
        if not alternatives or any(each.get("anyOf") == _anything() for each in alternatives):
            alternatives = _anything()
        return about | {"anyOf": alternatives}
    kept = share.get(kind, frozenset())
    result = about | {name: value for name, value in schema.items() if name in kept} | {"type": kind}
    if kind == "string" and schema.get("format") == "date-time":
        result["format"] = "date-time"
    for bound, exclusive, narrower in (("minimum", "exclusiveMinimum", max), ("maximum", "exclusiveMaximum", min)):
        if exclusive in schema and bound in kept:
            result[bound] = narrower(schema[exclusive], schema.get(bound, schema[exclusive]))
    if kind == "object":
        properties = {name: typed(each, share) for name, each in schema.get("properties", {}).items()}
        result["properties"] = properties
        result["required"] = [name for name in schema.get("required", ()) if name in properties]
        result = {name: value for name, value in result.items() if name not in ("properties", "required") or value}
        if isinstance(result.get("additionalProperties"), dict):
            result["additionalProperties"] = typed(result["additionalProperties"], share)
    if kind == "array":
        result["items"] = typed(schema.get("items", {}), share)
    if kind == "string" and "enum" in schema:
        values = [each for each in schema["enum"] if isinstance(each, str)]
        result["enum"] = values
        if not values or "" in values:  # Google takes no empty one, and leaving only that out would forbid it
            del result["enum"]
    return result


def plain_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object without alternatives: it has the properties of them all, and requires what each requires."""
    properties: dict[str, Any] = dict(schema.get("properties", {}))
    required: list[str] = list(schema.get("required", ()))
    every = [plain_object(each) for each in schema.get("allOf", ())]
    any_ = [plain_object(each) for each in schema.get("anyOf", ())]
    for each in every:
        properties = each["properties"] | properties
    variants: dict[str, list[Any]] = {}
    for each in any_:
        for name, inner in each["properties"].items():
            if inner not in variants.setdefault(name, []):
                variants[name].append(inner)
    for name, inners in variants.items():
        properties.setdefault(name, inners[0] if len(inners) == 1 else {"anyOf": inners})
    required += [name for each in every for name in each.get("required", ())]
    required += [name for name in properties if any_ and all(name in each.get("required", ()) for each in any_)]
    result = {name: schema[name] for name in ("title", "description") if name in schema}
    result |= {"type": "object", "properties": properties}
    if required:
        result["required"] = list(dict.fromkeys(required))
    if "additionalProperties" in schema and not every and not any_:
        result["additionalProperties"] = schema["additionalProperties"]
    return result


def _anything() -> list[dict[str, Any]]:
    """Alternatives for any value but arrays right within arrays: each needs a type, and an array one for its items.

    Made anew each time: litellm writes into what it gets.
    """

    def single() -> list[dict[str, Any]]:
        return [{"type": each} for each in ("string", "number", "boolean", "object", "null")]

    return [*single(), {"type": "array", "items": {"anyOf": single()}}]


def _joined(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without ``allOf``, and without alternatives beside properties or a type."""
    every = schema.get("allOf", ())
    if len(every) == 1 and "properties" not in schema:
        own = {name: value for name, value in schema.items() if name != "allOf"}
        return _joined({**every[0], **own})
    if any(each.get("type") == "object" for each in (schema, *every)):
        return plain_object(schema) if every or "anyOf" in schema else schema
    dropped = ("allOf", "anyOf") if "type" in schema else ("allOf",)
    return {name: value for name, value in schema.items() if name not in dropped}


def _implied_type(schema: Mapping[str, Any]) -> str | None:
    """The type of a schema that tells it only by its other keywords."""
    if "anyOf" in schema:
        return None
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = schema.get("enum", ())
    return "string" if values and all(isinstance(each, str) for each in values) else None
