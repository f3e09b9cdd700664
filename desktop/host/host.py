"""All servers' connections: made from the configuration, changed with it, closed together. Used by the core, the catalog and the
panels."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp.server import Server

from desktop.errors import AssistantError, Diagnostic
from desktop.host.connection import Connection
from desktop.host.consent import Consent
from desktop.host.large_messages import LargeMessageReader
from desktop.host.lifecycle import BACKOFF, SETTLED_AFTER
from desktop.host.remembered import Remembered
from desktop.host.roots import Roots
from desktop.host.server_config import BUILTIN_NAME, Configuration, ServerDefinition
from desktop.host.server_log import ServerLog
from desktop.host.server_questions import Desk, Respondent
from desktop.host.server_references import SecretSource
from desktop.host.workspace import secret_name
from desktop.paths import Paths
from desktop.signals import Signal

_BUILTIN = ServerDefinition(
    BUILTIN_NAME,
    "builtin",
    description="Deskhand itself: stored results, earlier conversations, the time, the state of the servers",
)
#: Servers that are connected at the same time when Deskhand starts, and the seconds after which one that is slow, or hangs, makes
#: room for the next.
_AT_ONCE = 4
_LONGEST_TURN = 2.0


async def _no_secrets(_name: str) -> str | None:
    return None


class Host:
    """The servers of a configuration, and the built-in one.

    Attributes:
        connections: One a server by name, disabled ones included, in the configuration's order, the built-in one last.
        faults: What of the configuration could not be used.
        state_changed: Emitted with a server's name soon after its connection's state changed.
        servers_changed: Emitted after `connections` or `faults` changed.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        paths: Paths,
        read_large: LargeMessageReader | None,
        builtin: Server[Any] | None,
        consent: Consent,
        secret: SecretSource = _no_secrets,
        respondent: Respondent | None = None,
        spool_folder: Path | None = None,
        backoff: Sequence[float] = BACKOFF,
        settled_after: float = SETTLED_AFTER,
    ) -> None:
        """`secret` gives what definitions refer to by ``${keyring:NAME}``; `respondent` answers what servers ask (None: nobody
        does); large messages are received in `spool_folder`."""
        self.connections: dict[str, Connection] = {}
        self.faults: tuple[Diagnostic, ...] = ()
        self.state_changed: Signal[str] = Signal()
        self.servers_changed: Signal[()] = Signal()
        self._paths = paths
        self._read_large = read_large
        self._builtin = builtin
        self._consent = consent
        self._secret = secret
        self._desk = Desk(respondent)
        self._roots = Roots()
        self._spool_folder = spool_folder or paths.cache / "spool"
        self._backoff = backoff
        self._settled_after = settled_after
        self._legacy_servers = Remembered(paths.cache / "legacy_servers.json")
        self._logs: dict[str, ServerLog] = {}
        self._reloading = asyncio.Lock()
        self._starting = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._adopt(configuration)

    async def start(self) -> None:
        """Begins to connect the servers that are to be connected at launch, and returns at once."""
        self._launch(self.connections.values())

    def connection(self, name: str) -> Connection:
        """Raises AssistantError ``server_unknown`` and ``server_disabled``."""
        connection = self.connections.get(name)
        if connection is None:
            raise AssistantError("server_unknown", server=name)
        if connection.definition.disabled:
            raise AssistantError("server_disabled", server=name)
        return connection

    async def reload(self, configuration: Configuration) -> None:
        """Takes over a configuration that was read anew: connections whose definition is the same stay as they are."""
        async with self._reloading:
            before, folder = set(self.connections.values()), self._roots.folder
            self._adopt(configuration)
            after = set(self.connections.values())
            self.servers_changed.emit()
            if self._roots.folder != folder:
                for connection in before & after:
                    connection.roots_changed()
            await asyncio.gather(*(connection.close(for_good=True) for connection in before - after))
            self._launch(after - before)

    async def give_consent(self, name: str) -> None:
        """Allows a server's command, as it is now, to be started.

        Raises AssistantError: ``server_unknown``, ``storage_failed`` (the consent holds for this run all the same).
        """
        connection = self.connection(name)
        try:
            await asyncio.to_thread(self._consent.give, connection.definition)
        finally:
            for each in self.connections.values():  # others may have the same command
                each.consent_changed()
            self._launch([connection])

    async def close(self) -> None:
        """Leaves all servers at the same time, for good; whoever waits for an answer gets ``cancelled``. Takes some 6 seconds
        at most, for processes that don't want to end."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(connection.close(for_good=True) for connection in self.connections.values()))
        await asyncio.gather(*(log.flush() for log in self._logs.values()))

    def _adopt(self, configuration: Configuration) -> None:
        """Makes the connections of a configuration, keeping those whose definition is the same."""
        definitions = [*configuration.definitions, *([_BUILTIN] if self._builtin is not None else [])]
        known = self.connections
        self.connections = {}
        for definition in definitions:
            old = known.get(definition.name)
            same = old is not None and old.definition == definition
            self.connections[definition.name] = old if old is not None and same else self._make(definition)
        self.faults = configuration.faults
        self._roots.folder = configuration.folder

    def _make(self, definition: ServerDefinition) -> Connection:
        name = definition.name
        if name not in self._logs:
            self._logs[name] = ServerLog(
                None if definition.kind == "builtin" else self._paths.logs / f"server-{name}.log"
            )
        connection = Connection(
            definition,
            log=self._logs[name],
            consent=self._consent,
            legacy_servers=self._legacy_servers,
            secret=lambda kept: self._secret(secret_name(definition.workspace, kept)),
            read_large=self._read_large,
            spool_folder=self._spool_folder,
            desk=self._desk,
            roots=self._roots,
            builtin=self._builtin,
            backoff=self._backoff,
            settled_after=self._settled_after,
        )

        def changed() -> None:
            if self.connections.get(name) is connection:  # not of one that was replaced and is closing
                self.state_changed.emit(name)

        connection.state_changed.connect(changed)
        return connection

    def _launch(self, connections: Iterable[Connection]) -> None:
        """Begins to connect those that are to be connected at launch and may be."""
        for connection in connections:
            if connection.definition.start == "launch" and connection.state.status == "idle" and not self._closed:
                task = asyncio.create_task(self._connect(connection))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: Connection) -> None:
        async with self._starting:
            connecting = asyncio.create_task(connection.connect())
            try:
                await asyncio.wait({connecting}, timeout=_LONGEST_TURN)
            except asyncio.CancelledError:
                connecting.cancel()
                raise
        with suppress(AssistantError):  # it is in the connection's state
            await connecting
