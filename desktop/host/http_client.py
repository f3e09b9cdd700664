"""The HTTP client under the SDK's transports: whatever a server or the network does, the SDK gets an answer it can read.

Used by ``http_transport.py``. The SDK's transport ends as a whole when one connection breaks, keeps any answer in memory whatever
its size, and tells failures of HTTP apart by their text alone. Here each request that fails is answered with an error of its own
(`HttpFailure`), and a large answer goes through a private file.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID
from mcp.shared._httpx_utils import next_request_within_origin
from mcp_types import INVALID_PARAMS, ErrorData, JSONRPCError, RequestId
from pydantic import ValidationError

from desktop.host.event_stream import EventStream
from desktop.host.http_failure import HttpFailure, failure_of_exception, failure_of_status
from desktop.host.large_messages import (
    LARGEST_MESSAGE,
    MESSAGE_TOO_LARGE,
    MIB,
    AnswerLost,
    IncomingMessage,
    MessageRefused,
    answered_request,
    refusal,
)
from desktop.host.sdk_log import route_to
from desktop.host.server_log import ServerLog

#: Seconds without a sign of life after which the stream of a server's own messages is opened anew.
_LONGEST_SILENCE = 300.0
#: Seconds for a server to hear that we leave.
_LAST_REQUEST = 2.0
#: Seconds between attempts to open the stream of a server's own messages again.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_PASSING_STATUSES = (429, 502, 503, 504)
#: As the SDK writes a request.
_REQUEST = re.compile(rb'\{"jsonrpc":"2\.0","id":(-?\d+|"(?:[^"\\]|\\.)*"),"method":"([^"\\]*)"')
_NOT_SENDABLE = "deskhand.not_sendable"


class GuardedClient(httpx2.AsyncClient):
    """The HTTP client under the SDK: `send` never raises, and what it returns is safe to read.

    Attributes:
        failure: Of the newest request that failed.
    """

    def __init__(
        self,
        log: ServerLog,
        new_message: Callable[[], IncomingMessage],
        *,
        answer_apart: Callable[[JSONRPCError], Awaitable[None]] | None,
        **arguments: Any,
    ) -> None:
        """`answer_apart` takes the errors that answer requests where their answers don't come with their own responses."""
        super().__init__(**arguments)
        self.failure: HttpFailure | None = None
        self._log = log
        self._new_message = new_message
        self._answer_apart = answer_apart

    def build_request(self, *arguments: Any, json: Any = None, **options: Any) -> httpx2.Request:
        try:
            return super().build_request(*arguments, json=json, **options)
        except ValueError:  # half a character, or no number: a model may well write such an argument
            request = super().build_request(*arguments, json={**json, "params": {}})
            request.extensions[_NOT_SENDABLE] = True
            return request

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        route_to(self._log)  # the SDK takes an answer apart in the context of whoever asked
        if request.extensions.pop(_NOT_SENDABLE, False):
            return await self._error(request, 400, ErrorData(code=INVALID_PARAMS, message="The arguments are no JSON."))
        if request.method == "DELETE":
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_REQUEST):
                    return await self._send(request, **options)
            return httpx2.Response(204, request=request)
        if request.method == "GET" and self._answer_apart is None:
            return await self._listen(request, **options)
        return await self._send(request, **options)

    async def _listen(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Opens the stream of a server's own messages however long it takes; the SDK gives up after two attempts."""
        request.extensions["timeout"] = {**request.extensions["timeout"], "read": _LONGEST_SILENCE}
        pause = _SHORTEST_PAUSE
        while True:
            response = await self._send(request, **options)
            if response.status_code not in _PASSING_STATUSES:
                return response
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except Exception as error:  # also what a sign-in raises: nothing may end the SDK's client
            return await self._fail(request, failure_of_exception(error, self._log))
        try:
            return await self._safe(request, response)
        except (httpx2.HTTPError, httpx2.StreamError) as error:  # it broke off
            return await self._fail(request, failure_of_exception(error, self._log))
        except BaseException:
            await response.aclose()
            raise

    async def _safe(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """A response that holds or streams nothing large, and an error of ours in place of one that the SDK can't tell apart."""
        if response.next_request is not None:
            if next_request_within_origin(response) is None:
                self._log.append(
                    "The server redirected a request to another place; that was not followed.", level="warning"
                )
                await response.aclose()
                elsewhere = HttpFailure(
                    "connection_failed", response.status_code, reason="it redirects to another place"
                )
                return await self._fail(request, elsewhere)
            return response
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code >= 400:
            return await self._refused(request, response, kind)
        asked, _ = _asked(request)
        if kind == "text/event-stream":
            return _with_content(response, _Events(response, self._events_of(asked), self._log))
        if asked is None or self._answer_apart is not None or response.status_code == 202:
            await response.aclose()  # the status is all that counts
            return _with_content(response, b"")
        if kind != "application/json":
            self._log.append(f"The server answered with “{kind[:80]}”, which is no message of the protocol.")
            await response.aclose()
            return await self._fail(request, HttpFailure("protocol_error", response.status_code))
        try:
            return _with_content(response, await _read(response, self._new_message()))
        except MessageRefused as refused:
            _note(refused, self._log)
            return _with_content(response, _json(refusal(asked, refused.code)))

    async def _refused(self, request: httpx2.Request, response: httpx2.Response, kind: str) -> httpx2.Response:
        """What stands for a status of 400 and more: the server's own error where that is one of the protocol and says more."""
        _, method = _asked(request)
        status = response.status_code
        failure = failure_of_status(response, in_session=MCP_SESSION_ID in request.headers)
        content = b""
        if failure is None and kind == "application/json":
            with suppress(MessageRefused):
                content = await _read(response, self._new_message())
        await response.aclose()
        if failure is None and not _is_error(content):
            if status >= 500:
                failure = HttpFailure("connection_failed", status, reason=f"it answered with HTTP status {status}")
            elif method == "initialize":
                failure = HttpFailure("protocol_error", status)
        if failure is None:
            return _with_content(response, content)
        self._log.append(f"The server answered with status {status}.", level="warning")
        return await self._fail(request, failure)

    async def _fail(self, request: httpx2.Request, failure: HttpFailure) -> httpx2.Response:
        self.failure = failure
        return await self._error(request, failure.status if (failure.status or 0) >= 400 else 503, failure.as_error())

    async def _error(self, request: httpx2.Request, status: int | None, error: ErrorData) -> httpx2.Response:
        asked, _ = _asked(request)
        content = b""
        if asked is not None:
            answer = JSONRPCError(jsonrpc="2.0", id=asked, error=error)
            if self._answer_apart is not None:
                await self._answer_apart(answer)
                return httpx2.Response(202, request=request)
            content = _json(answer)
        headers = {"Content-Type": "application/json"}
        return httpx2.Response(status or 503, headers=headers, content=content, request=request)

    def _events_of(self, asked: RequestId | None) -> EventStream:
        def replace(refused: MessageRefused) -> bytes | None:
            _note(refused, self._log)
            try:
                request = answered_request(refused.head, refused.tail)
            except AnswerLost:
                request = asked
            return None if request is None else _json(refusal(request, refused.code))

        return EventStream(self._new_message, replace)


class _Events(httpx2.AsyncByteStream):
    """An event stream whose large events are replaced. When the connection breaks it ends: the SDK then asks for the rest, or
    tells whoever waits."""

    def __init__(self, response: httpx2.Response, events: EventStream, log: ServerLog) -> None:
        self._response = response
        self._events = events
        self._log = log

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_raw():
                async for event in self._events.take(chunk):
                    yield event
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            failure_of_exception(error, self._log)
        finally:
            self._events.discard()

    async def aclose(self) -> None:
        await self._response.aclose()


async def _read(response: httpx2.Response, message: IncomingMessage) -> bytes:
    """The body of a response, or what takes its place. Raises MessageRefused."""
    try:
        async for piece in response.aiter_raw():
            if message.add(piece):
                await message.spill()
            if message.size > LARGEST_MESSAGE:
                break
        return await message.finish()
    finally:
        message.discard()
        await response.aclose()


def _with_content(response: httpx2.Response, content: bytes | httpx2.AsyncByteStream) -> httpx2.Response:
    """The response with another body."""
    dropped = ("content-length", "content-encoding", "transfer-encoding")
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in dropped]
    body: dict[str, Any] = {"content": content} if isinstance(content, bytes) else {"stream": content}
    return httpx2.Response(response.status_code, headers=headers, request=response.request, **body)


def _asked(request: httpx2.Request) -> tuple[RequestId | None, str]:
    """The id and the method of the protocol's request that an HTTP request carries."""
    match = _REQUEST.match(request.content) if request.method == "POST" else None
    return (json.loads(match[1]), match[2].decode(errors="replace")) if match else (None, "")


def _json(answer: JSONRPCError) -> bytes:
    return answer.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _is_error(content: bytes) -> bool:
    try:
        JSONRPCError.model_validate_json(content)
    except ValidationError:
        return False
    return True


def _note(refused: MessageRefused, log: ServerLog) -> None:
    if refused.code == MESSAGE_TOO_LARGE:
        log.append(
            f"The server sent a message of more than {LARGEST_MESSAGE // MIB} MiB; it was skipped.", level="warning"
        )
    else:
        log.append("A large message of the server could not be stored or read; it was skipped.", level="warning")
