"""The SDK's client with three things mended: how it agrees with a server on the protocol, what becomes of a result that does not
fit its schema, and what one part outside the protocol does to a list or a result. It also notes the end of each request in the
server's log. Used by the connection.

Private members of the SDK are used; its version is pinned for that.
"""

from __future__ import annotations

import asyncio
import importlib
import marshal
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, cast

from mcp import Client, ClientSession, MCPError
from mcp.client._probe import negotiate_auto
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import METHOD_NOT_FOUND, CallToolResult, GetPromptResult, ListToolsResult, ReadResourceResult
from mcp_types.methods import parse_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from desktop.catalog_entries import Kind
from desktop.errors import AssistantError
from desktop.host.exact_json import take_exact_text
from desktop.host.http_failure import HttpFailure
from desktop.host.large_messages import LARGE_META
from desktop.host.readable_result import readable_prompt, readable_read, readable_result
from desktop.host.server_log import ServerLog

Result = TypeVar("Result")

# Here, where the host is imported in a thread: else the first connection would import it on the loop, which takes 0.1 s.
importlib.import_module("anyio._backends._asyncio")
#: Seconds a server may leave the newer era's question unanswered before it is asked in the older way as well.
_PATIENCE = 3.0
#: Kind of entry -> method, its key in the answer, its attribute in the SDK's result.
_LISTS: dict[Kind, tuple[str, str, str]] = {
    "tool": ("tools/list", "tools", "tools"),
    "resource": ("resources/list", "resources", "resources"),
    "template": ("resources/templates/list", "resourceTemplates", "resource_templates"),
    "prompt": ("prompts/list", "prompts", "prompts"),
}
#: The answer that the present task has received last, as it came.
_answer: ContextVar[dict[str, Any] | None] = ContextVar("answer", default=None)
#: The text of the structured content in that answer.
_exact_text: ContextVar[str | None] = ContextVar("exact_text", default=None)


@dataclass(frozen=True)
class Page:
    entries: list[Any]
    """The SDK's values: Tool, Resource, ResourceTemplate or Prompt."""
    next_cursor: str | None
    left_out: int
    """How many entries were outside the protocol."""
    lifetime: float | None = None
    """Seconds for which the server says the page is good (``ttlMs``); None where it says nothing, which is also what the SDK's
    servers mean by 0. Its ``cacheScope`` asks nothing of us: what Deskhand keeps is one person's, on disk too."""


@dataclass
class SdkClient(Client):
    """The SDK's client, entered like it.

    The SDK waits ten seconds for a server that is silent when it is asked in the newer way; this one asks in the older way as
    well after three, and takes the first good answer. The SDK throws a finished result away when it does not fit its tool's
    output schema, and checks that on the loop; this one leaves the check to its user. The SDK refuses a whole page for one
    entry of it; `page` does not.

    Attributes:
        log: Of the server.
        only_legacy: The server left the newer era's question unanswered and answered the older one's.
        bad_output_schemas: By tool: what was given as an output schema and can't be one.
    """

    log: ServerLog = field(kw_only=True)
    only_legacy: bool = field(default=False, init=False)
    bad_output_schemas: dict[str, Any] = field(default_factory=dict[str, Any], init=False)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            session = await self._build_session(stack)
            session.validate_tool_result = _keep
            _note_answers(session, self.log)
            await stack.enter_async_context(session)
            self.only_legacy = await _negotiate(session, legacy=self.mode == "legacy")
            self._session = session
            self._exit_stack = stack.pop_all()
        return self

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        progress_callback: ProgressFnT,
        told: Callable[[ValidationError], None],
    ) -> tuple[CallToolResult, str | None]:
        """Calls a tool: its result, and the text of its structured content as the server wrote it (None: not known).

        Of a result that is outside the protocol what can be read is returned, and `told` hears what is wrong. Raises what the
        SDK raises.
        """
        _exact_text.set(None)
        send = self.call_tool(name, arguments, progress_callback=progress_callback)
        result = await self._readable(send, readable_result, told)
        return result, _exact_text.get()

    async def read(self, uri: str, told: Callable[[ValidationError], None]) -> ReadResourceResult:
        """Reads a resource. Of a result outside the protocol what can be read is returned, and `told` hears what is wrong.

        Raises AssistantError ``protocol_error`` for one of which nothing can be read, and what the SDK raises.
        """
        return await self._readable(self.read_resource(uri), lambda answer: readable_read(answer, uri), told)

    async def prompt(
        self, name: str, arguments: dict[str, str], told: Callable[[ValidationError], None]
    ) -> GetPromptResult:
        """Fetches a prompt. Returns and raises like `read`."""
        return await self._readable(self.get_prompt(name, arguments), readable_prompt, told)

    async def _readable(
        self,
        sent: Coroutine[Any, Any, Result],
        read: Callable[[dict[str, Any]], Result | None],
        told: Callable[[ValidationError], None],
    ) -> Result:
        _answer.set(None)
        try:
            return await sent
        except ValidationError as fault:
            answer = _answer.get()
            told(fault)
            readable = None if answer is None else read(answer)
            if readable is None:
                raise AssistantError("protocol_error") from fault
            return readable

    async def page(self, kind: Kind, cursor: str | None) -> Page:
        """A page of a list. A method that the server doesn't know gives an empty one: many offer resources and no templates.

        Raises what the SDK raises.
        """
        method, key, attribute = _LISTS[kind]
        fetch = {
            "tool": self.list_tools,
            "resource": self.list_resources,
            "template": self.list_resource_templates,
            "prompt": self.list_prompts,
        }[kind]
        try:
            result = await fetch(cursor=cursor)
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return Page([], None, 0)
        except ValidationError:
            answer = _answer.get()
            if answer is None or not isinstance(answer.get(key), list):
                raise
            listed = cast("list[Any]", answer[key])
            fitting = [entry for entry in map(self._mended, listed) if self._fits(method, {**answer, key: [entry]})]
            result = parse_server_result(method, self.protocol_version, {**answer, key: fitting})
            if isinstance(result, ListToolsResult):
                # What the client learns from a list that passes.
                self.session._absorb_tool_listing(result, complete=False)  # pyright: ignore[reportPrivateUsage]
            return self._page(result, attribute, len(listed) - len(fitting))
        return self._page(result, attribute, 0)

    def _page(self, result: Any, attribute: str, left_out: int) -> Page:
        entries, cursor = getattr(result, attribute), result.next_cursor
        if self.protocol_version not in MODERN_PROTOCOL_VERSIONS:  # the older era has no such hints
            return Page(entries, cursor, left_out)
        return Page(entries, cursor, left_out, result.ttl_ms / 1000 or None)

    def _mended(self, entry: Any) -> Any:
        """A tool whose input schema says that it is an object's, which some servers leave out, and without an output schema that
        can't be one; anything else as it is."""
        if not isinstance(entry, dict) or "inputSchema" not in entry:
            return cast("Any", entry)
        tool = cast("dict[str, Any]", entry)
        if isinstance(tool["inputSchema"], dict):
            tool = {**tool, "inputSchema": {"type": "object", **cast("dict[str, Any]", tool["inputSchema"])}}
        whole = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if "outputSchema" not in tool or self._fits("tools/list", whole):
            return tool
        self.bad_output_schemas[str(tool.get("name"))] = tool["outputSchema"]
        return {name: value for name, value in tool.items() if name != "outputSchema"}

    def _fits(self, method: str, answer: dict[str, Any]) -> bool:
        try:
            parse_server_result(method, self.protocol_version, answer)
        except ValidationError:
            return False
        return True


