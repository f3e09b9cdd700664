"""A tool's schema as OpenAI-style providers accept it. Used by the toolbox, on a copy: what is hashed and what arguments are
checked against stays the server's own schema.

Providers refuse a whole request for one tool's schema. What they are known to refuse: references, a root that is no plain object,
arrays without ``items``, lists of types, boolean schemas, keywords of identity and evaluation. The projection may allow
more than the schema does, never less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from desktop.visible_text import plain

_DEPTH_LIMIT = 32
#: Schemas in one projection: references may multiply a small schema without end.
_SIZE_LIMIT = 4000

#: What says something of values of one type alone, beside what every type may have.
_OF_TYPE: dict[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "object": frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"}),
    "array": frozenset({"items", "minItems", "maxItems", "uniqueItems"}),
}
_OF_TYPE["integer"] = _OF_TYPE["number"]
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_AS_IT_IS = frozenset({"enum", "default", "examples"}).union(*_OF_TYPE.values()) - {
    "properties",
    "required",
    "additionalProperties",
    "items",
}


def projected(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with local references put in place and nothing that providers refuse. Always of type ``object``.

    What lies deeper than 32 levels, and what follows when the projection has grown to 4,000 schemas, becomes a schema that
    allows everything; so does a reference to elsewhere, which is never fetched, and one that leads back to itself.
    """
    return _plain_object(_Projection(schema).schema(schema, 0, ()))


class _Projection:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _SIZE_LIMIT

    def schema(self, schema: Any, depth: int, references: tuple[str, ...]) -> dict[str, Any]:
        """`references` are those that led here."""
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > _DEPTH_LIMIT or self._left < 0:
            return {}
        given = cast("Mapping[str, Any]", schema)
        result: dict[str, Any] = {}
        reference = given.get("$ref")
        if isinstance(reference, str) and reference not in references:
            result = self.schema(self._target(reference), depth + 1, (*references, reference))
        for name, value in given.items():
            match name, value:
                case "title" | "description", str():
                    result[name] = plain(value)
                case "properties", Mapping():
                    properties = cast("Mapping[str, Any]", value)
                    own = {each: self.schema(inner, depth + 1, references) for each, inner in properties.items()}
                    result[name] = result.get(name, {}) | own
                case "required", list():
                    names = [each for each in cast("list[Any]", value) if isinstance(each, str)]
                    result[name] = list(dict.fromkeys([*result.get(name, ()), *names]))
                case "anyOf" | "oneOf" | "allOf", list():
                    merged = "allOf" if name == "allOf" else "anyOf"
                    result[merged] = [self.schema(each, depth + 1, references) for each in cast("list[Any]", value)]
                case "additionalProperties", bool():
                    result[name] = value
                case "items" | "additionalProperties", Mapping():
                    result[name] = self.schema(value, depth + 1, references)
                case "const", _:
                    result["enum"] = [value]
                case _ if name in _AS_IT_IS:
                    result[name] = value
                case _:
                    pass
        if "patternProperties" in given:
            result.pop("additionalProperties", None)
        return _typed(result, given.get("type", result.get("type")))

    def _target(self, reference: str) -> Any:
        """What a local reference (a JSON pointer) points to; None for any other."""
        value: Any = self._root if reference.startswith("#") else None
        for token in reference.partition("#")[2].split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping) and name in value:
                value = cast("Mapping[str, Any]", value)[name]
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(cast("list[Any]", value)):
                value = cast("list[Any]", value)[int(name)]
            else:
                return None
        return value if reference == "#" or "/" in reference else None


def _typed(schema: dict[str, Any], kind: Any) -> dict[str, Any]:
    """The schema with its type; a list of types becomes alternatives of one type each."""
    kinds = [each for each in (cast("list[Any]", kind) if isinstance(kind, list) else [kind]) if each in _PYTHON_TYPES]
    if len(kinds) == 1:
        schema["type"] = kinds[0]
        if kinds[0] == "array":
            schema.setdefault("items", {})
    elif kinds and "anyOf" not in schema:
        of_one_type = {name for names in _OF_TYPE.values() for name in names} | {"enum"}
        alternatives = [
            _typed({name: schema[name] for name in _OF_TYPE.get(each, ()) if name in schema} | values, each)
            for each in kinds
            if (values := _values(schema, each)) is not None
        ]
        schema = {name: value for name, value in schema.items() if name not in of_one_type}
        schema["anyOf"] = alternatives
    return schema


def _values(schema: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    """The values of ``enum`` that are of a type; None when it lists none of it."""
    if not isinstance(schema.get("enum"), list):
        return {}
    types = _PYTHON_TYPES[kind]
    values = [
        each
        for each in cast("list[Any]", schema["enum"])
        if isinstance(each, types) and (bool in types or not isinstance(each, bool))
    ]
    return {"enum": values} if values and kind != "null" else {} if values else None


def _plain_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object without alternatives: it has the properties of them all, and requires what each requires."""
    properties: dict[str, Any] = dict(schema.get("properties", {}))
    required: list[str] = list(schema.get("required", ()))
    every = [_plain_object(each) for each in schema.get("allOf", ())]
    any_ = [_plain_object(each) for each in schema.get("anyOf", ())]
    for each in (*every, *any_):
        properties = each["properties"] | properties
    required += [name for each in every for name in each.get("required", ())]
    required += [name for name in properties if any_ and all(name in each.get("required", ()) for each in any_)]
    result = {name: schema[name] for name in ("title", "description") if name in schema}
    result |= {"type": "object", "properties": properties}
    if required:
        result["required"] = list(dict.fromkeys(required))
    if "additionalProperties" in schema and not every and not any_:
        result["additionalProperties"] = schema["additionalProperties"]
    return result
