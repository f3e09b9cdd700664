"""What the person watches, over all servers: since when, what changed, what they have not seen yet. Used by the window.

A watch is the person's; the subscription behind it is the connection's (``subscriptions.py``) and is made again whenever the
server comes back. A kept watch is remembered in a private file and made again at the next start. Nothing is read because of a
change: that is the person's step.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from desktop.errors import AssistantError, Diagnostic, os_reason
from desktop.host.connection import Connection
from desktop.host.host import Host
from desktop.host.subscriptions import State
from desktop.paths import write_private
from desktop.signals import Signal
from desktop.uris import is_uri

_MOST_KEPT = 500


@dataclass(slots=True, eq=False)
class Watch:
    server: str
    uri: str
    title: str
    """The server's name for the resource: untrusted."""
    since: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    kept: bool = False
    """It is made again at the next start."""
    changed_at: float | None = None
    """When the server last said that it changed."""
    unseen: bool = False
    """It changed, or may have changed, since the person looked."""
    missed: bool = False
    """Changes may have been missed, since the server was away."""
    state: State = "pending"
    fault: Diagnostic | None = None
    """Why it is refused, or can't be watched now."""


class Watches:
    """Attributes:
    changed: Emitted after anything about any watch changed.
    noticed: Emitted with a watch whose resource changed; changes that come at once are one.
    """

    def __init__(self, host: Host, file: Path) -> None:
        self.changed: Signal[()] = Signal()
        self.noticed: Signal[Watch] = Signal()
        self._host = host
        self._file = file
        self._watches: list[Watch] = []
        self._heard: dict[str, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        host.servers_changed.connect(self._follow_servers)
        host.state_changed.connect(self._state_changed)
        self._follow_servers()

    @property
    def all(self) -> list[Watch]:
        """Oldest first."""
        return list(self._watches)

    def of(self, server: str, uri: str) -> Watch | None:
        return next((each for each in self._watches if (each.server, each.uri) == (server, uri)), None)

    async def start(self) -> None:
        """Makes the kept watches again, in the background: their servers are connected for it where they may be."""
        for server, uri, title in await asyncio.to_thread(_read, self._file):
            if self.of(server, uri) is None:
                watch = Watch(server, uri, title, kept=True, unseen=True, missed=True)
                self._watches.append(watch)
                self._begin(watch)
        if self._watches:
            self.changed.emit()

    async def add(self, server: str, uri: str, title: str) -> Watch:
        """Watches a resource; one that is watched already is returned.

        Raises like `Subscriptions.add`, and then it is not watched.
        """
        if (present := self.of(server, uri)) is not None:
            return present
        subscriptions = self._host.connection(server).subscriptions
        watch = Watch(server, uri, title)
        self._watches.append(watch)  # before it is asked for: an early notice counts
        self.changed.emit()
        try:
            await subscriptions.add(uri)
        except BaseException:
            self._watches.remove(watch)
            self.changed.emit()
            raise
        watch.state = "watching"
        self.changed.emit()
        return watch

    async def remove(self, watch: Watch) -> None:
        """Raises AssistantError ``storage_failed`` where a kept one can't be forgotten; it is watched no more all the same."""
        if watch not in self._watches:
            return
        self._watches.remove(watch)
        self.changed.emit()
        if (connection := self._host.connections.get(watch.server)) is not None:
            await connection.subscriptions.remove(watch.uri)
        if watch.kept:
            await self._write()

    async def keep(self, watch: Watch, kept: bool) -> None:
        """Raises AssistantError ``storage_failed``; nothing has changed then."""
        before, watch.kept = watch.kept, kept
        try:
            await self._write()
        except AssistantError:
            watch.kept = before
            raise
        finally:
            self.changed.emit()

    def mark_seen(self, watch: Watch) -> None:
        if watch.unseen or watch.missed:
            watch.unseen = watch.missed = False
            self.changed.emit()

    async def close(self) -> None:
        """Stops; subscriptions end with their connections."""
        self._host.servers_changed.disconnect(self._follow_servers)
        self._host.state_changed.disconnect(self._state_changed)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _follow_servers(self) -> None:
        """Listens to connections that are new; a server that was defined anew is another connection."""
        for name, connection in self._host.connections.items():
            if self._heard.get(name) is connection:
                continue
            self._heard[name] = connection
            subscriptions = connection.subscriptions
            subscriptions.updated.connect(partial(self._updated, connection))
            subscriptions.missed.connect(partial(self._missed, connection))
            subscriptions.changed.connect(partial(self._subscription_changed, connection))
            for watch in self._watches:
                if watch.server == name:
                    self._begin(watch)
        for watch in self._watches:
            if watch.server not in self._host.connections:
                watch.state, watch.fault = "away", Diagnostic("server_unknown", "subscribe", watch.server)
        self._heard = {name: each for name, each in self._heard.items() if name in self._host.connections}
        if self._watches:
            self.changed.emit()

    def _state_changed(self, name: str) -> None:
        connection = self._host.connections.get(name)
        if connection is None or connection.state.status != "connected":
            return
        for watch in self._watches:
            if watch.server == name and connection.subscriptions.of(watch.uri) is None and watch.state == "away":
                self._begin(watch)

    def _begin(self, watch: Watch) -> None:
        watch.state, watch.fault = "pending", None
        self._run(self._subscribe(watch))

    async def _subscribe(self, watch: Watch) -> None:
        try:
            await self._host.connection(watch.server).subscriptions.add(watch.uri)
        except AssistantError as error:
            refused = error.diagnostic.code in ("subscriptions_unsupported", "resource_invalid", "subscription_limit")
            watch.state, watch.fault = "refused" if refused else "away", error.diagnostic
        else:
            watch.state, watch.fault = "watching", None
        self.changed.emit()

    def _updated(self, connection: Connection, uri: str) -> None:
        if (watch := self._watch_of(connection, uri)) is not None:
            watch.changed_at, watch.unseen = time.time(), True
            self.changed.emit()
            self.noticed.emit(watch)

    def _missed(self, connection: Connection, uri: str) -> None:
        if (watch := self._watch_of(connection, uri)) is not None:
            watch.unseen = watch.missed = True
            self.changed.emit()

    def _subscription_changed(self, connection: Connection, uri: str) -> None:
        watch, subscription = self._watch_of(connection, uri), connection.subscriptions.of(uri)
        if watch is not None and subscription is not None:
            watch.state, watch.fault = subscription.state, subscription.fault
            self.changed.emit()

    def _watch_of(self, connection: Connection, uri: str) -> Watch | None:
        """The watch behind a connection's subscription; none for one that was replaced."""
        name = connection.definition.name
        return self.of(name, uri) if self._host.connections.get(name) is connection else None

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self) -> None:
        kept = [{"server": each.server, "uri": each.uri, "title": each.title} for each in self._watches if each.kept]
        try:
            await asyncio.to_thread(write_private, self._file, json.dumps(kept, indent=0).encode())
        except OSError as error:
            raise AssistantError("storage_failed", operation="storage", reason=os_reason(error)) from error


def _read(file: Path) -> list[tuple[str, str, str]]:
    """Server, URI and title of what was kept; a file that can't be read is empty."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    kept: list[tuple[str, str, str]] = []
    for each in cast("list[Any]", content)[:_MOST_KEPT] if isinstance(content, list) else []:
        given = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        server, uri, title = (given.get(name) for name in ("server", "uri", "title"))
        if isinstance(server, str) and isinstance(uri, str) and isinstance(title, str) and is_uri(uri):
            kept.append((server, uri, title))
    return kept
