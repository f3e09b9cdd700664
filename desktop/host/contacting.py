"""Having the lists of several servers read for one search, and telling of those that could not be. Used by the catalog alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from desktop.catalog_entries import Kind
from desktop.errors import Diagnostic
from desktop.host.server_lists import ServerLists


async def contact(
    lists_of: Callable[[str], ServerLists | None],
    names: Sequence[str],
    kinds: Sequence[Kind],
    *,
    patience: float | None,
) -> tuple[tuple[Diagnostic, tuple[str, ...]], ...]:
    """Has servers' lists read. Returns what could not be: a diagnostic for each server and code, with the catalogs it concerns.

    `lists_of` gives a server's lists, None once it is removed. Whoever is not through after `patience` seconds is ``busy`` and
    goes on; with None all are waited for, those that failed lately too.
    """
    faults: dict[tuple[str, str], tuple[Diagnostic, list[str]]] = {}

    def add(name: str, kind: Kind, diagnostic: Diagnostic) -> None:
        faults.setdefault((name, diagnostic.code), (diagnostic, []))[1].append(f"{kind}s")

    if "tool" in kinds:
        await asyncio.gather(*(lists.load() for name in names if (lists := lists_of(name)) is not None))
    waiting: dict[str, asyncio.Task[dict[Kind, Diagnostic]]] = {}
    for name in names:
        lists = lists_of(name)
        if lists is None:
            continue
        respite = None if patience is None else lists.respite()
        if respite is None:
            waiting[name] = asyncio.create_task(lists.ensure(kinds))
            continue
        for kind in kinds:
            if not lists.is_fresh(kind):
                add(name, kind, respite)
    try:
        if waiting:
            await asyncio.wait(waiting.values(), timeout=patience)
    finally:
        for task in waiting.values():
            task.cancel()
    for name, task in waiting.items():
        lists = lists_of(name)
        failures = task.result() if task.done() else {}
        for kind in kinds:
            if kind in failures:
                add(name, kind, failures[kind])
            elif not task.done() and lists is not None and not lists.knows(kind):
                add(name, kind, Diagnostic("busy", "search", name))
    return tuple((diagnostic, tuple(catalogs)) for diagnostic, catalogs in faults.values())
