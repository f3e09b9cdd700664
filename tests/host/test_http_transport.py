"""Servers over HTTP: no answer and no broken connection harms the client, and nothing leaves that shouldn't."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import gc
import json
import logging
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR

from desktop.errors import AssistantError
from desktop.host import http_client
from desktop.host.http_client import GuardedClient
from desktop.host.http_failure import HTTP_FAILURE, HttpFailure
from desktop.host.http_transport import HttpTransport
from desktop.host.large_messages import MESSAGE_NOT_READ, MESSAGE_TOO_LARGE, MIB, IncomingMessage
from desktop.host.server_log import ServerLog
from tests.fakes.certificate import self_signed
from tests.servers.running import friendly, hostile, http_server

pytestmark = pytest.mark.anyio
NOBODY_THERE = HttpFailure("connection_failed", reason="nothing answers at its address")
FORMS = pytest.mark.parametrize(
    "form", [(), ("--sse",), ("--era", "modern"), ("--era", "modern", "--sse")], ids=" ".join
)


class Servers:
    """Makes transports that share a log, a spool folder and a reader of large messages."""

    def __init__(self, folder: Path) -> None:
        self.log = ServerLog(None)
        self.spool_folder = folder / "spool"
        self.read: list[int] = []
        """Sizes of the large messages."""
        self.raises: Exception | None = None

    def transport(self, url: str, **options: Any) -> HttpTransport:
        given: dict[str, Any] = {"headers": {}, "ca_file": None, "read_large": self._read_large, **options}
        return HttpTransport(url, log=self.log, spool_folder=self.spool_folder, **given)

    @asynccontextmanager
    async def client(self, url: str, *, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
        async with asyncio.timeout(60), Client(self.transport(url, **options), mode=mode) as client:
            yield client

    @property
    def spooled(self) -> list[Path]:
        return list(self.spool_folder.glob("*"))

    async def _read_large(self, file: Path) -> bytes:
        if self.raises is not None:
            raise self.raises
        content = file.read_bytes()
        file.unlink()
        self.read.append(len(content))
        answer = [{"type": "text", "text": "reduced"}]
        result = {"resultType": "complete", "content": answer}
        return json.dumps({"jsonrpc": "2.0", "id": json.loads(content)["id"], "result": result}).encode()


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    return Servers(tmp_path)


async def call(client: Client, name: str, **arguments: object) -> str:
    result = await client.call_tool(name, arguments)
    return result.content[0].text  # type: ignore[union-attr]


async def error_of(client: Client, name: str, **arguments: object) -> MCPError:
    with pytest.raises(MCPError) as raised:
        await client.call_tool(name, arguments)
    return raised.value


async def refusal_of(servers: Servers, url: str, **options: Any) -> HttpFailure | None:
    """Why a server can't be connected; the SDK raises it in groups."""
    with pytest.raises(ExceptionGroup) as raised:
        async with servers.client(url, **options):
            pass
    error: BaseException = raised.value
    while isinstance(error, BaseExceptionGroup):
        [error] = error.exceptions
    assert isinstance(error, MCPError)
    return HttpFailure.of(error)


async def failure_of(client: Client, name: str, **arguments: object) -> HttpFailure | None:
    return HttpFailure.of(await error_of(client, name, **arguments))


