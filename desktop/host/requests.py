"""Requests through one life of a connection: their time limits, their progress, how they are stopped, what ends them.

Used by the connection. A life begins when the SDK's client is entered and ends when the server dies, is stopped, or forgets
us; whoever waits for an answer then hears why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED

from desktop.errors import AssistantError, Diagnostic, Operation
from desktop.host.diagnostics import classify, known
from desktop.host.sdk_client import SdkClient
from desktop.host.time_limits import Limits

#: Seconds between two reports of progress of one call.
_REPORT_INTERVAL = 0.1
#: Seconds in which the answers that a dead server has sent still count.
_LAST_ANSWERS = 0.5
#: Seconds in which a transport whose stream has ended says so.
_TELLING_WHY = 0.25
#: Seconds in which the notices that requests are cancelled go out.
_LAST_NOTICES = 0.2

Answer = TypeVar("Answer")
ProgressCallback = Callable[[float, "float | None", "str | None"], None]


class Progress:
    """A call's progress: each notice is a sign of life, and at most ten a second are reported, the newest always."""

    def __init__(self, limits: Limits, report: ProgressCallback | None) -> None:
        self._limits = limits
        self._told = report
        self._newest: tuple[float, float | None, str | None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def noticed(self, progress: float, total: float | None, message: str | None) -> None:
        """The SDK's callback."""
        self._limits.sign_of_life()
        self.report(progress, total, message)

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        self._newest = (progress, total, message)
        if self._timer is None:
            self._report_newest()

    def end(self) -> None:
        """Reports what has not been reported yet, and nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._report_newest()
        self._told = None

    def _report_newest(self) -> None:
        self._timer = None
        if self._newest is not None and self._told is not None:
            newest, self._newest = self._newest, None
            self._timer = asyncio.get_running_loop().call_later(_REPORT_INTERVAL, self._report_newest)
            self._told(*newest)


class Life:
    """One life of a connection.

    Attributes:
        client: The SDK's client, entered.
        over: Done when this life is to end, with the reason.
    """

    def __init__(self, client: SdkClient, server: str, stream_ended: asyncio.Event | None) -> None:
        """`stream_ended` is set when nothing can come from the server any more; None where requests don't share a stream."""
        self.client = client
        self.over: asyncio.Future[Diagnostic] = asyncio.get_running_loop().create_future()
        self._server = server
        self._stream_ended = stream_ended
        self._ended: asyncio.Future[Diagnostic] = asyncio.get_running_loop().create_future()
        self._requests: set[asyncio.Task[Any]] = set()
        self._waiting: set[Callable[[], None]] = set()
        self._companions: set[asyncio.Task[None]] = set()

    @property
    def ended(self) -> Diagnostic | None:
        """Why this life has ended, or None."""
        return self._ended.result() if self._ended.done() else None

    def end(self, reason: Diagnostic) -> None:
        """Asks for this life's end; the first reason counts."""
        if not self.over.done():
            self.over.set_result(reason)

    def accompany(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something beside the requests until this life ends."""
        task = asyncio.create_task(work)
        self._companions.add(task)
        task.add_done_callback(self._companions.discard)

    async def finish(self, reason: Diagnostic, *, died: bool) -> None:
        """Answers whoever still waits, in less than a second: of a server that `died`, what it had sent before still counts."""
        for companion in self._companions:
            companion.cancel()
        if died and self._requests:
            await asyncio.wait(self._requests, timeout=_LAST_ANSWERS)
        self._ended.set_result(reason)
        for wake in tuple(self._waiting):
            wake()
        if unfinished := self._requests | self._companions:
            await asyncio.wait(unfinished, timeout=_LAST_NOTICES)

    async def request(
        self, operation: Operation, send: Callable[[], Coroutine[Any, Any, Answer]], limits: Limits
    ) -> Answer:
        """Sends a request through the client and waits for its answer. Raises AssistantError alone.

        Cancelling the waiting task returns at once; the cancellation goes to the server meanwhile.
        """
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        async def answer() -> Answer:
            try:
                return await send()
            finally:
                wake()

        # A task of its own: the SDK takes up to five seconds to tell a busy server of a cancellation, and a client that
        # breaks down cancels whoever is inside it.
        task = asyncio.create_task(answer())
        self._requests.add(task)
        task.add_done_callback(self._forget)
        unwatch = limits.watch(wake)
        self._waiting.add(wake)
        try:
            await woken
        finally:
            self._waiting.discard(wake)
            unwatch()
            task.cancel()
        if not task.done():
            raise self._end_of(operation) if self._ended.done() else known("timeout", operation, self._server)
        if task.cancelled():  # by a client that broke down: we had not asked for it
            raise await self._broken(operation, None)
        error = task.exception()
        if error is None:
            return task.result()
        raise await self._broken(operation, error) from error

    async def _broken(self, operation: Operation, error: BaseException | None) -> AssistantError:
        """The error for a request that ended without an answer: the life's own end, if that is why."""
        closed = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
        if error is None or closed:
            if self._stream_ended is not None and not self._stream_ended.is_set():
                await asyncio.wait({self.over}, timeout=_TELLING_WHY)
            if self.over.done() or (self._stream_ended is not None and self._stream_ended.is_set()):
                # The verdict comes as soon as the other requests have had their last answers.
                await asyncio.wait({self._ended}, timeout=2 * _LAST_ANSWERS)
            if self._ended.done():
                return self._end_of(operation)
            if closed and self._stream_ended is not None:  # the server's own use of that number
                return known("server_error", operation, self._server, number=CONNECTION_CLOSED)
        if error is None:
            return known("connection_failed", operation, self._server)
        told = classify(error, operation, self._server)
        if told.diagnostic.code == "session_lost":
            self.end(told.diagnostic)
            await asyncio.wait({self._ended}, timeout=2 * _LAST_ANSWERS)
        return told

    def _end_of(self, operation: Operation) -> AssistantError:
        """The error for a request that this life's end leaves without an answer."""
        reason = self._ended.result()
        if reason.code == "session_lost":  # the server said so to another request; of this one nothing is known
            return known("connection_failed", operation, self._server)
        return known(reason.code, operation, self._server, **reason.values)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._requests.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: nobody may be left who waits for it
