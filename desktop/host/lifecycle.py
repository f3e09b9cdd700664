"""How a server is connected, kept and left: the one task that owns its SDK client. Used by the connection alone.

That task enters the client, publishes the state, waits for a stop or the server's end, and leaves the client again; requests come
from any task through the `Life` it made. A server that was connected and died is connected again after 1, 2, 4, 8 and 16
seconds, by a new owner that waits for the old one's end: never are there two processes of a server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mcp.client.session import ElicitationFnT, MessageHandlerFnT
from mcp_types import Implementation

from desktop import __version__
from desktop.errors import AssistantError, Diagnostic
from desktop.host.consent import Consent
from desktop.host.diagnostics import known
from desktop.host.failures import Failures
from desktop.host.remembered import Remembered
from desktop.host.requests import Life
from desktop.host.roots import Roots
from desktop.host.sdk_client import SdkClient
from desktop.host.sdk_log import route_to
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import ServerLog
from desktop.host.server_state import Failure, ServerState
from desktop.host.time_limits import time_limit
from desktop.host.transports import Transports
from desktop.signals import Signal

logger = logging.getLogger(__name__)

BACKOFF = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each attempt to connect a server again that died."""
SETTLED_AFTER = 60.0
"""Seconds a server must stay connected for its earlier deaths to be forgotten."""
_LONGEST_CLOSE = 6.0
#: Seconds of the startup limit that are kept for a server that says nothing at all when it is asked in the newer way.
_RESERVE = 10.0
_CLIENT = Implementation(name="Deskhand", version=__version__)

Attempt = asyncio.Future["Diagnostic | None"]
"""Done when an attempt to connect is over: None, or why it failed."""


