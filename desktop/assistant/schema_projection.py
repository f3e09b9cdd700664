"""A tool's schema as providers accept it. Used by the toolbox and by ``provider_messages.py``, on a copy: what is hashed and what
arguments are checked against stays the server's own schema.

Providers refuse a whole request for one tool's schema. What they are known to refuse: references, a root that is no plain object,
arrays without ``items``, lists of types, boolean schemas, keywords of identity and evaluation, and values that are none of a
keyword's. Google refuses most, and servers of local models know least (``typed_schema.py``). The projection may allow more than
the schema does, never less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from desktop.assistant.typed_schema import FOR_GOOGLE, FOR_LOCAL_SERVERS, Share, plain_object, typed
from desktop.visible_text import plain

#: Who takes the schema. ``openai`` stands for everyone who follows OpenAI closely, ``local`` for any server that speaks like it.
Dialect = Literal["openai", "anthropic", "google", "local"]
_SHARES: dict[Dialect, Share] = {"google": FOR_GOOGLE, "local": FOR_LOCAL_SERVERS}

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


def projected(schema: Mapping[str, Any], dialect: Dialect = "openai") -> dict[str, Any]:
    """The schema with local references put in place and nothing that providers refuse. Always of type ``object``.

    What lies deeper than 32 levels, and what follows when the projection has grown to 4,000 schemas, becomes a schema that
    allows everything; so does a reference to elsewhere, which is never fetched, and one that leads back to itself.
    """
    whole = _Projection(schema, dialect).schema(schema, 0, ())
    share = _SHARES.get(dialect)
    return plain_object(whole) if share is None else typed(plain_object(whole), share)


class _Projection:
    def __init__(self, root: Mapping[str, Any], dialect: Dialect) -> None:
        self._root = root
        self._is_anthropic = dialect == "anthropic"  # it takes lists of types and constants
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
                case "items", Mapping() if "prefixItems" in given:
                    pass  # it speaks of those that follow, which can't be told apart without the others
                case "items" | "additionalProperties", Mapping():
                    result[name] = self.schema(value, depth + 1, references)
                case "const", _:
                    result |= {"const": value} if self._is_anthropic else {"enum": [value]}
                case _ if name in _AS_IT_IS and _is_value_of(name, value):
                    result[name] = value
                case _:
                    pass
        if "patternProperties" in given:
            result.pop("additionalProperties", None)
        kind = given.get("type", result.get("type"))
        if self._is_anthropic and isinstance(kind, list):
            kinds = [each for each in dict.fromkeys(map(str, cast("list[Any]", kind))) if each in _PYTHON_TYPES]
            return (result | {"type": kinds} if kinds else result) | (
                {"items": result.get("items", {})} if "array" in kinds else {}
            )
        return _typed(result, kind)

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


def _is_value_of(keyword: str, value: Any) -> bool:
    """Whether a keyword may have a value: older drafts gave some of them others, and some servers write numbers as text."""
    match keyword:
        case "enum" | "examples":
            return isinstance(value, list) and bool(cast("list[Any]", value))
        case "pattern" | "format":
            return isinstance(value, str)
        case "uniqueItems":
            return isinstance(value, bool)
        case "default":
            return True
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "multipleOf":
            return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
        case _:
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0


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
