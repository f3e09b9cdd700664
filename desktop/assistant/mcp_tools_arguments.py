"""The four forms of a call of ``mcp_tools``: the schema that the model gets, and what its arguments say.

Used by ``mcp_tools.py``. That exactly one form is given is checked here and not by the schema: providers differ in what they
make of ``oneOf``. Every breach is the same error, which spells out the four forms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from desktop.assistant.toolbox import MOST_AT_ONCE
from desktop.catalog_entries import KindFilter
from desktop.errors import AssistantError
from desktop.uris import LIMIT, are_template_arguments, is_template, is_uri

_QUERY_LIMIT = 500
_SERVER_LIMIT = 80
_IDENTIFIER_LIMIT = 600
_NAME_LIMIT = 512
_COMPLETE_LIMIT = 64 * 1024
_MOST_CANDIDATES = 50
DEFAULT_CANDIDATES = 5
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


_TEXT = {"type": "string"}


def _closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


#: Without the limits of lengths, which are checked below: every request carries the schema.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": _TEXT,
        "kind": {"type": "string", "enum": list(get_args(KindFilter))},
        "server": _TEXT,
        "limit": {"type": "integer", "minimum": 1, "maximum": _MOST_CANDIDATES, "default": DEFAULT_CANDIDATES},
        "activate": {
            "type": "array",
            "items": _TEXT,
            "minItems": 1,
            "maxItems": MOST_AT_ONCE,
        },
        "read": _closed(
            {
                "server": _TEXT,
                "uri": _TEXT,
                "template": _TEXT,
                "arguments": {"type": "object", "description": "Values of the template: strings or lists of strings"},
            },
            "server",
        ),
        "complete": _closed(
            {
                "server": _TEXT,
                "template": _TEXT,
                "argument": _closed({"name": _TEXT, "value": _TEXT}, "name", "value"),
                "arguments": {"type": "object", "additionalProperties": _TEXT},
            },
            "server",
            "template",
            "argument",
        ),
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Query:
    query: str
    kind: KindFilter = "all"
    server: str | None = None
    limit: int = DEFAULT_CANDIDATES


@dataclass(frozen=True, slots=True)
class Activate:
    identifiers: tuple[str, ...]
    """Each once, in the model's order."""


@dataclass(frozen=True, slots=True)
class Read:
    """By `uri`, or by `template` and `arguments`."""

    server: str
    uri: str = ""
    template: str = ""
    arguments: Mapping[str, str | list[str]] | None = None


@dataclass(frozen=True, slots=True)
class Complete:
    server: str
    template: str
    name: str
    value: str
    context: Mapping[str, str]


def operation(arguments: Mapping[str, Any]) -> Query | Activate | Read | Complete:
    """What the arguments ask for. Raises AssistantError ``usage``."""
    given = [name for name in ("query", "activate", "read", "complete") if name in arguments]
    if len(given) != 1 or not arguments.keys() <= SCHEMA["properties"].keys():
        raise _usage()
    if given != ["query"] and not arguments.keys().isdisjoint(("kind", "server", "limit")):
        raise _usage()
    match given:
        case ["query"]:
            return _query(arguments)
        case ["activate"]:
            if not isinstance(arguments["activate"], list):
                raise _usage()
            identifiers = cast("list[Any]", arguments["activate"])
            if not 1 <= len(identifiers) <= MOST_AT_ONCE:
                raise _usage()
            return Activate(tuple(dict.fromkeys(_filled(each, _IDENTIFIER_LIMIT) for each in identifiers)))
        case ["read"]:
            return _read(_object(arguments["read"], SCHEMA["properties"]["read"]))
        case _:
            return _complete(_object(arguments["complete"], SCHEMA["properties"]["complete"]))


def _query(arguments: Mapping[str, Any]) -> Query:
    kind, limit = arguments.get("kind", "all"), arguments.get("limit", DEFAULT_CANDIDATES)
    if kind not in get_args(KindFilter) or type(limit) is not int or not 1 <= limit <= _MOST_CANDIDATES:
        raise _usage()
    server = _filled(arguments["server"], _SERVER_LIMIT) if "server" in arguments else None
    return Query(_filled(arguments["query"], _QUERY_LIMIT), kind, server, limit)


def _read(read: dict[str, Any]) -> Read:
    server = _filled(read["server"], _SERVER_LIMIT)
    if "uri" in read:
        if len(read) > 2 or not isinstance(read["uri"], str) or not is_uri(read["uri"]):
            raise _usage()
        return Read(server, read["uri"])
    template, values = read.get("template"), read.get("arguments")
    if not isinstance(template, str) or not is_template(template) or not are_template_arguments(values):
        raise _usage()
    return Read(server, template=template, arguments=cast("dict[str, str | list[str]]", values))


def _complete(complete: dict[str, Any]) -> Complete:
    server, template, context = complete["server"], complete["template"], complete.get("arguments", {})
    argument = _object(complete["argument"], SCHEMA["properties"]["complete"]["properties"]["argument"])
    name, value = argument["name"], argument["value"]
    if (
        not isinstance(server, str)
        or not _SERVER_NAME.fullmatch(server)
        or not isinstance(template, str)
        or not is_template(template)
        or not isinstance(name, str)
        or not 1 <= len(name) <= _NAME_LIMIT
        or not isinstance(value, str)
        or len(value) > LIMIT
        or not are_template_arguments(context)
        or not all(isinstance(each, str) for each in context.values())
        or len(json.dumps(complete, ensure_ascii=False).encode("utf-8", "surrogatepass")) > _COMPLETE_LIMIT
    ):
        raise _usage()
    return Complete(server, template, name, value, cast("dict[str, str]", context))


def _object(value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the schema's required properties and no others than it knows."""
    if not isinstance(value, dict):
        raise _usage()
    names = cast("dict[str, Any]", value).keys()
    if not set(schema["required"]) <= names or not names <= schema["properties"].keys():
        raise _usage()
    return cast("dict[str, Any]", value)


def _filled(value: Any, limit: int) -> str:
    """A text that is not blank and not longer than the limit."""
    if not isinstance(value, str) or not value.strip() or len(value) > limit:
        raise _usage()
    return value


def _usage() -> AssistantError:
    return AssistantError("usage", operation="call")