class Lifecycle:
    """The life and death of a server's connection.

    Attributes:
        life: The present life, or None while the server is not connected.
        state: What is known of the connection now.
        state_changed: Emitted soon after each change of `state`.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        *,
        log: ServerLog,
        consent: Consent,
        legacy_servers: Remembered,
        transports: Callable[[], Transports],
        heard: MessageHandlerFnT,
        asked: ElicitationFnT | None,
        roots: Roots,
        connected: Callable[[Life, bool], None],
        backoff: Sequence[float],
        settled_after: float,
    ) -> None:
        """`transports` gives those of an attempt to connect; `heard` gets what the server says unasked, `asked` what it asks the
        person (None: nobody would answer); `roots` are told to it if it asks; `connected` is called with each new life and
        whether it is not the first."""
        self.life: Life | None = None
        self.state_changed: Signal[()] = Signal()
        self._definition = definition
        self._log = log
        self._failures = Failures(definition.name, log)
        self._consent = consent
        self._legacy_servers = legacy_servers
        self._transports = transports
        self._heard = heard
        self._asked = asked
        self._roots = roots
        self._told_connected = connected
        self._backoff = backoff
        self._settled_after = settled_after
        self._attempt: Attempt | None = None
        self._owner: asyncio.Task[None] | None = None
        self._restart: asyncio.TimerHandle | None = None
        self._restarts = 0
        self._connected_at = 0.0
        """When the present or last life began; 0: there was none."""
        self._wanted = False
        """Whether it is to be connected, again if it dies."""
        self._closed = False
        self.state = self._resting()

    async def connect(self) -> None:
        """Connects unless it is connected; whoever asks meanwhile shares the attempt, and a cancelled one doesn't end it.

        Raises AssistantError: ``server_disabled``, ``consent_required``, ``cancelled`` (closed meanwhile), and what went wrong.
        """
        if self.life is not None:
            return
        if self._closed or self._definition.disabled:
            raise self._error("server_disabled")
        if not self._consent.given(self._definition):
            raise self._error("consent_required")
        failure = await asyncio.shield(self._attempt or self._begin())
        if failure is not None:
            raise AssistantError.of(failure)

    async def lively(self) -> Life:
        """The life to ask through; connects on demand where the definition lets it. Raises like `connect`, and
        ``server_not_started`` for a server that is connected by hand only."""
        if self.life is None:
            if self._definition.start == "manual" and self._attempt is None:
                raise self._error("server_not_started")
            await self.connect()
        if self.life is None:  # it died again before we got to ask
            raise AssistantError.of(self.state.failure.diagnostic) if self.state.failure else self._error("cancelled")
        return self.life

    async def close(self, *, for_good: bool) -> None:
        """Leaves the server within some 6 seconds; whoever waits for an answer gets ``cancelled``."""
        self._closed = self._closed or for_good
        self._wanted = False
        self._restarts = 0
        self._cancel_restart()
        owner = self._owner
        if owner is not None and not owner.done():
            if self.life is not None:
                self.life.end(self._error("cancelled").diagnostic)
            elif self._attempt is not None:
                # Soon and not now: a task that is cancelled before its first step takes none, and whoever shares the attempt
                # would wait for ever.
                asyncio.get_running_loop().call_soon(owner.cancel)
            await asyncio.wait({owner}, timeout=_LONGEST_CLOSE)
        if self._attempt is None and self.life is None:
            self.publish(self._resting())

    def consent_changed(self) -> None:
        """Takes notice of consent that was given meanwhile."""
        if self.state.status == "needs_consent":
            self.publish(self._resting())

    def publish(self, state: ServerState) -> None:
        if state == self.state:
            return
        self.state = state
        # Soon and not now: what a watcher raises must reach the loop's hook, not the task that owns the client.
        asyncio.get_running_loop().call_soon(self.state_changed.emit)

    def _begin(self) -> Attempt:
        self._wanted = True
        self._cancel_restart()
        self._attempt = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(self._owner, self._attempt), name=f"server {self._definition.name}")
        return self._attempt

    async def _own(self, previous: asyncio.Task[None] | None, attempt: Attempt) -> None:
        """The owner task: from an attempt to connect to the server's end, and what is to come after it."""
        self.publish(ServerState("connecting"))
        failure: Failure | None = None
        try:
            if previous is not None:
                await asyncio.wait({previous})
            failure = await self._live_in_either_era(attempt)
        except asyncio.CancelledError:
            pass  # closed while it waited
        lived = attempt.done()
        if not lived:
            attempt.set_result(failure.diagnostic if failure else self._error("cancelled").diagnostic)
        if self._owner is not asyncio.current_task():
            return  # the next owner has begun already
        self._attempt = None
        if failure is None or not self._wanted:
            self.publish(self._resting())
        elif failure.diagnostic.code == "session_lost":
            self._begin()
        else:
            if lived and asyncio.get_running_loop().time() - self._connected_at >= self._settled_after:
                self._restarts = 0
            seconds = failure.diagnostic.values.get("seconds", 0)  # of a server that takes nothing more for now
            retry_in = self._plan_restart(float(seconds)) if lived or self._restarts or seconds else None
            self.publish(ServerState("failed", failure, retry_in=retry_in))

    async def _live_in_either_era(self, attempt: Attempt) -> Failure | None:
        """Lives with the server. One whose process ends, or says nothing at all, at the newer era's question is started once
        more for the older era, and remembered for it."""
        definition = self._definition
        limit = definition.startup_time_limit
        remembered = definition.identity in self._legacy_servers
        transports = self._transports()
        if not remembered and definition.protocol == "auto":
            reserve = _RESERVE if definition.kind == "stdio" and limit >= 2 * _RESERVE else 0
            failure = await self._live(attempt, transports, limit - reserve, legacy=False)
            code = failure.diagnostic.code if failure and not attempt.done() else None
            if code == "timeout" and reserve:
                limit = reserve
            elif code != "server_exited":
                return failure
        failure = await self._live(attempt, transports, limit, legacy=True)
        if remembered and not attempt.done():  # it may have changed: the next attempt asks again
            await self._remember(self._legacy_servers.discard)
        return failure

    async def _live(self, attempt: Attempt, transports: Transports, seconds: float, *, legacy: bool) -> Failure | None:
        """One life: enters the client within seconds, waits, leaves it. Returns why it failed or died; None: it was stopped."""
        life: Life | None = None
        transport: Any = None
        error: BaseException | None = None
        route_to(self._log)
        self._failures.begin()
        try:
            transport = await transports.open()  # off the clock: a person may have to unlock the keyring
            client = SdkClient(
                transport,
                mode="legacy" if legacy else "auto",
                client_info=_CLIENT,
                message_handler=self._heard,
                elicitation_callback=self._asked,
                list_roots_callback=self._roots.callback,
                cache=None,  # the catalog keeps what was listed
                log=self._log,
            )
            async with time_limit(seconds) as lift, client:
                lift()
                life = Life(client, self._definition.name, getattr(transport, "ended", None))
                self._connected(life, attempt)
                if client.only_legacy or (legacy and self._definition.protocol == "auto"):
                    life.accompany(self._remember(self._legacy_servers.add))
                if (strayed := getattr(transport, "strayed", None)) is not None:
                    life.accompany(self._tell_of_strays(strayed))
                await self._until_over(life, transport)
        except BaseException as raised:  # the SDK raises groups, and cancels its user when it breaks down
            error = raised
        task = asyncio.current_task()
        cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
        if life is None:
            return None if cancelled else self._failures.of_attempt(error, transport)
        if life.ended is None:  # it was left before it was over
            await self._part(life, self._error("cancelled" if cancelled else "connection_failed").diagnostic, transport)
        if life.ended is None or life.ended.code == "cancelled":
            return None
        return self._failures.of_life(life.ended, transport)

    def _connected(self, life: Life, attempt: Attempt) -> None:
        self.life = life
        self._attempt = None
        attempt.set_result(None)
        information = life.client.server_info
        title = (information.title or information.name) if information else ""
        self.publish(ServerState("connected", protocol_version=life.client.protocol_version, title=title))
        self._told_connected(life, self._connected_at > 0)
        self._connected_at = asyncio.get_running_loop().time()

    async def _tell_of_strays(self, strayed: asyncio.Event) -> None:
        await strayed.wait()
        if self.state.status == "connected":
            self.publish(replace(self.state, strays=True))

    async def _until_over(self, life: Life, transport: Any) -> None:
        """Waits until a life is to end or its server is gone, and parts from it."""
        ended: asyncio.Event | None = getattr(transport, "ended", None)
        watch = asyncio.create_task(ended.wait()) if ended else asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({life.over, watch}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watch.cancel()
        if not life.over.done():
            life.end(self._failures.ended_by_itself(transport))
        await self._part(life, life.over.result(), transport)

    async def _part(self, life: Life, reason: Diagnostic, transport: Any) -> None:
        """Publishes that a life is over, at once, and answers whoever waits for something of it."""
        self.life = None
        died = reason.code != "cancelled"
        if reason.code == "session_lost":
            self.publish(ServerState("connecting"))
        elif died:
            self.publish(ServerState("failed", self._failures.of_life(reason, transport)))
        await life.finish(reason, died=died)

    async def _remember(self, change: Callable[[str], None]) -> None:
        """Changes the memory of servers of the older era; one that can't be written costs the next run some seconds."""
        try:
            await asyncio.to_thread(change, self._definition.identity)
        except AssistantError as error:
            logger.info("the memory of protocol eras: %s", error.diagnostic.code)

    def _plan_restart(self, at_least: float) -> float | None:
        """Seconds until the next attempt, or None when there have been enough."""
        if self._restarts == len(self._backoff):
            self._restarts = 0
            return None
        delay = max(self._backoff[self._restarts], at_least)
        self._restarts += 1
        self._restart = asyncio.get_running_loop().call_later(delay, self._begin)
        return delay

    def _cancel_restart(self) -> None:
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None

    def _resting(self) -> ServerState:
        """The state of a connection that nobody uses."""
        if self._definition.disabled:
            return ServerState("disabled")
        return ServerState("idle" if self._consent.given(self._definition) else "needs_consent")

    def _error(self, code: str) -> AssistantError:
        return known(code, "connect", self._definition.name)
