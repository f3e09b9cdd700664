"""What a tool's parameters take, read from its schema. Used by Guide's search for arguments and its look at candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from desktop.assistant.guide_wish import words_of
from desktop.assistant.text_values import TextValue, ValueKind

Kind = ValueKind | Literal["text", "enum", "flag", "other"]

#: Words in a parameter's name, and in its description, that tell what it takes. The first that fits counts.
_BY_NAME: tuple[tuple[ValueKind, frozenset[str]], ...] = (
    ("zone", frozenset({"timezone", "zone", "tz"})),
    ("url", frozenset({"url", "uri", "link", "href", "website"})),
    ("email", frozenset({"email", "mail", "recipient"})),
    (
        "path",
        frozenset(
            {
                "path",
                "paths",
                "file",
                "files",
                "filename",
                "dir",
                "directory",
                "folder",
                "cwd",
                "root",
                "repo",
                "repository",
            }
        ),
    ),
    ("date", frozenset({"date", "day", "since", "until"})),
    ("time", frozenset({"time"})),
    ("hash", frozenset({"sha", "hash", "revision", "commit"})),
)
_BY_DESCRIPTION: tuple[tuple[ValueKind, re.Pattern[str]], ...] = (
    ("zone", re.compile(r"\bIANA\b|\btime ?zone (?:name|id)", re.IGNORECASE)),
    ("url", re.compile(r"\bUR[LI]\b")),
    ("email", re.compile(r"\be-?mail address", re.IGNORECASE)),
    ("path", re.compile(r"\b(?:file|directory) ?path\b|\bpath (?:to|of)\b", re.IGNORECASE)),
    ("date", re.compile(r"\bYYYY-MM-DD\b|\bISO.?8601\b")),
)
_BY_FORMAT: dict[str, ValueKind] = {
    "uri": "url",
    "url": "url",
    "email": "email",
    "date": "date",
    "date-time": "datetime",
    "time": "time",
}
#: Names of parameters that take any text, whatever their descriptions say.
TEXTS = frozenset(
    {
        "message",
        "content",
        "text",
        "query",
        "q",
        "topic",
        "prompt",
        "question",
        "title",
        "body",
        "pattern",
        "name",
        "input",
    }
)
PATTERNS = frozenset({"pattern", "patterns", "glob", "mask"})
_ALSO_TAKEN: dict[Kind, tuple[ValueKind, ...]] = {
    "text": ("quoted",),
    "date": ("date", "datetime"),
    "datetime": ("datetime", "date"),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    schema: dict[str, Any]
    """Without the possibility of null; of an array: its items', with its own description."""
    required: bool
    words: tuple[str, ...]
    """Of its name, in small letters."""
    kind: Kind
    """Of an array: of its items. ``other``: what can't be found in a text."""
    is_array: bool

    def takes(self, value: TextValue) -> bool:
        """Whether a value is of the parameter's kind."""
        if self.kind == "number":
            return value.kind == "number" and (self.schema.get("type") != "integer" or isinstance(value.value, int))
        if value.kind == "path" and "*" in str(value.value):
            return self.is_named(PATTERNS)
        return value.kind in _ALSO_TAKEN.get(self.kind, (self.kind,))

    def is_named(self, names: frozenset[str]) -> bool:
        return not names.isdisjoint(self.words)

    def within_bounds(self, value: Any) -> bool:
        low, high = self.schema.get("minimum"), self.schema.get("maximum")
        return not isinstance(value, int | float) or (
            (not isinstance(low, int | float) or low <= value) and (not isinstance(high, int | float) or value <= high)
        )

    def spellings(self) -> Iterable[str]:
        """Patterns of how people write its name: whole, and without words like *name* and *path*."""
        essential = tuple(
            each for each in self.words if each not in ("name", "path", "id", "type", "value", "text", "number")
        )
        return [r"[\s_-]*".join(map(re.escape, words)) for words in dict.fromkeys((self.words, essential)) if words]


def parameters(schema: dict[str, Any]) -> list[Parameter]:
    """The parameters of a tool, in the order of its schema (local references resolved); none of a schema that is none."""
    properties: Any = schema.get("properties")
    required: Any = schema.get("required")
    if not isinstance(properties, dict):
        return []
    needed = cast("list[Any]", required) if isinstance(required, list) else []
    listed = cast("dict[str, Any]", properties)
    return [
        _parameter(name, cast("dict[str, Any]", each), name in needed)
        for name, each in listed.items()
        if isinstance(each, dict)
    ]


def kind_of_name(name: str) -> ValueKind | None:
    """What a parameter of that name takes, as far as the name tells."""
    words = words_of(name, all_of_them=True)
    return next((kind for kind, names in _BY_NAME if not names.isdisjoint(words)), None)


def _parameter(name: str, schema: dict[str, Any], required: bool) -> Parameter:
    schema = _not_null(schema)
    is_array = schema.get("type") == "array"
    if is_array:
        items: Any = schema.get("items")
        described = {"description": schema.get("description", "")}
        schema = described | (_not_null(cast("dict[str, Any]", items)) if isinstance(items, dict) else {})
    words = tuple(words_of(name, all_of_them=True)) or (name.lower(),)
    return Parameter(name, schema, required, words, _kind(name, words, schema), is_array)


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the possibility of null: of ``anyOf`` and of lists of types the first one."""
    for key in ("anyOf", "oneOf"):
        options: Any = schema.get(key)
        for option in cast("list[Any]", options) if isinstance(options, list) else ():
            if isinstance(option, dict) and cast("dict[str, Any]", option).get("type") != "null":
                schema = schema | cast("dict[str, Any]", option)
                break
    kinds: Any = schema.get("type")
    if isinstance(kinds, list):
        schema = schema | {"type": next((each for each in cast("list[Any]", kinds) if each != "null"), "null")}
    return schema


def _kind(name: str, words: Sequence[str], schema: dict[str, Any]) -> Kind:
    if isinstance(schema.get("enum"), list):
        return "enum"
    match schema.get("type"):
        case "number" | "integer":
            return "number"
        case "boolean":
            return "flag"
        case "string":
            return _kind_of_text(name, words, schema)
        case _:
            return "other"


def _kind_of_text(name: str, words: Sequence[str], schema: dict[str, Any]) -> Kind:
    if (kind := _BY_FORMAT.get(str(schema.get("format")))) is not None:
        return kind
    if not TEXTS.isdisjoint(words) and "file" not in words:
        return "text"
    if (kind := kind_of_name(name)) is not None:
        return kind
    description = str(schema.get("description") or "")
    for kind, pattern in _BY_DESCRIPTION:
        if pattern.search(description):
            return kind
    return "text"
