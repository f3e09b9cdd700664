"""The network under the HTTP client of a server: certificates, proxies, and answers that are no bombs.

Used by ``http_transport.py``.
"""

from __future__ import annotations

import ssl
import urllib.request
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import httpx2

from desktop.host.large_messages import LARGEST_MESSAGE, MIB
from desktop.host.server_config import is_loopback


def tls_context(ca_file: str | Path | None) -> ssl.SSLContext:
    """Trusts what the system trusts, and a file's certificates beside. Raises OSError or ValueError for a file that is none."""
    context = httpx2.create_ssl_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


class Network(httpx2.AsyncBaseTransport):
    """Sends requests through the proxy that the system names, those to this computer never.

    Answers are decompressed piece by piece, and no more of one is taken than a message may have; event streams may go on.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._proxies = urllib.request.getproxies()
        self._transports: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        proxy = self._proxy_for(request.url)
        try:
            response = await self._transport(proxy).handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if proxy:  # which else could not be told from the server
                raise httpx2.ProxyError("the proxy, or the server behind it, could not be reached") from error
            raise
        headers = httpx2.Headers(response.headers)
        encoding = headers.pop("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", "deflate"):
            await response.aclose()
            raise httpx2.RemoteProtocolError("a compression that was not asked for")
        if encoding != "identity":
            headers.pop("content-length", None)
        endless = headers.get("content-type", "").lower().startswith("text/event-stream")
        stream = _Body(cast("httpx2.AsyncByteStream", response.stream), encoding != "identity", endless)
        return httpx2.Response(response.status_code, headers=headers, stream=stream, extensions=response.extensions)

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    def _proxy_for(self, url: httpx2.URL) -> str:
        """Empty: none."""
        if is_loopback(str(url)) or urllib.request.proxy_bypass(url.host):
            return ""
        return self._proxies.get(url.scheme) or self._proxies.get("all") or ""

    def _transport(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        if proxy not in self._transports:
            try:
                self._transports[proxy] = httpx2.AsyncHTTPTransport(
                    verify=self._context,
                    trust_env=False,
                    proxy=(proxy if "://" in proxy else f"http://{proxy}") if proxy else None,
                )
            except (ValueError, ImportError) as error:
                raise httpx2.ProxyError("a kind of proxy that is not supported") from error
        return self._transports[proxy]


class _Body(httpx2.AsyncByteStream):
    """An answer's body, decompressed in pieces of at most 1 MiB."""

    def __init__(self, stream: httpx2.AsyncByteStream, compressed: bool, endless: bool) -> None:
        self._stream = stream
        self._decompressor = zlib.decompressobj(wbits=47) if compressed else None  # gzip or zlib, as its header says
        self._endless = endless

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for raw in self._stream:
            for piece in self._decompressed(raw):
                size += len(piece)
                if size > LARGEST_MESSAGE + MIB and not self._endless:
                    raise httpx2.ReadError("the answer is too large")
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _decompressed(self, raw: bytes) -> Iterator[bytes]:
        if self._decompressor is None:
            yield raw
            return
        try:
            while raw and not self._decompressor.eof:
                yield self._decompressor.decompress(raw, MIB)
                raw = self._decompressor.unconsumed_tail
        except zlib.error as error:
            raise httpx2.DecodingError("the answer can't be decompressed") from error
