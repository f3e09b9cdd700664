"""A server that is reached over HTTP: the SDK's transports over an HTTP client that no answer and no broken connection can harm.

Used by the connection, which gives it to the SDK's client. 64 MiB is the most that is taken of an answer; plain http is for this
computer alone; redirects are followed within the server's origin only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError

from desktop import __version__
from desktop.errors import AssistantError
from desktop.host.diagnostics import known
from desktop.host.http_client import GuardedClient
from desktop.host.http_failure import HttpFailure
from desktop.host.http_network import Network, tls_context
from desktop.host.large_messages import LARGEST_MESSAGE, MIB, IncomingMessage, LargeMessageReader
from desktop.host.sdk_log import quiet, route_to
from desktop.host.server_config import is_loopback
from desktop.host.server_log import ServerLog

#: Seconds to reach a server and to send to it. An answer may take as long as the connection's own limits let it.
_TIMEOUT = httpx2.Timeout(15, read=None, pool=None)


class HttpTransport:
    """Reaches a server when it is entered, and takes leave of it when it is left; entered once.

    Attributes:
        ended: Set when nothing can come from the server any more; None for Streamable HTTP, where each request stands for itself.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        ca_file: str | Path | None,
        log: ServerLog,
        read_large: LargeMessageReader | None,
        spool_folder: Path,
        auth: httpx2.Auth | None = None,
        sse: bool = False,
    ) -> None:
        """`ca_file` holds certificates that are trusted beside the system's; `sse` means the older transport with an event stream
        for all answers."""
        self.ended = asyncio.Event() if sse else None
        self._url = url
        self._headers = headers
        self._ca_file = ca_file
        self._log = log
        self._read_large = read_large
        self._spool_folder = spool_folder
        self._auth = auth
        self._stack = AsyncExitStack()
        self._incoming: MemoryObjectSendStream[SessionMessage | Exception] | None = None

    async def __aenter__(self) -> tuple[Any, Any]:
        """Raises AssistantError: ``connection_failed`` for plain http to another computer, ``configuration_invalid`` for a
        `ca_file` that can't be read, and, for the older transport, what kept the event stream from being opened."""
        quiet()
        route_to(self._log)
        if not self._url.lower().startswith("https:") and not is_loopback(self._url):
            self._log.append("Plain http is for servers on this computer only; use https.")
            reason = ": plain http is for servers on this computer only"
            raise AssistantError("connection_failed", operation="connect", reason=reason)
        try:
            context = await asyncio.to_thread(tls_context, self._ca_file)
        except (OSError, ValueError) as error:
            where = " at caFile" if self._ca_file else ""
            reason = f"the file{'' if where else ' that SSL_CERT_FILE names'} can't be read as certificates"
            raise AssistantError("configuration_invalid", operation="connect", where=where, reason=reason) from error
        client = GuardedClient(
            self._log,
            self._new_message,
            answer_apart=self._answer_apart if self.ended else None,
            transport=Network(context),
            # What is not compressed can't be a bomb; of what is compressed all the same no more than the limit is taken.
            headers={"Accept-Encoding": "identity", "User-Agent": f"deskhand/{__version__}", **self._headers},
            timeout=_TIMEOUT,
            auth=self._auth,
            trust_env=False,  # proxies are the transport's
        )
        try:
            if self.ended is not None:
                return await self._open_event_stream(client, self.ended)
            await self._stack.enter_async_context(client)
            return await self._stack.enter_async_context(
                streamable_http_client(self._url, http_client=client, max_sse_event_size=LARGEST_MESSAGE + MIB)
            )
        except BaseException:
            await self._stack.aclose()
            raise

    async def __aexit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(type_, value, traceback)

    async def _open_event_stream(self, client: GuardedClient, ended: asyncio.Event) -> tuple[Any, Any]:
        def make_client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return client

        try:
            from_sdk, outgoing = await self._stack.enter_async_context(
                sse_client(self._url, httpx_client_factory=make_client)
            )
        except httpx2.HTTPError as error:
            failure = client.failure or HttpFailure("connection_failed")
            raise known(failure.code, "connect", None, **failure.values) from error
        # A stream of our own in front of the SDK's: a request that fails is answered there.
        incoming, read_stream = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        self._incoming = incoming

        async def forward() -> None:
            try:
                async for message in from_sdk:
                    await incoming.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # nobody listens any more
            finally:
                incoming.close()
                ended.set()

        task = asyncio.create_task(forward())

        async def stop() -> None:
            read_stream.close()
            task.cancel()
            await asyncio.wait({task})

        self._stack.push_async_callback(stop)
        return read_stream, outgoing

    async def _answer_apart(self, error: JSONRPCError) -> None:
        assert self._incoming is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._incoming.send(SessionMessage(error))

    def _new_message(self) -> IncomingMessage:
        return IncomingMessage(self._spool_folder, self._read_large)
