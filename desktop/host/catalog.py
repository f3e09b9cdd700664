"""The catalog: what all enabled servers offer, searched, looked up, known to be current. Used by the assistant and the window.

Nothing is listed before somebody needs it. What a server offers is kept in memory (``server_lists``), its tools on disk as well
(``tool_cache``); the ranking is ``catalog_search``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, cast

from desktop.catalog_entries import (
    CatalogEntry,
    Kind,
    KindFilter,
    SearchResult,
    ServerEntry,
    ToolDefinition,
    ToolLookup,
)
from desktop.errors import AssistantError, Diagnostic
from desktop.host.catalog_search import CatalogSearch, near_names
from desktop.host.connection import Connection
from desktop.host.contacting import contact
from desktop.host.host import Host
from desktop.host.meanings import Meanings
from desktop.host.server_lists import KINDS, Freshness, ServerLists
from desktop.host.tool_cache import ToolCache
from desktop.signals import Signal
from desktop.tool_names import may_name_tool_of
from desktop.uris import is_uri

_KINDS_OF: dict[KindFilter, tuple[Kind, ...]] = {
    "all": KINDS,
    "tools": ("tool",),
    "resources": ("resource", "template"),
    "prompts": ("prompt",),
}
_MOST_CANDIDATES = 50
#: Servers that are asked at the same time.
_AT_ONCE = 4
#: Seconds a search of all servers waits for those that are slow; they go on being connected.
_PATIENCE = 20.0

Answer = TypeVar("Answer")
#: A part of the catalog to be indexed anew: kind, server, entries, and what the server calls itself.
_Change = tuple[Kind, str, tuple[CatalogEntry, ...], str]


class ServerCatalog:
    """What the enabled servers of a host offer.

    Attributes:
        changed: Emitted with a server's name soon after what is known of it changed, or it was added or removed.
    """

    def __init__(
        self,
        host: Host,
        *,
        cache: ToolCache | None = None,
        meanings: Meanings | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience: float = _PATIENCE,
    ) -> None:
        """Without a `cache` no tools are kept on disk. `meanings` are the catalog's own from now on. `clock` tells seconds;
        `patience` is how many a search of all servers waits for slow ones."""
        self.changed: Signal[str] = Signal()
        self._host = host
        self._cache = cache
        self._clock = clock
        self._patience = patience
        self._contacting = asyncio.Semaphore(_AT_ONCE)
        self._lists: dict[str, ServerLists] = {}
        self._meanings = meanings
        self._search = CatalogSearch(meanings)
        self._indexed: dict[tuple[Kind, str], tuple[CatalogEntry, ...]] = {}
        # One thread: what is indexed and ranked keeps its order, and is never done twice at a time.
        self._thread = ThreadPoolExecutor(1)
        host.servers_changed.connect(self._adopt_servers)
        self._adopt_servers()

    def servers(self) -> Sequence[ServerEntry]:
        """The enabled servers in sorted order, the built-in one included."""
        return [
            ServerEntry(name, lists.connection.definition.description) for name, lists in sorted(self._lists.items())
        ]

    def entries(self) -> list[CatalogEntry]:
        """What is known without asking a server."""
        return [entry for lists in self._lists.values() for kind in KINDS for entry in lists.entries(kind)]

    async def load_kept(self) -> None:
        """Takes from the disk what was kept of the tools of servers that were not listed yet: then it is known, too."""
        await asyncio.gather(*(lists.load() for lists in self._lists.values()))

    async def tools(self, name: str) -> list[ToolDefinition]:
        """A server's tools. Raises AssistantError when they can't be listed."""
        return cast("list[ToolDefinition]", await self.listed(name, "tool"))

    async def listed(self, name: str, kind: Kind, *, live: bool = False) -> list[CatalogEntry]:
        """What a server offers of a kind; with `live`, as its present connection said, which is listed once for that.

        Raises AssistantError: ``server_unknown``, ``server_disabled``, why it isn't listed.
        """
        lists = self._lists_of(name)
        for diagnostic in (await lists.ensure([kind], live=live)).values():
            raise AssistantError.of(diagnostic)
        return list(lists.entries(kind))

    def freshness(self, name: str, kind: Kind) -> Freshness:
        """Since when a list is known, and from where; of a server that is unknown or disabled nothing is."""
        lists = self._lists.get(name)
        listed_at = lists.listed_at(kind) if lists else None
        if lists is None or listed_at is None:
            return Freshness(live=False, listed_at=None)
        return Freshness(lists.is_live(kind), time.time() - (self._clock() - listed_at))

    async def refresh(self, name: str) -> None:
        """Lists everything a server offers anew. Raises AssistantError like `listed`; what could be listed is kept."""
        lists = self._lists_of(name)
        lists.drop(KINDS)
        for diagnostic in (await lists.ensure(KINDS)).values():
            raise AssistantError.of(diagnostic)

    async def search(
        self, query: str, *, kind: KindFilter = "all", server: str | None = None, limit: int = 5
    ) -> SearchResult:
        """The best entries for a query, and what could not be searched.

        A query that is one word and begins as a server's identifiers do contacts that server alone. Servers that are slow,
        failed lately, need consent or are started by hand are named in ``not_searched``, unless they are known already.
        Tools that were kept on disk for less than a day are: they need no connection and are not named.
        What of the configuration could not be used is a warning, since a server may be missing for it.
        Raises AssistantError ``server_unknown`` and ``server_disabled``.
        """
        kinds = _KINDS_OF[kind]
        names = self._to_contact(query.strip(), kind, server)
        patience = None if server is not None else self._patience
        not_searched = await contact(lambda name: self._lists.get(name), names, kinds, patience=patience)
        found = await self.search_known(query, kind=kind, server=server, limit=limit)
        warnings = list(map(str, self._host.faults)) if server is None else []
        for lists in filter(None, map(self._lists.get, names)):
            warnings += map(str, lists.connection.state.warnings)
            if lists.not_kept is not None:
                warnings.append(f"{lists.connection.definition.name}: its tools are not kept. {lists.not_kept}")
            warnings += [
                f"{lists.connection.definition.name}: {skipped} {each}s were left out, being invalid, duplicate or unsupported."
                for each in kinds
                if (skipped := lists.skipped(each))
            ]
        return dataclasses.replace(found, not_searched=not_searched, warnings=tuple(warnings))

    async def search_known(
        self, query: str, *, kind: KindFilter = "all", server: str | None = None, limit: int = 5
    ) -> SearchResult:
        """The best entries of what is known without asking a server: while somebody types."""
        limit = min(max(limit, 1), _MOST_CANDIDATES)
        kinds = None if kind == "all" else _KINDS_OF[kind]
        # Shielded: who stops waiting must not keep what changed from being indexed.
        return await asyncio.shield(self._run(self._rank, self._changes(), query, kinds, server, limit))

    async def look_up(self, identifiers: Sequence[str]) -> list[ToolLookup]:
        """The tools that identifiers (``server.tool`` or native names) stand for, exactly; contacts the servers they name, unless
        all they name is kept on disk."""
        named = {
            each: [name for name in self._host.connections if may_name_tool_of(name, each)] for each in identifiers
        }
        names = sorted({name for found in named.values() for name in found if name in self._lists})
        why_not = await self._list_tools(names, live=False)
        meant = self._meant(identifiers, names)
        # A tool may be newer than what is kept on disk.
        unsure = [name for each in identifiers if not meant[each] for name in named[each] if name in names]
        kept = {name for name in unsure if name in self._lists and not self._lists[name].is_live("tool")}
        if unsure := sorted(kept - why_not.keys()):
            why_not |= await self._list_tools(unsure, live=True)
            meant = self._meant(identifiers, names)
        return [await self._looked_up(each, meant[each], named[each], why_not) for each in identifiers]

    def current(self, tool: ToolDefinition) -> Diagnostic | None:
        """Why a tool must not be called any more, without asking its server; a list that is not known refuses nothing."""
        connection = self._host.connections.get(tool.server)
        if connection is None:
            return Diagnostic("server_unknown", "call", tool.server)
        if connection.definition.disabled:
            return Diagnostic("server_disabled", "call", tool.server)
        lists = self._lists[tool.server]
        live = lists.tool(tool.name)
        same = live is not None and live.fingerprint == tool.fingerprint if lists.is_live("tool") else True
        if same and connection.definition.identity == tool.identity and connection.definition.offers(tool.name):
            return None
        return Diagnostic("tool_changed", "call", tool.server)

    async def close(self) -> None:
        """Stops listing; whoever waits for a list gets ``cancelled``. The catalog can't be used any more."""
        self._host.servers_changed.disconnect(self._adopt_servers)
        for lists in self._lists.values():
            lists.close()
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._meanings is not None:
            await asyncio.to_thread(self._meanings.close)

    def _adopt_servers(self) -> None:
        """Follows the host: a server that was removed, disabled or defined anew is forgotten with what it offered."""
        before, self._lists = self._lists, {}
        for name, connection in self._host.connections.items():
            if not connection.definition.disabled:
                known = before.get(name)
                same = known is not None and known.connection is connection
                self._lists[name] = known if known is not None and same else self._lists_for(name, connection)
        for name in sorted(before.keys() | self._lists.keys()):
            old = before.get(name)
            if old is self._lists.get(name):
                continue
            if old is not None:
                new = self._host.connections.get(name)
                if new is None or new.definition.identity != old.connection.definition.identity:
                    old.forget_file()
                old.close()
            asyncio.get_running_loop().call_soon(self.changed.emit, name)

    def _lists_for(self, name: str, connection: Connection) -> ServerLists:
        lists = ServerLists(connection, contacting=self._contacting, clock=self._clock, cache=self._cache)
        lists.changed.connect(partial(self.changed.emit, name))
        return lists

    def _lists_of(self, name: str) -> ServerLists:
        self._host.connection(name)
        return self._lists[name]

    def _to_contact(self, query: str, kind: KindFilter, server: str | None) -> list[str]:
        """The servers that may answer a query, sorted."""
        if server is None and kind != "resources" and len(query.split()) == 1 and not is_uri(query):
            named = (name for name in self._host.connections if may_name_tool_of(name.casefold(), query.casefold()))
            server = next(named, None)
        if server is None:
            return sorted(self._lists)
        self._host.connection(server)
        return [server]

    async def _list_tools(self, names: Sequence[str], *, live: bool) -> dict[str, Diagnostic]:
        """Has servers' tools listed where need be. Returns why those could not be that are missing."""
        failures = await asyncio.gather(*(self._lists[name].ensure(["tool"], live=live) for name in names))
        return {name: failed["tool"] for name, failed in zip(names, failures, strict=True) if failed}

    def _meant(self, identifiers: Iterable[str], names: Iterable[str]) -> dict[str, list[ToolDefinition]]:
        """The known tools of servers that identifiers stand for."""
        meant: dict[str, list[ToolDefinition]] = {each: [] for each in identifiers}
        for tool in self._tools(names):
            for identifier in meant.keys() & {tool.identifier, tool.native_name}:
                meant[identifier].append(tool)
        return meant

    async def _looked_up(
        self, identifier: str, meant: Sequence[ToolDefinition], named: Sequence[str], why_not: Mapping[str, Diagnostic]
    ) -> ToolLookup:
        if len(meant) == 1:
            return ToolLookup(identifier, meant[0])
        for name in named:
            if name in why_not:
                return ToolLookup(identifier, diagnostic=why_not[name])
            if name not in self._lists:
                return ToolLookup(identifier, diagnostic=Diagnostic("server_disabled", "activate", name))
        near = await self._run(_near, identifier, self._tools(named) or self._tools(self._lists))
        return ToolLookup(identifier, diagnostic=Diagnostic("tool_unknown", "activate"), near=near)

    def _tools(self, names: Iterable[str]) -> list[ToolDefinition]:
        """The known tools of servers."""
        entries = [entry for name in names if name in self._lists for entry in self._lists[name].entries("tool")]
        return cast("list[ToolDefinition]", entries)

    def _changes(self) -> list[_Change]:
        """What changed since it was indexed; whoever takes it has it indexed."""
        now: dict[tuple[Kind, str], tuple[CatalogEntry, ...]] = {
            (kind, name): lists.entries(kind)
            for name, lists in self._lists.items()
            for kind in KINDS
            if lists.knows(kind)
        }
        before, self._indexed = self._indexed, now
        return [
            (kind, name, now.get((kind, name), ()), self._title(name))
            for kind, name in {**before, **now}
            if now.get((kind, name)) is not before.get((kind, name))
        ]

    def _run(self, work: Callable[..., Answer], *arguments: Any) -> asyncio.Future[Answer]:
        """Does work in the catalog's thread, in the order of the calls."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def _title(self, name: str) -> str:
        lists = self._lists.get(name)
        return lists.connection.state.title if lists else ""

    def _rank(
        self, changes: Sequence[_Change], query: str, kinds: Sequence[Kind] | None, server: str | None, limit: int
    ) -> SearchResult:
        for kind, name, entries, title in changes:
            self._search.replace(kind, name, entries, title=title)
        ranked = self._search.rank(query, kinds=kinds, server=server, limit=limit)
        return SearchResult(
            tuple(each.entry for each in ranked),
            tuple(each.score for each in ranked),
            tuple(each.matched for each in ranked),
        )


def _near(identifier: str, tools: Iterable[ToolDefinition]) -> tuple[str, ...]:
    """Identifiers of tools whose identifier, native name or own name is nearly that."""
    return near_names(
        identifier,
        [(name, tool.identifier) for tool in tools for name in (tool.identifier, tool.native_name, tool.name)],
    )
