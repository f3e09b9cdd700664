"""What is admitted to the catalog of what a server lists, as plain values. Used by ``server_lists`` alone.

A server may list anything: what can't be called, read or shown is left out and counted. Text stays as the server sent it but for
its length; it is cleaned where it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from desktop.catalog_entries import (
    CatalogEntry,
    PromptArgument,
    PromptEntry,
    ResourceEntry,
    TemplateEntry,
    ToolDefinition,
)
from desktop.host.server_config import ServerDefinition
from desktop.tool_names import fingerprint, native_name
from desktop.uris import is_template, is_uri
from desktop.visible_text import one_line

#: Characters.
_LONGEST_NAME = 512
_LONGEST_TITLE = 512
_LONGEST_DESCRIPTION = 8000
_LONGEST_MIME_TYPE = 256
_LARGEST_SCHEMA = 64 * 1024
"""Bytes of JSON."""
_MOST_ARGUMENTS = 100
_LARGEST_SIZE = 2**53
_ICON = re.compile(r"data:image/(?:png|jpeg|webp);base64,", re.IGNORECASE)
_LONGEST_ICON = 32 * 1024 * 4 // 3 + 40
_MOST_ICONS = 20


@dataclass(frozen=True, slots=True)
class Admitted:
    entries: tuple[CatalogEntry, ...]
    skipped: int
    """Entries that were left out: invalid, duplicate or unsupported."""


def admit_tools(definition: ServerDefinition, tools: Sequence[mcp_types.Tool]) -> Admitted:
    """The tools that can be offered: named, with a schema that is an object's and has at most 64 KiB, each name once."""
    names: set[str] = set()
    entries: list[CatalogEntry] = []
    for tool in tools:
        native = native_name(definition.name, tool.name)
        schema = _json_copy(tool.input_schema)
        if not 0 < len(tool.name) <= _LONGEST_NAME or native in names or not schema or schema.get("type") != "object":
            continue
        names.add(native)
        output_schema = _json_copy(tool.output_schema) if tool.output_schema is not None else None
        hints = tool.annotations
        annotations = {
            name: value
            for name, value in (
                ("readOnlyHint", hints and hints.read_only_hint),
                ("destructiveHint", hints and hints.destructive_hint),
                ("idempotentHint", hints and hints.idempotent_hint),
                ("openWorldHint", hints and hints.open_world_hint),
            )
            if isinstance(value, bool)
        }
        title = tool.title or (hints and hints.title) or ""
        whole = [tool.name, title, tool.description, schema, output_schema, annotations]
        entries.append(
            ToolDefinition(
                definition.name,
                tool.name,
                native,
                (tool.description or "")[:_LONGEST_DESCRIPTION],
                schema,
                fingerprint(whole),
                definition.identity,
                title[:_LONGEST_TITLE],
                output_schema,
                annotations,
                _icon(tool.icons),
            )
        )
    return Admitted(tuple(entries), len(tools) - len(entries))


def admit_resources(definition: ServerDefinition, resources: Sequence[mcp_types.Resource]) -> Admitted:
    """The resources that can be read: a valid URI, each once, and a name."""
    entries: dict[str, CatalogEntry] = {}
    for resource in resources:
        if not is_uri(resource.uri) or resource.uri in entries or not _is_name(resource.name):
            continue
        size = resource.size
        entries[resource.uri] = ResourceEntry(
            definition.name,
            resource.uri,
            resource.name,
            *_about(resource),
            size if size is not None and 0 <= size < _LARGEST_SIZE else None,
            _icon(resource.icons),
        )
    return Admitted(tuple(entries.values()), len(resources) - len(entries))


def admit_templates(definition: ServerDefinition, templates: Sequence[mcp_types.ResourceTemplate]) -> Admitted:
    """The templates that can be filled in: one that reads as such, each once, and a name."""
    entries: dict[str, CatalogEntry] = {}
    for template in templates:
        text = template.uri_template
        variables = _variables(text)
        if variables is None or text in entries or not _is_name(template.name):
            continue
        entries[text] = TemplateEntry(
            definition.name, text, template.name, variables, *_about(template), icon=_icon(template.icons)
        )
    return Admitted(tuple(entries.values()), len(templates) - len(entries))


def admit_prompts(definition: ServerDefinition, prompts: Sequence[mcp_types.Prompt]) -> Admitted:
    """The prompts that can be asked for: names on one line with nothing hidden, each once; at most 100 arguments."""
    entries: dict[str, CatalogEntry] = {}
    for prompt in prompts:
        arguments = prompt.arguments or []
        names = [prompt.name, *(argument.name for argument in arguments)]
        clean = all(_is_name(name) and one_line(name, _LONGEST_NAME) == name for name in names)
        distinct = len(set(names[1:])) == len(arguments) <= _MOST_ARGUMENTS
        if not clean or not distinct or prompt.name in entries:
            continue
        entries[prompt.name] = PromptEntry(
            definition.name,
            prompt.name,
            (prompt.title or "")[:_LONGEST_TITLE],
            (prompt.description or "")[:_LONGEST_DESCRIPTION],
            tuple(
                PromptArgument(each.name, (each.description or "")[:_LONGEST_DESCRIPTION], bool(each.required))
                for each in arguments
            ),
            _icon(prompt.icons),
        )
    return Admitted(tuple(entries.values()), len(prompts) - len(entries))


def _json_copy(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema as JSON carries it, or None when it doesn't, or when it is larger than 64 KiB."""
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        if len(text.encode()) > _LARGEST_SCHEMA:
            return None
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):  # ValueError: also what UTF-8 has no form for
        return None


def _icon(icons: Sequence[mcp_types.Icon] | None) -> str:
    """Base64 of the first icon that comes with the list itself and is within the limits; "" where there is none."""
    for icon in (icons or ())[:_MOST_ICONS]:
        found = _ICON.match(icon.src) if len(icon.src) <= _LONGEST_ICON else None
        if found is not None:
            return icon.src[found.end() :]
    return ""


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and bool(one_line(name, _LONGEST_NAME))


def _about(entry: mcp_types.Resource | mcp_types.ResourceTemplate) -> tuple[str, str, str]:
    """Title, description and MIME type."""
    mime_type = entry.mime_type or ""
    return (
        (entry.title or "")[:_LONGEST_TITLE],
        (entry.description or "")[:_LONGEST_DESCRIPTION],
        mime_type if len(mime_type) <= _LONGEST_MIME_TYPE else "",
    )


def _variables(template: str) -> tuple[str, ...] | None:
    """The template's variables, or None when it can't be filled in."""
    if not is_template(template):
        return None
    try:
        return tuple(dict.fromkeys(UriTemplate.parse(template).variable_names))
    except InvalidUriTemplate:
        return None