def requests(file: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [line for line in lines if line["event"] == "request"]


@FORMS
async def test_a_server_is_called(servers: Servers, form: tuple[str, ...]) -> None:
    async with http_server(hostile(*form)) as url, servers.client(url) as client:
        seen: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        assert await call(client, "echo", text="héllo ☃") == "héllo ☃"
        await client.call_tool("progress", {"steps": 4}, progress_callback=note)
        assert seen == [1, 2, 3, 4]
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greeting"]
    assert servers.log.tail(10) == []


async def test_the_sdk_s_own_server_is_called(servers: Servers) -> None:
    async with http_server(friendly()) as url:
        for mode in ("auto", "legacy"):
            async with servers.client(url, mode=mode) as client:
                assert await call(client, "add", a=1, b=2) == "3.0"
    assert servers.log.tail(10) == []


@FORMS
async def test_a_large_answer_goes_through_a_file_and_is_replaced(servers: Servers, form: tuple[str, ...]) -> None:
    async with http_server(hostile(*form)) as url, servers.client(url) as client:
        assert await call(client, "huge_text", megabytes=5) == "reduced"
        assert await call(client, "huge_structured", megabytes=2) == "reduced"
        assert len(await call(client, "huge_text", megabytes=0.9)) > 900_000
    assert [size // MIB for size in servers.read] == [5, 2]
    assert servers.spooled == []


@FORMS
async def test_an_answer_over_the_limit_is_an_error_of_its_request(servers: Servers, form: tuple[str, ...]) -> None:
    async with http_server(hostile(*form)) as url, servers.client(url) as client:
        for id_at in ("head", "middle"):
            assert (await error_of(client, "huge_text", megabytes=66, id_at=id_at)).code == MESSAGE_TOO_LARGE
        assert await call(client, "echo", text="still here") == "still here"
    assert servers.read == [] and servers.spooled == []
    assert servers.log.tail(1) == ["The server sent a message of more than 64 MiB; it was skipped."]


@FORMS
async def test_an_answer_that_can_t_be_stored_is_an_error_of_its_request(
    servers: Servers, form: tuple[str, ...]
) -> None:
    servers.raises = OSError("disk full")
    async with http_server(hostile(*form)) as url, servers.client(url) as client:
        assert (await error_of(client, "huge_text", megabytes=2)).code == MESSAGE_NOT_READ
        assert await call(client, "echo", text="still here") == "still here"
    assert servers.spooled == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measures memory")
async def test_a_compressed_bomb_is_not_unpacked(servers: Servers) -> None:
    process = psutil.Process()
    async with http_server(hostile()) as url, servers.client(url) as client:
        assert (await error_of(client, "bomb", megabytes=66)).code == MESSAGE_TOO_LARGE
        gc.collect()
        before = peak = process.memory_info().rss
        calling = asyncio.create_task(error_of(client, "bomb", megabytes=210))
        longest, last = 0.0, time.monotonic()
        while not calling.done():
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert (await calling).code == MESSAGE_TOO_LARGE
        assert await call(client, "echo", text="still here") == "still here"
    assert peak - before < 40 * MIB
    assert longest < 0.25  # 0.02 on a machine that does nothing else


async def test_an_answer_that_is_compressed_all_the_same_is_understood(servers: Servers) -> None:
    async with http_server(hostile()) as url, servers.client(url) as client:
        assert await call(client, "bomb", megabytes=0) == ""
        assert await call(client, "bomb", megabytes=3) == "reduced"
    assert servers.read[0] > 3 * MIB


@FORMS
@pytest.mark.parametrize("where", ["before", "json"])
async def test_a_cut_connection_fails_its_request_alone(servers: Servers, form: tuple[str, ...], where: str) -> None:
    async with http_server(hostile(*form)) as url, servers.client(url) as client:
        sibling = asyncio.create_task(call(client, "wait", seconds=0.5))
        await call(client, "echo", text="the sibling is under way")
        for _ in range(3):
            assert await failure_of(client, "cut", where=where) == HttpFailure("connection_failed")
        assert await sibling == "waited"
        assert await call(client, "echo", text="still here") == "still here"
    assert servers.log.tail(1)[0].startswith("A request failed: ")


@FORMS
async def test_an_event_stream_that_breaks_off_fails_its_request_alone(servers: Servers, form: tuple[str, ...]) -> None:
    async with http_server(hostile(*form)) as url, servers.client(url) as client:
        assert (await error_of(client, "cut", where="sse")).code == CONNECTION_CLOSED
        assert await call(client, "echo", text="still here") == "still here"


async def test_a_server_that_was_away_is_called_again(servers: Servers) -> None:
    async with http_server(hostile("--era", "modern")) as url:
        first = servers.client(url)
        client = await first.__aenter__()
        assert await call(client, "echo", text="one") == "one"
    port = int(url.rsplit(":")[-1].split("/")[0])
    assert await failure_of(client, "echo", text="two") == NOBODY_THERE
    async with http_server(hostile("--era", "modern"), port=port):
        assert await call(client, "echo", text="three") == "three"
    await first.__aexit__(None, None, None)


async def test_nobody_there_is_told(servers: Servers) -> None:
    refused = await refusal_of(servers, "http://127.0.0.1:9/mcp")
    assert refused == NOBODY_THERE
    assert "Connection refused" in servers.log.tail(1)[0]


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (401, "authentication_required", ""),
        (403, "permission_denied", ""),
        (404, "session_lost", ""),
        (500, "connection_failed", "it answered with HTTP status 500"),
        (503, "connection_failed", "it answered with HTTP status 503"),
    ],
)
async def test_statuses_are_told_apart_by_each_request(servers: Servers, status: int, code: str, reason: str) -> None:
    async with http_server(hostile("--forget-session", "99")) as url, servers.client(url, mode="legacy") as client:
        assert await failure_of(client, "status", code=status) == HttpFailure(code, status, reason=reason)
        assert await call(client, "echo", text="still here") == "still here"
    assert f"The server answered with status {status}." in servers.log.tail(9)


