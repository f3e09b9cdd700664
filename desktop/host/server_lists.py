"""What one server offers: listed on first need, kept until it changes, read again when it did. Used by the catalog alone.

Whoever needs a list while it is being read shares that reading, and may stop waiting without ending it. A list that changed
while it was read is read again.

Tools that were kept on disk (``tool_cache``) stand for the list until it is read from the server: to be found and activated,
not to be called. They are shown of a server that can't be reached, too. A server's notice of a change removes the file.
A lifetime that the server itself gives a list shortens ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mcp_types import Tool

from desktop.catalog_entries import CatalogEntry, Kind, ToolDefinition
from desktop.errors import AssistantError, Diagnostic
from desktop.host.admission import Admitted, admit_prompts, admit_resources, admit_templates, admit_tools
from desktop.host.connection import Connection
from desktop.host.list_reading import Keeping
from desktop.host.tool_cache import LIFETIME, ToolCache
from desktop.signals import Signal

KINDS: tuple[Kind, ...] = ("tool", "resource", "template", "prompt")
#: What a server's notice of a changed list is about.
_NOTICES: dict[str, tuple[Kind, ...]] = {
    "tools": ("tool",),
    "resources": ("resource", "template"),
    "prompts": ("prompt",),
}
#: Seconds, unless a notice comes before: of tools most servers say when they change, of the others few do.
_LIFETIMES: dict[Kind, float] = {"tool": LIFETIME, "resource": 300.0, "template": 300.0, "prompt": 300.0}
#: Seconds in which notices are gathered before lists are read again: some servers send them in floods.
_GATHERING = 0.2
#: Seconds between the beginnings of two such readings: some servers say that a list changed whenever it is read.
_RENEWAL_INTERVAL = 2.0
#: Seconds before a server that could not be connected is tried again by a search of all servers.
_RESPITE = 30.0
_ATTEMPTS = 3

Found = dict[Kind, "Diagnostic | None"]
"""The kinds that were to be listed, each with the reason when it could not be."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """How a list is known."""

    live: bool
    """Read from the server in this run and not said to have changed; False of tools that were kept on disk."""
    listed_at: float | None
    """When the server gave it, in seconds since the epoch; None when it is not known."""


class ServerLists:
    """The lists of one server.

    Attributes:
        connection: The server's.
        changed: Emitted soon after lists were read, dropped, or could not be read.
        not_kept: Why the tools could not be kept on disk, or None.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        contacting: asyncio.Semaphore,
        clock: Callable[[], float],
        cache: ToolCache | None = None,
    ) -> None:
        """`contacting` bounds how many servers are asked at the same time; `clock` tells seconds."""
        self.not_kept: Diagnostic | None = None
        self._cache = cache if connection.definition.kind != "builtin" else None
        self._loading: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._may_be_on_disk = True
        self._is_live = False
        self.connection = connection
        self.changed: Signal[()] = Signal()
        self._contacting = contacting
        self._clock = clock
        self._known: dict[Kind, Admitted] = {}
        self._tools: dict[str, ToolDefinition] = {}
        self._listed_at: dict[Kind, float] = {}
        self._generations = dict.fromkeys(KINDS, 0)
        self._listing: asyncio.Task[Found] | None = None
        self._to_renew: set[Kind] = set()
        self._renewing: asyncio.Task[object] | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._next_renewal = 0.0
        self._failed_at: float | None = None
        self._was_connected = False
        self._offered: Sequence[Tool] = ()
        connection.list_changed.connect(self._heard)
        connection.state_changed.connect(self._state_changed)

    def knows(self, kind: Kind) -> bool:
        return kind in self._known

    def entries(self, kind: Kind) -> tuple[CatalogEntry, ...]:
        """What is known of a list; the very same tuple as long as it didn't change."""
        return self._known[kind].entries if kind in self._known else ()

    def skipped(self, kind: Kind) -> int:
        """How many entries of a list were left out."""
        return self._known[kind].skipped if kind in self._known else 0

    def tool(self, name: str) -> ToolDefinition | None:
        return self._tools.get(name)

    def is_live(self, kind: Kind) -> bool:
        """Whether a list is known from the server itself, in this life of its connection."""
        return kind in self._known and (kind != "tool" or self._is_live)

    def listed_at(self, kind: Kind) -> float | None:
        """When a list was read from the server, as `clock` tells it; None when it is not known."""
        return self._listed_at[kind] if kind in self._known else None

    def respite(self) -> Diagnostic | None:
        """Why to leave the server alone for now: it could not be connected lately, or is about to be by itself."""
        state = self.connection.state
        if state.status != "failed" or state.failure is None:
            return None
        lately = self._failed_at is not None and self._clock() - self._failed_at < _RESPITE
        return state.failure.diagnostic if lately or state.retry_in is not None else None

    async def load(self) -> None:
        """Takes the tools from the disk unless they are known."""
        if self._cache is None or "tool" in self._known or not self._may_be_on_disk:
            return
        if self._loading is None:
            self._loading = asyncio.create_task(self._load(self._cache))
        await asyncio.wait({self._loading})

    async def ensure(self, kinds: Iterable[Kind], *, live: bool = False) -> dict[Kind, Diagnostic]:
        """Reads the lists that are not known or too old, or with `live` those that are not known from the server itself.
        Returns those that could not be read, and why."""
        kinds = tuple(kinds)
        failures: dict[Kind, Diagnostic] = {}
        if "tool" in kinds and not live:
            await self.load()
        missing: list[Kind] = [kind for kind in kinds if not self.is_fresh(kind) or (live and not self.is_live(kind))]
        while missing:
            listing = self._listing = self._listing or asyncio.create_task(self._list(tuple(missing)))
            await asyncio.wait({listing})
            if listing.cancelled():
                return {**failures, **dict.fromkeys(missing, self._diagnostic("cancelled"))}
            found = listing.result()
            failures.update({kind: why for kind in missing if (why := found.get(kind)) is not None})
            missing = [kind for kind in missing if kind not in found]
        return failures

    def drop(self, kinds: Iterable[Kind], *, on_disk: bool = True) -> None:
        """Forgets lists, also those that are being read. What was known is soon read again while the server is connected."""
        if on_disk and "tool" in kinds:
            self.forget_file()
        for kind in kinds:
            self._generations[kind] += 1
            if self._known.pop(kind, None) is not None:
                self._to_renew.add(kind)
            if kind == "tool":
                self._tools = {}
        if self._gathering is None:
            loop = asyncio.get_running_loop()
            self._gathering = loop.call_at(max(loop.time() + _GATHERING, self._next_renewal), self._renew)

    def forget_file(self) -> None:
        """Has the kept tools removed, those that are being written too."""
        self._generations["tool"] += 1
        self._loading = None
        if self._cache is not None and self._may_be_on_disk:
            self._may_be_on_disk = False
            asyncio.get_running_loop().run_in_executor(None, self._cache.remove, self.connection.definition)

    def close(self) -> None:
        """Ends everything; whoever waits for a list gets ``cancelled``."""
        self.connection.list_changed.disconnect(self._heard)
        self.connection.state_changed.disconnect(self._state_changed)
        for each in (self._listing, self._renewing, self._gathering, self._loading, self._keeping):
            if each is not None:
                each.cancel()

    def is_fresh(self, kind: Kind) -> bool:
        """Whether a list is known and not too old. Tools from the disk are as long as the server is not connected."""
        if kind not in self._known or (not self.is_live(kind) and self.connection.state.status == "connected"):
            return False
        given = self.connection.keeping.get(kind, Keeping()).lifetime if self.is_live(kind) else None
        lifetime = _LIFETIMES[kind] if given is None else min(given, _LIFETIMES[kind])
        return self._clock() - self._listed_at[kind] < lifetime

    async def _list(self, kinds: tuple[Kind, ...]) -> Found:
        try:
            if self.connection.state.status == "connected":
                found = await asyncio.gather(*map(self._list_one, kinds))
            else:
                async with self._contacting:
                    found = await asyncio.gather(*map(self._list_one, kinds))
        finally:
            self._listing = None
        # Soon and not now: what a watcher raises must reach the loop's hook, not whoever waits for the list.
        asyncio.get_running_loop().call_soon(self.changed.emit)
        return dict(zip(kinds, found, strict=True))

    async def _list_one(self, kind: Kind) -> Diagnostic | None:
        for attempt in range(_ATTEMPTS):
            generation = self._generations[kind]
            try:
                admitted = await self._read(kind)
            except AssistantError as error:
                return error.diagnostic
            is_current = generation == self._generations[kind]
            if is_current or attempt == _ATTEMPTS - 1:
                # A server that never stops saying that its list changed: what it said last is used, and soon read again.
                self._adopt(kind, admitted, age=0.0)
                if is_current:
                    self._to_renew.discard(kind)
                if kind == "tool":
                    self._is_live = True
                    self._keep(generation)
                break
        return None

    async def _read(self, kind: Kind) -> Admitted:
        """Lists entries of a kind and converts them, in a thread: there may be thousands."""
        connection, definition = self.connection, self.connection.definition
        match kind:
            case "tool":
                self._offered = await connection.list_tools()
                return await asyncio.to_thread(admit_tools, definition, self._offered)
            case "resource":
                return await asyncio.to_thread(admit_resources, definition, await connection.list_resources())
            case "template":
                return await asyncio.to_thread(admit_templates, definition, await connection.list_resource_templates())
            case "prompt":
                return await asyncio.to_thread(admit_prompts, definition, await connection.list_prompts())

    def _adopt(self, kind: Kind, admitted: Admitted, *, age: float) -> None:
        self._known[kind] = admitted
        self._listed_at[kind] = self._clock() - age
        if kind == "tool":
            self._tools = {tool.name: tool for tool in admitted.entries if isinstance(tool, ToolDefinition)}

    async def _load(self, cache: ToolCache) -> None:
        generation = self._generations["tool"]
        found = await asyncio.to_thread(cache.read, self.connection.definition)
        if found is not None and generation == self._generations["tool"] and "tool" not in self._known:
            admitted, age = found
            self._is_live = False
            self._adopt("tool", admitted, age=age)

    def _keep(self, generation: int) -> None:
        """Has the tools that were just listed written, in the order of the listings, where they are whole."""
        offered, self._offered = self._offered, ()
        if self._cache is None:
            return
        if not self.connection.keeping.get("tool", Keeping()).on_disk:
            self.forget_file()
            return
        self._may_be_on_disk = True
        self._keeping = asyncio.create_task(self._write(self._cache, offered, generation))

    async def _write(self, cache: ToolCache, offered: Sequence[Tool], generation: int) -> None:
        def is_current() -> bool:
            return generation == self._generations["tool"]

        try:
            lifetime = self.connection.keeping.get("tool", Keeping()).lifetime
            await asyncio.to_thread(cache.write, self.connection.definition, offered, lifetime, is_current)
            self.not_kept = None
        except AssistantError as error:
            self.not_kept = error.diagnostic

    def _heard(self, which: str) -> None:
        self.drop(_NOTICES[which])

    def _state_changed(self) -> None:
        status = self.connection.state.status
        if status != "failed":
            self._failed_at = None
        elif self._failed_at is None:
            self._failed_at = self._clock()
        if status != "connected" and self._was_connected:
            # What it offers when it comes back is to be seen; what it offered may still be found.
            self.drop(KINDS, on_disk=False)
            self._loading = None
        self._was_connected = status == "connected"

    def _renew(self) -> None:
        self._gathering = None
        if self._to_renew and self.connection.state.status == "connected":
            self._next_renewal = asyncio.get_running_loop().time() + _RENEWAL_INTERVAL
            self._renewing = asyncio.create_task(self.ensure(tuple(self._to_renew)))
        else:
            self.changed.emit()

    def _diagnostic(self, code: str, **values: str) -> Diagnostic:
        return Diagnostic(code, "search", self.connection.definition.name, dict(values))
