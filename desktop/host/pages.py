"""Lists that a server gives page by page, read whole but guarded against those that never end. Used by the connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

_MOST_PAGES = 100
_MOST_ENTRIES = 10_000

Entry = TypeVar("Entry")


async def all_pages(
    fetch: Callable[[str | None], Awaitable[tuple[Sequence[Entry], str | None]]], key: Callable[[Entry], str]
) -> tuple[list[Entry], str | None]:
    """Follows the cursors from `fetch` (page, next cursor) to the last page.

    Returns the entries, each once by its `key`, and why some may be missing, or None: a cursor or a whole page that comes again
    ends the list, and so do 100 pages and 10,000 entries. What `fetch` raises goes through.
    """
    entries: dict[str, Entry] = {}
    seen_cursors: set[str] = set()
    seen_pages: set[tuple[str, ...]] = set()
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page, cursor = await fetch(cursor)
        keys = tuple(key(entry) for entry in page)
        for name, entry in zip(keys, page, strict=True):
            if name not in entries and len(entries) == _MOST_ENTRIES:
                return list(entries.values()), f"it has more than {_MOST_ENTRIES} entries"
            entries.setdefault(name, entry)
        if cursor is None:  # an empty cursor is one like any other
            return list(entries.values()), None
        if cursor in seen_cursors or (keys and keys in seen_pages):
            return list(entries.values()), "its pages repeat"
        seen_cursors.add(cursor)
        seen_pages.add(keys)
    return list(entries.values()), f"it has more than {_MOST_PAGES} pages"