async def test_a_server_that_takes_no_more_requests_says_how_long_to_wait(servers: Servers) -> None:
    day = 24 * 3600
    soon = email.utils.formatdate(time.time() + 90, usegmt=True)
    said = {"7": 7, "": 5, "soon": 5, "-3": 5, "0": 0, str(9 * day): day, "Mon, 01 Jan 2024 00:00:00 GMT": 0}
    async with http_server(hostile()) as url, servers.client(url, mode="legacy") as client:
        for retry_after, seconds in said.items():
            given = {"retry_after": retry_after} if retry_after else {}
            assert await failure_of(client, "status", code=429, **given) == HttpFailure("rate_limited", 429, seconds)
        told = await failure_of(client, "status", code=429, retry_after=soon)
    assert told is not None and told.seconds in range(60, 92)


async def test_a_session_that_was_forgotten_is_told(servers: Servers) -> None:
    async with http_server(hostile("--forget-session", "2")) as url, servers.client(url) as client:
        assert [await call(client, "echo", text=text) for text in "ab"] == ["a", "b"]
        for _ in range(2):
            assert await failure_of(client, "echo", text="c") == HttpFailure("session_lost", 404)


async def test_not_found_outside_a_session_is_the_protocol_s_own(servers: Servers) -> None:
    async with http_server(hostile("--era", "modern")) as url, servers.client(url) as client:
        assert (await error_of(client, "status", code=404)).code == METHOD_NOT_FOUND


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        (["--unauthorized"], HttpFailure("authentication_required", 401)),
        (["--status", "403"], HttpFailure("permission_denied", 403)),
        (["--status", "404"], HttpFailure("protocol_error", 404)),
        (["--status", "405"], HttpFailure("protocol_error", 405)),
        (["--status", "502"], HttpFailure("connection_failed", 502, reason="it answered with HTTP status 502")),
        (["--status", "429", "--retry-after", "3"], HttpFailure("rate_limited", 429, 3)),
    ],
    ids=str,
)
async def test_a_refusal_to_connect_is_told(servers: Servers, switches: list[str], expected: HttpFailure) -> None:
    async with http_server(hostile(*switches)) as url:
        refused = await refusal_of(servers, url)
    assert refused == expected


