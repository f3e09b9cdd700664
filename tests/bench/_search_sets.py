"""Catalogs with labelled queries for ``search.py``: those of a data folder, and the project's own, ``own_set.toml``."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.catalog_entries import (
    CatalogEntry,
    PromptArgument,
    PromptEntry,
    ResourceEntry,
    TemplateEntry,
    ToolDefinition,
)
from desktop.tool_names import native_name

_OWN = Path(__file__).with_name("own_set.toml")
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@dataclass(frozen=True)
class Catalog:
    entries: list[CatalogEntry]
    keys: list[str]
    """What queries call the entries, one each."""
    titles: Mapping[str, str]
    """What servers call themselves, by their names."""


@dataclass(frozen=True)
class Query:
    text: str
    needs: list[list[str]]
    """Each is to be met by one of its keys."""


def sets(folder: Path | None) -> Iterator[tuple[str, Catalog, list[Query]]]:
    """The sets of queries by name, each with its catalog."""
    for kind, some in _own()["queries"].items():
        yield f"own {kind}", own_catalog(), [Query(text, [right.split("|")]) for text, right in some.items()]
    for file in sorted(folder.glob("*_queries.jsonl")) if folder else ():
        name = file.name.removesuffix("_queries.jsonl")
        catalogs = [file.with_name(f"{stem}_catalog.jsonl") for stem in (name, name.partition("_")[0])]
        catalog = next((each for each in catalogs if each.exists()), None)
        if catalog is None:
            print(f"{file.name} has no catalog beside it; it is left out.", file=sys.stderr)
            continue
        rows = _rows(file)
        loaded = load(catalog)
        for kind in sorted({str(row.get("type", "")) for row in rows}):
            chosen = [row for row in rows if str(row.get("type", "")) == kind]
            queries = [Query(row["query"], row.get("needs") or [row["relevant"]]) for row in chosen]
            yield f"{name} {kind}".strip() if "desk" in name else name, loaded, queries


def load(file: Path) -> Catalog:
    rows = _rows(file)
    keys = [f"{row['server']}#{row['id']}" if "id" in row else f"{row['server']}.{row['name']}" for row in rows]
    return Catalog([_entry(row) for row in rows], keys, {row["server"]: row.get("server_title") or "" for row in rows})


def own_catalog() -> Catalog:
    entries: list[CatalogEntry] = [
        tool(server, name, text, words.split())
        for server, tools in _own()["tools"].items()
        for name, (text, words) in tools.items()
    ]
    return Catalog(entries, [f"{entry.server}.{entry.name}" for entry in entries], {})


def _own() -> dict[str, dict[str, Any]]:
    return tomllib.loads(_OWN.read_text(encoding="utf-8"))


def tool(server: str, name: str, description: str, parameters: Sequence[str]) -> ToolDefinition:
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in parameters}}
    return ToolDefinition(server, name, native_name(server, name), description, schema, "", "")


def _rows(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _entry(row: Mapping[str, Any]) -> CatalogEntry:
    server, name, title, text = row["server"], row["name"], row.get("title") or "", row.get("description") or ""
    parameters = [(each[0], each[1] or "") for each in row.get("params") or ()]
    match row.get("kind", "tool"):
        case "resource":
            return ResourceEntry(server, row["uri"], name, title, text)
        case "template" | "resource_template":
            return TemplateEntry(server, row["uri"], name, (), title, text)
        case "prompt":
            return PromptEntry(server, name, title, text, tuple(PromptArgument(*each) for each in parameters))
    properties = {each or f"p{place}": {"description": said} for place, (each, said) in enumerate(parameters)}
    schema = row.get("inputSchema") or {"type": "object", "properties": properties}
    return ToolDefinition(server, name, native_name(server, name), text, schema, "", "", title)