async def _keep(name: str, result: CallToolResult) -> None:
    """In place of the SDK's check of a result."""


def _note_answers(session: ClientSession, log: ServerLog) -> None:
    """Has each answer noted in the context of the task that asked, and in the log how its request ended."""
    dispatcher: Any = session._dispatcher  # pyright: ignore[reportPrivateUsage]
    send: Callable[..., Awaitable[dict[str, Any]]] = dispatcher.send_raw_request
    id_: ContextVar[int | None] = ContextVar("id", default=None)
    if isinstance(dispatcher, JSONRPCDispatcher):  # the built-in server's requests have no ids

        def note_id(allocate: Callable[[], int] = dispatcher._allocate_id) -> int:  # pyright: ignore[reportPrivateUsage]
            number = allocate()
            id_.set(number)
            return number

        dispatcher._allocate_id = note_id  # pyright: ignore[reportPrivateUsage]

    async def send_and_note(method: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        begun = time.perf_counter()
        size: int | None = 0
        outcome = "ok"
        try:
            answer = await send(method, *arguments, **options)
            exact_text = take_exact_text(answer)
            size = _size(answer)
            if answer.get("isError") is True:
                outcome = "the tool reports an error"
        except MCPError as error:
            failure = HttpFailure.of(error)
            outcome = failure.code if failure else f"error {error.code}"
            raise
        except asyncio.CancelledError:
            outcome = "stopped"
            raise
        finally:
            log.note_request(method, id_.get(), time.perf_counter() - begun, size, outcome)
        _answer.set(answer)
        _exact_text.set(exact_text)
        return answer

    dispatcher.send_raw_request = send_and_note


def _size(answer: dict[str, Any]) -> int | None:
    """About how many bytes an answer had; None: so many that it was reduced. Takes a millisecond a MiB."""
    meta = answer.get("_meta")
    if isinstance(meta, dict) and LARGE_META in meta:
        return None
    try:
        return len(marshal.dumps(answer, 2))
    except ValueError:  # the built-in server's answers never were text
        return 0


async def _negotiate(session: ClientSession, *, legacy: bool) -> bool:
    """Whether the newer era's question stayed unanswered.

    Raises AssistantError ``protocol_unsupported``, and what the SDK raises.
    """
    attempts: list[asyncio.Task[Any]] = []
    try:
        if legacy:
            await session.initialize()
            return False
        probe = asyncio.create_task(negotiate_auto(session))
        attempts.append(probe)
        await asyncio.wait({probe}, timeout=_PATIENCE)
        if not probe.done():
            handshake = asyncio.create_task(session.initialize())
            attempts.append(handshake)
            await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
            agreed = handshake.done() and handshake.exception() is None
            if agreed and not probe.done():
                return True
            if agreed:  # both at once, and the older one counts now: ask again in the newer way alone
                await probe
                await negotiate_auto(session)
        await probe
        return False
    except RuntimeError as error:  # the SDK's, for a version that it doesn't know
        raise AssistantError("protocol_unsupported", operation="connect") from error
    finally:
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
