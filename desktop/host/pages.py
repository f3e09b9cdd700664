"""Lists that a server gives page by page, read whole but guarded against those that never end. Used by the connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from desktop.errors import Diagnostic

_MOST_PAGES = 100
_MOST_ENTRIES = 10_000

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Listing(Generic[Entry]):
    entries: list[Entry]
    """In the server's order, each once."""
    warning: Diagnostic | None = None
    """Why entries may be missing, or None."""


async def all_pages(
    fetch: Callable[[str | None], Awaitable[tuple[Sequence[Entry], str | None]]],
    key: Callable[[Entry], str],
    server: str,
) -> Listing[Entry]:
    """Follows the cursors from `fetch` (page, next cursor) to the last page; `key` names an entry.

    It ends early, with a warning, at a cursor or a whole page that comes again, at 100 pages and at 10,000 entries. What
    `fetch` raises goes through.
    """
    entries: dict[str, Entry] = {}
    seen_cursors: set[str] = set()
    seen_pages: set[tuple[str, ...]] = set()
    cursor: str | None = None

    def listing(reason: str | None) -> Listing[Entry]:
        warning = None if reason is None else Diagnostic("list_incomplete", "connect", server, {"reason": reason})
        return Listing(list(entries.values()), warning)

    for _ in range(_MOST_PAGES):
        page, cursor = await fetch(cursor)
        keys = tuple(key(entry) for entry in page)
        for name, entry in zip(keys, page, strict=True):
            if name not in entries and len(entries) == _MOST_ENTRIES:
                return listing(f"it has more than {_MOST_ENTRIES} entries")
            entries.setdefault(name, entry)
        if cursor is None:  # an empty cursor is one like any other
            return listing(None)
        if cursor in seen_cursors or (keys and keys in seen_pages):
            return listing("its pages repeat")
        seen_cursors.add(cursor)
        seen_pages.add(keys)
    return listing(f"it has more than {_MOST_PAGES} pages")
