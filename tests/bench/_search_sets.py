"""Catalogs with labelled queries for ``search.py``: those of a data folder, and a small one made here."""

from __future__ import annotations

import json
import sys
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
    yield "own", own_catalog(), [Query(text, [[key] for key in right]) for text, *right in _QUERIES]
    for file in sorted(folder.glob("*_queries.jsonl")) if folder else ():
        name = file.name.removesuffix("_queries.jsonl")
        catalogs = [folder / f"{stem}_catalog.jsonl" for stem in (name, name.partition("_")[0])]
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
        tool(server, name, text, words.split()) for server, tools in _SERVERS.items() for name, text, words in tools
    ]
    return Catalog(entries, [f"{entry.server}.{entry.name}" for entry in entries], {})


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


_SERVERS: dict[str, list[tuple[str, str, str]]] = {
    "ledger": [
        ("list_invoices", "Lists invoices of a customer, newest first.", "customer status since"),
        ("create_invoice", "Makes a draft invoice.", "customer lines currency"),
        ("send_reminder", "Reminds a customer of an invoice that is overdue.", "invoice text"),
        ("book_payment", "Records money that came in against an invoice.", "invoice amount date"),
    ],
    "forge": [
        ("open_merge_request", "Proposes the changes of a branch for review.", "repo source target title"),
        ("list_branches", "Names the branches of a repo.", "repo"),
        ("readFile", "Returns a file of a repo as it is on a branch.", "repo path branch"),
        ("blameLine", "Tells who changed a line last, and when.", "repo path line"),
    ],
    "mail": [
        ("search-messages", "Finds messages by words, sender or date.", "text from before after"),
        ("send-message", "Sends a message, with files if there are any.", "to subject body attachments"),
        ("move-message", "Puts a message into another folder.", "message folder"),
        ("make-rule", "Sorts what comes in by itself from now on.", "condition folder"),
    ],
    "rooms": [
        ("find_free_room", "Finds a meeting room that nobody has booked.", "start end seats"),
        ("book_room", "Books a meeting room.", "room start end"),
        ("cancel_booking", "Gives a room free again.", "booking"),
    ],
    "weather": [
        ("get_forecast", "Temperature, wind and rain of the next days.", "place days"),
        ("get_alerts", "Storm and flood warnings.", "region"),
    ],
    "字典": [
        ("查词", "查询汉语词语的意思和读音。", "词"),
        ("翻译", "把一段文字翻译成另一种语言。", "文字 目标语言"),
        ("単語検索", "日本語の単語の意味を調べます。", "単語"),
    ],
    "shouty": [
        ("do_it", "invoice invoices list lists customer mail message send file room book forecast " * 20, ""),
    ],
}
_QUERIES: list[tuple[str, ...]] = [
    ("list invoices", "ledger.list_invoices"),
    ("overdue invoice reminder", "ledger.send_reminder"),
    ("a customer has paid", "ledger.book_payment"),
    ("make an invoice", "ledger.create_invoice"),
    ("open a pull request for my branch", "forge.open_merge_request"),
    ("branches of the repository", "forge.list_branches"),
    ("read a file", "forge.readFile"),
    ("who wrote this line", "forge.blameLine"),
    ("find mails from Anna", "mail.search-messages"),
    ("send a mail with an attachment", "mail.send-message"),
    ("filter incoming mail automatically", "mail.make-rule"),
    ("move message to folder", "mail.move-message"),
    ("free meeting room tomorrow", "rooms.find_free_room"),
    ("book room", "rooms.book_room"),
    ("cancel my reservation", "rooms.cancel_booking"),
    ("will it rain", "weather.get_forecast"),
    ("storm warning", "weather.get_alerts"),
    ("forcast", "weather.get_forecast"),
    ("searchMessages", "mail.search-messages"),
    ("READ_FILE", "forge.readFile"),
    ("list inv", "ledger.list_invoices"),
    ("词语的意思", "字典.查词"),
    ("翻译文字", "字典.翻译"),
    ("単語の意味", "字典.単語検索"),
]
