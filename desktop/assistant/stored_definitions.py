"""A tool's definition as it is kept: in the history, with the call that activated it, and with a standing rule."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from desktop.catalog_entries import ToolDefinition
from desktop.tool_names import native_name

_TEXTS = ("server", "name", "native_name", "description", "fingerprint", "identity", "title")


def to_json(tool: ToolDefinition) -> dict[str, Any]:
    """All of it but the icon, which a list brings along again."""
    return {name: value for name, value in dataclasses.asdict(tool).items() if name != "icon"}


def from_json(content: Any) -> ToolDefinition:
    """The definition that `to_json` wrote. Raises ValueError for anything else: a file may have been changed."""
    if not isinstance(content, dict):
        raise ValueError("not a definition")
    known = {each.name for each in dataclasses.fields(ToolDefinition)} - {"icon"}
    values = {name: value for name, value in cast("dict[str, Any]", content).items() if name in known}
    if not all(isinstance(values.get(name), str) for name in _TEXTS) or not (
        isinstance(values.get("input_schema"), dict)
        and isinstance(values.get("output_schema"), dict | None)
        and isinstance(values.get("annotations"), dict)
        and values["native_name"] == native_name(values["server"], values["name"])
    ):
        raise ValueError("not a definition")
    return ToolDefinition(**values)
