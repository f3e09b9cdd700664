"""The resources of one server that are watched, in both eras of the protocol. Used by the connection and ``watches.py``.

The older era has a request for each resource and notices that come unasked; the newer one a stream of notices that is asked for
with the list of all of them, and asked for anew when the list changes (MCP specification, resources: subscriptions). A
subscription outlives its connection: whenever the server is connected again, it is made again, and what changed meanwhile is
not known. Nothing is ever read because of a notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp_types import (
    METHOD_NOT_FOUND,
    EmptyResult,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from desktop.errors import AssistantError, Diagnostic
from desktop.host.diagnostics import classify, known
from desktop.host.sdk_client import SdkClient
from desktop.signals import Signal
from desktop.uris import is_uri

State = Literal["pending", "watching", "refused", "away"]
"""``away``: the server is not connected."""

MOST = 50
"""Subscriptions of a connection."""
#: Seconds in which notices of the same resource are one.
_COALESCED = 0.05
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a stream that broke off is asked for again; the pause doubles each time it breaks."""

#: Connects if need be and sends a request through the client.
Ask = Callable[[Callable[[SdkClient], Coroutine[Any, Any, None]]], Awaitable[None]]


@dataclass(slots=True)
class Subscription:
    """A watched resource."""

    uri: str
    state: State = "pending"
    fault: Diagnostic | None = None
    """Why it is refused."""
    lapsed: bool = False
    """It was watched and then was not: what changed meanwhile is not known."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)


class Subscriptions:
    """Attributes:
    updated: Emitted soon after a watched resource changed, with the URI it is watched by.
    missed: Emitted with a URI when changes may have been missed: it is watched again.
    changed: Emitted with a URI soon after its state changed.
    """

    def __init__(self, server: str, ask: Ask, *, longest_wait: float) -> None:
        """`longest_wait`: seconds for the server's word that it will tell."""
        self.updated: Signal[str] = Signal()
        self.missed: Signal[str] = Signal()
        self.changed: Signal[str] = Signal()
        self._server = server
        self._ask = ask
        self._longest_wait = longest_wait
        self._wanted: dict[str, Subscription] = {}
        self._changing = asyncio.Lock()
        self._list_changed = asyncio.Event()
        self._due: set[str] = set()
        self._farewells: set[asyncio.Task[None]] = set()

    def of(self, uri: str) -> Subscription | None:
        return self._wanted.get(uri)

    async def add(self, uri: str) -> None:
        """Watches a resource; of one that is watched already nothing is asked again.

        Raises AssistantError: ``resource_invalid``, ``subscription_limit``, ``subscriptions_unsupported`` when the server won't
        tell of it, and why the server can't be asked. Of a refused one nothing stays.
        """
        if not is_uri(uri):
            raise known("resource_invalid", "subscribe", self._server)
        async with self._changing:
            if (present := self._wanted.get(uri)) is not None and present.state == "watching":
                return
            if present is None and len(self._wanted) >= MOST:
                raise known("subscription_limit", "subscribe", self._server, limit=MOST)
            wanted = self._wanted[uri] = Subscription(uri)  # before it is asked for: an early notice counts
            try:
                await self._ask(lambda client: self._subscribe(client, wanted))
            except BaseException:
                self._wanted.pop(uri, None)
                self._list_changed.set()
                raise

    async def remove(self, uri: str) -> None:
        """Watches a resource no more; never connects. What the server says to that is of no consequence."""
        async with self._changing:
            wanted = self._wanted.pop(uri, None)
            if wanted is None:
                return
            self._due.discard(uri)
            self._list_changed.set()
            if wanted.state == "watching":
                with suppress(AssistantError):
                    await self._ask(lambda client: self._unsubscribe(client, uri))

    async def serve(self, client: SdkClient) -> None:
        """Keeps what is watched watched for one life of the connection; cancelled at its end."""
        try:
            if _is_modern(client):
                await self._keep_listening(client)
                return
            for wanted in list(self._wanted.values()):
                if wanted.state == "away":
                    await self._resume(client, wanted)
            await asyncio.Event().wait()
        finally:
            for wanted in self._wanted.values():
                self._publish(wanted, "away")

    def noticed(self, uri: str) -> None:
        """The server says that a resource changed; it may be a part of one that is watched."""
        watched = (
            uri if uri in self._wanted else next((each for each in self._wanted if uri.startswith(each + "/")), None)
        )
        if watched is None:
            return
        if not self._due:
            asyncio.get_running_loop().call_later(_COALESCED, self._tell)
        self._due.add(watched)

    def _tell(self) -> None:
        due, self._due = self._due, set()
        for uri in due:
            self.updated.emit(uri)

    async def _subscribe(self, client: SdkClient, wanted: Subscription) -> None:
        offered = client.server_capabilities.resources
        if offered is None or not offered.subscribe:
            raise known("subscriptions_unsupported", "subscribe", self._server)
        if not _is_modern(client):
            try:
                await _send(client, SubscribeRequest(params=SubscribeRequestParams(uri=wanted.uri)))
            except BaseException:
                taken_back = asyncio.create_task(self._take_back(client, wanted.uri))
                self._farewells.add(taken_back)
                taken_back.add_done_callback(self._farewells.discard)
                raise
            self._publish(wanted, "watching")
            return
        if not wanted.settled.is_set():
            self._list_changed.set()
            await wanted.settled.wait()
        if wanted.state != "watching":
            raise AssistantError.of(wanted.fault) if wanted.fault else known("cancelled", "subscribe", self._server)

    async def _unsubscribe(self, client: SdkClient, uri: str) -> None:
        if not _is_modern(client):
            await _send(client, UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri)))

    async def _take_back(self, client: SdkClient, uri: str) -> None:
        """The server may have acted on a request that failed."""
        with suppress(Exception):  # nobody waits for it, and whatever it is changes nothing
            async with asyncio.timeout(self._longest_wait):
                await self._unsubscribe(client, uri)

    async def _resume(self, client: SdkClient, wanted: Subscription) -> None:
        try:
            async with asyncio.timeout(self._longest_wait):
                await self._subscribe(client, wanted)
        except Exception as error:  # of a server, and this watch's alone
            self._publish(wanted, "refused", classify(error, "subscribe", self._server).diagnostic)

    async def _keep_listening(self, client: SdkClient) -> None:
        """Has a stream open for what is watched now: the next one is open before the last one is closed."""
        stream: asyncio.Task[None] | None = None
        try:
            while True:
                self._list_changed.clear()
                uris = tuple(self._wanted)
                opened = asyncio.Event()
                new = asyncio.create_task(self._listen(client, uris, opened)) if uris else None
                if new is not None:
                    await asyncio.wait(
                        (new, waits := asyncio.ensure_future(opened.wait())), return_when=asyncio.FIRST_COMPLETED
                    )
                    waits.cancel()
                if stream is not None:
                    stream.cancel()
                    await asyncio.wait({stream})
                stream = new
                await self._list_changed.wait()
        finally:
            if stream is not None:
                stream.cancel()
                await asyncio.wait({stream})

    async def _listen(self, client: Client, uris: tuple[str, ...], opened: asyncio.Event) -> None:
        pause = _FIRST_PAUSE
        while True:
            fault: Diagnostic | None = None
            try:
                async with client.listen(resource_subscriptions=uris) as notices:
                    self._honoured(uris, notices.honored.resource_subscriptions or ())
                    opened.set()
                    async for notice in notices:
                        pause = _FIRST_PAUSE
                        if isinstance(notice, ResourceUpdated):
                            self.noticed(notice.uri)
            except MCPError as error:
                unsupported = error.code == METHOD_NOT_FOUND
                told = known("subscriptions_unsupported", "subscribe", self._server) if unsupported else None
                fault = (told or classify(error, "subscribe", self._server)).diagnostic
            except (SubscriptionLost, TimeoutError) as error:
                fault = classify(error, "subscribe", self._server).diagnostic
            for wanted in filter(None, map(self._wanted.get, uris)):
                self._publish(wanted, "refused" if fault else "away", fault)
            opened.set()
            if fault is not None and fault.code == "subscriptions_unsupported":
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _honoured(self, uris: tuple[str, ...], honoured: Sequence[str]) -> None:
        for wanted in filter(None, map(self._wanted.get, uris)):
            if wanted.uri in honoured:
                self._publish(wanted, "watching")
            else:
                fault = known("subscriptions_unsupported", "subscribe", self._server).diagnostic
                self._publish(wanted, "refused", fault)

    def _publish(self, wanted: Subscription, state: State, fault: Diagnostic | None = None) -> None:
        before, wanted.state, wanted.fault = wanted.state, state, fault
        if state in ("watching", "refused"):
            wanted.settled.set()
        if before == state or self._wanted.get(wanted.uri) is not wanted:
            return
        soon = asyncio.get_running_loop().call_soon  # what a watcher raises must reach the loop's hook, not the SDK
        soon(self.changed.emit, wanted.uri)
        if state == "watching" and wanted.lapsed:
            soon(self.missed.emit, wanted.uri)
        wanted.lapsed = state != "watching" and (wanted.lapsed or before == "watching")


def _is_modern(client: Client) -> bool:
    return client.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _send(client: SdkClient, request: SubscribeRequest | UnsubscribeRequest) -> None:
    await client.session.send_request(request, EmptyResult)