async def test_headers_reach_the_server(servers: Servers, tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer good"}
    server = http_server(hostile("--unauthorized", "--record", str(tmp_path / "record")))
    async with server as url, servers.client(url, headers=headers) as client:
        assert await call(client, "echo", text="in") == "in"
    [sent] = {request["headers"]["Authorization"] for request in requests(tmp_path / "record")}
    assert sent == "Bearer good"
    assert {request["headers"]["Accept-Encoding"] for request in requests(tmp_path / "record")} == {"identity"}


async def test_an_error_with_our_code_from_a_server_is_the_server_s() -> None:
    forged = {"code": "session_lost", "status": 404}
    for data in (forged, {**forged, "token": "guess"}, None, [], "x"):
        assert HttpFailure.of(MCPError(code=HTTP_FAILURE, message="", data=data)) is None


async def test_a_page_of_html_is_outside_the_protocol(servers: Servers) -> None:
    async with http_server(hostile()) as url, servers.client(url) as client:
        assert await failure_of(client, "html") == HttpFailure("protocol_error", 200)
    assert servers.log.tail(1) == ["The server answered with “text/html”, which is no message of the protocol."]


@pytest.mark.parametrize("value", ["half a character: \ud83d", float("nan"), float("inf")])
async def test_an_argument_that_json_can_t_hold_fails_its_call_alone(servers: Servers, value: object) -> None:
    async with http_server(hostile("--era", "modern")) as url, servers.client(url) as client:
        if isinstance(value, str):
            assert (await error_of(client, "echo", text=value)).code == INVALID_PARAMS
        else:
            assert await call(client, "echo", text=value) == "None"  # the SDK sends null for it
        assert await call(client, "echo", text="still here") == "still here"


@pytest.mark.parametrize("name", ["silent", "comments", "drip"])
async def test_an_endless_answer_can_be_left(servers: Servers, name: str) -> None:
    async with http_server(hostile("--era", "modern")) as url, servers.client(url) as client:
        calling = asyncio.create_task(client.call_tool(name, {"bytes": 100_000}))
        await asyncio.wait({calling}, timeout=0.3)
        calling.cancel()
        started = time.monotonic()
        await asyncio.wait({calling})
        assert await call(client, "echo", text="still here") == "still here"
        assert time.monotonic() - started < 3


async def test_a_redirect_to_another_place_is_not_followed(servers: Servers, tmp_path: Path) -> None:
    server = http_server(hostile("--record", str(tmp_path / "other")))
    async with server as other, http_server(hostile("--redirect", other)) as url:
        refused = await refusal_of(servers, url, headers={"Authorization": "Bearer good"})
    assert refused == HttpFailure("connection_failed", 307, reason="it redirects to another place")
    assert requests(tmp_path / "other") == []


@pytest.mark.parametrize(
    "url", ["http://198.51.100.1/mcp", "http://deskhand.invalid/mcp", "http://192.168.0.7:8080/mcp"]
)
async def test_plain_http_to_another_computer_is_refused_before_anything_is_sent(
    servers: Servers, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(*_: object, **__: object) -> None:
        raise AssertionError("it connected")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", connect)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", connect)
    with pytest.raises(AssistantError) as raised:
        async with servers.client(url, headers={"Authorization": "Bearer good"}):
            pass
    assert raised.value.diagnostic.code == "connection_failed"
    assert servers.log.tail(1) == ["Plain http is for servers on this computer only; use https."]


async def test_a_proxy_is_not_used_for_this_computer(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with http_server(hostile()) as url, servers.client(url) as client:
        assert await call(client, "echo", text="direct") == "direct"


@pytest.mark.parametrize("no_proxy", ["", "elsewhere.invalid", "deskhand.invalid"])
async def test_other_computers_are_reached_through_the_proxy_unless_they_are_excepted(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, no_proxy: str
) -> None:
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", no_proxy)
        refused = await refusal_of(servers, "https://deskhand.invalid/mcp")
    assert refused is not None and refused.code == "connection_failed"
    assert refused.reason.startswith(
        "its name is not" if no_proxy == "deskhand.invalid" else "the proxy that the system"
    )
    expected = set[bytes]() if no_proxy == "deskhand.invalid" else {b"CONNECT deskhand.invalid:443 HTTP/1.1\r\n"}
    assert set(asked) == expected


async def test_a_proxy_that_is_not_there_is_told_from_a_server_that_is_not(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    refused = await refusal_of(servers, "https://deskhand.invalid/mcp")
    assert refused is not None and refused.reason.startswith("the proxy that the system names")
    assert "Connection refused" in servers.log.tail(1)[0]


async def test_a_kind_of_proxy_that_is_not_supported_fails_the_request(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "gopher://127.0.0.1:9")
    refused = await refusal_of(servers, "https://deskhand.invalid/mcp")
    assert refused is not None and refused.reason.startswith("the proxy that the system names")
    assert "ProxyError" in servers.log.tail(1)[0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of nobody known for 127.0.0.1 and deskhand.invalid: with its key for the server, alone for the client."""
    return self_signed(tmp_path_factory.mktemp("certificate"))


async def test_certificates_of_a_private_authority_are_trusted_where_its_file_is_named(
    servers: Servers, certificate: tuple[Path, Path]
) -> None:
    async with http_server(hostile("--tls", str(certificate[0]))) as url:
        assert url.startswith("https:")
        refused = await refusal_of(servers, url)
        assert refused == HttpFailure("certificate_refused", reason="it is signed by itself")
        async with servers.client(url, ca_file=str(certificate[1])) as client:
            assert await call(client, "echo", text="over TLS") == "over TLS"


async def test_the_system_s_own_certificates_are_trusted_and_a_name_that_does_not_fit_is_told(
    servers: Servers, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))  # the system's store, for OpenSSL
    async with http_server(hostile("--tls", str(certificate[0]))) as url:
        async with servers.client(url) as client:
            assert await call(client, "echo", text="trusted") == "trusted"
        refused = await refusal_of(servers, url.replace("127.0.0.1", "localhost"))
        assert refused == HttpFailure("certificate_refused", reason="it is for another name")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1].parent / "nothing"))
    with pytest.raises(AssistantError) as raised:
        async with servers.transport("https://127.0.0.1:9/"):
            pass
    assert "the file that SSL_CERT_FILE names can't be read" in str(raised.value)


@asynccontextmanager
async def tunnel_to(port: int, asked: list[str]) -> AsyncIterator[str]:
    """A proxy that leads every CONNECT to a port of this computer, and notes the lines of what it was asked."""
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(2**16):
                writer.write(chunk)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.extend((await reader.readuntil(b"\r\n\r\n")).decode().splitlines())
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for pair in ((reader, there_writer), (there_reader, writer)):
            tasks.add(asyncio.create_task(pump(*pair)))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as proxy:
        yield f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        await asyncio.wait(tasks, timeout=10)


async def test_a_server_is_called_through_the_proxy_that_the_system_names(
    servers: Servers, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    async with http_server(hostile("--tls", str(certificate[0]))) as url:
        port = int(url.split(":")[2].split("/")[0])
        async with tunnel_to(port, asked) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://ann:secret@{proxy}")
            client = servers.client("https://deskhand.invalid/mcp", ca_file=str(certificate[1]))
            async with client as through_proxy:
                assert await call(through_proxy, "echo", text="through") == "through"
    assert asked[0] == "CONNECT deskhand.invalid:443 HTTP/1.1"
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'ann:secret').decode()}" in asked


async def test_a_file_that_holds_no_certificates_is_told(servers: Servers, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    for file in (tmp_path / "empty.pem", tmp_path / "missing.pem"):
        with pytest.raises(AssistantError) as raised:
            async with servers.client("https://deskhand.invalid/mcp", ca_file=file):
                pass
        assert raised.value.diagnostic.code == "configuration_invalid"


async def test_nothing_secret_and_no_text_of_a_server_is_logged(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with http_server(hostile("--unauthorized")) as url:
        headers = {"Authorization": "Bearer good", "X-Key": "canary-header"}
        async with servers.client(f"{url}?key=canary-query", headers=headers) as client:
            await call(client, "echo", text="canary-argument")
            await client.call_tool("error", {"text": "canary-result"})
            for name in ("html", "nonsense"):
                await error_of(client, name, text="canary-argument")
            for code in (401, 500):
                await failure_of(client, "status", code=code)
            for where in ("before", "json", "sse"):
                await error_of(client, "cut", where=where)
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("asyncio", "httpcore"))]
    everything = "\n".join([*ours, *servers.log.tail(1000)])
    assert "canary" not in everything
    assert "secret text" not in everything
    assert "Bearer" not in everything
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_the_sdk_s_warnings_go_to_the_server_s_log_without_what_was_sent(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    other = Servers(servers.spool_folder)
    async with http_server(hostile()) as url, servers.client(url) as client, other.client(url):
        error = await error_of(client, "nonsense")
    assert error.code == PARSE_ERROR
    assert servers.log.tail(9) == ["Error parsing JSON response (ValidationError)"]
    assert other.log.tail(9) == []
    assert not caplog.records


class Failing(httpx2.Auth):
    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        raise AssistantError("authentication_required", operation="auth")
        yield request


async def test_what_a_sign_in_raises_fails_the_request_alone(servers: Servers) -> None:
    async with http_server(hostile()) as url:
        refused = await refusal_of(servers, url, auth=Failing())
    assert refused == HttpFailure("authentication_required")


class Stream(httpx2.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content


def guarded(servers: Servers, answer: Any) -> GuardedClient:
    return GuardedClient(
        servers.log,
        lambda: IncomingMessage(servers.spool_folder, None),
        answer_apart=None,
        transport=httpx2.MockTransport(answer),
    )


async def test_the_stream_of_a_server_s_own_messages_is_opened_again_however_long_it_takes(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "_SHORTEST_PAUSE", 0.001)
    monkeypatch.setattr(http_client, "_LONGEST_PAUSE", 0.01)
    attempts: list[float | None] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        attempts.append(request.extensions["timeout"]["read"])
        if len(attempts) < 5:
            raise httpx2.ConnectError("away")
        if len(attempts) < 8:
            return httpx2.Response(502)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream(b"data: 1\n\n"))

    async with (
        asyncio.timeout(20),
        guarded(servers, answer) as client,
        client.stream("GET", "http://x/mcp") as response,
    ):
        assert await response.aread() == b"data: 1\n\n"
    assert attempts == [300.0] * 8


async def test_a_server_that_doesn_t_answer_our_leave_is_not_waited_for(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "_LAST_REQUEST", 0.1)

    async def hang(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(600)
        raise AssertionError

    async with asyncio.timeout(10), guarded(servers, hang) as client:
        assert (await client.request("DELETE", "http://x/mcp")).status_code == 204


async def test_a_compression_that_was_not_asked_for_fails_the_request(servers: Servers) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        kind = b"Content-Type: application/json\r\nContent-Encoding: br\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n" + kind + b"Content-Length: 4\r\nConnection: close\r\n\r\nabcd")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        refused = await refusal_of(servers, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
    assert refused == HttpFailure("connection_failed")


async def test_the_older_transport_is_used_where_it_is_asked_for(servers: Servers) -> None:
    async with http_server(friendly("--sse")) as url:
        transport = servers.transport(url, sse=True)
        async with asyncio.timeout(60), Client(transport, mode="legacy") as client:
            assert await call(client, "echo", text="one") == "one"
            assert transport.ended is not None and not transport.ended.is_set()
        assert transport.ended.is_set()


async def test_the_older_transport_tells_when_its_stream_ends(servers: Servers) -> None:
    async with asyncio.timeout(60):
        async with http_server(friendly("--sse")) as url:
            transport = servers.transport(url, sse=True)
            opened = Client(transport, mode="legacy")
            client = await opened.__aenter__()
            assert await call(client, "echo", text="one") == "one"
            waiting = asyncio.create_task(error_of(client, "slow", seconds=60, steps=1))
            await call(client, "echo", text="the other is under way")
        error = await waiting
        # Where the answer to its request was still on its way, that is what is told to have failed.
        failure = HttpFailure.of(error)
        assert error.code == CONNECTION_CLOSED or (failure is not None and failure.code == "connection_failed")
        assert transport.ended is not None
        await transport.ended.wait()
        await opened.__aexit__(None, None, None)


async def test_nobody_there_is_told_by_the_older_transport(servers: Servers) -> None:
    with pytest.raises(AssistantError) as raised:
        async with servers.client("http://127.0.0.1:9/sse", sse=True):
            pass
    assert raised.value.diagnostic.code == "connection_failed"
    async with http_server(hostile("--status", "401")) as url:
        with pytest.raises(AssistantError):
            async with servers.client(url, sse=True):
                pass


async def test_a_request_that_the_older_transport_can_t_send_is_answered(servers: Servers) -> None:
    async with http_server(friendly("--sse")) as url, servers.client(url, sse=True, mode="legacy") as client:
        assert (await error_of(client, "echo", text="\ud83d")).code == INVALID_PARAMS
        assert await call(client, "echo", text="still here") == "still here"
