"""What servers ask the person while a tool runs: a form to fill, or a page to visit (MCP specification, elicitation).

Used by the connection, which hands over what the SDK receives; the window shows what is asked as a `Respondent`. One question is
open at a time, whichever server asks, in the order of arrival. While a server's question waits, the time limits of the calls to
it stand still. A question ends with the last call that runs. The model neither sees questions nor answers them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, cast

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
)

from desktop import links
from desktop.errors import AssistantError
from desktop.host.diagnostics import known
from desktop.host.elicitation_form import FormField, UnusableForm, Value, fault_of, fields_of, is_too_large
from desktop.host.server_config import is_loopback
from desktop.host.server_log import ServerLog
from desktop.host.time_limits import Limits
from desktop.links import Link
from desktop.visible_text import plain

Action = Literal["accept", "decline", "cancel"]
Answer = TypeVar("Answer")

#: Questions of one server that wait, the open one among them.
_MOST_PENDING = 4
_MOST_LINES = 20
_LONGEST_MESSAGE = 2000
_MOST_PAGES = 3
_LONGEST_ID = 256


@dataclass(frozen=True, slots=True)
class FormQuestion:
    server: str
    message: str
    """The server's words: at most 20 lines and 2,000 characters, without hidden ones."""
    fields: tuple[FormField, ...]


@dataclass(frozen=True, slots=True)
class PageQuestion:
    server: str
    message: str
    link: Link
    """The page to visit: what is shown is what is opened."""


class Respondent(Protocol):
    """The person, as servers' questions reach them. A cancelled wait closes what was shown."""

    async def fill(self, question: FormQuestion) -> Mapping[str, Value] | Literal["decline", "cancel"]:
        """What was entered and fits the fields, or that the person refused, or closed it."""
        ...

    async def visit(self, question: PageQuestion) -> Action:
        """``accept``: the person has opened the page, or will. Nothing is opened without them."""
        ...

    async def wait_for_pages(self, server: str) -> bool:
        """Waits until the person says that the pages they visited are done with; False when they give up."""
        ...


class Desk:
    """Lets one question at a time reach the person. One for all servers.

    Attributes:
        respondent: Who answers; None where there is nobody.
    """

    def __init__(self, respondent: Respondent | None = None) -> None:
        self.respondent = respondent
        self._free = asyncio.Lock()

    async def put(self, ask: Callable[[Respondent], Awaitable[Answer]]) -> Answer:
        """Puts a question when those before it are answered. Only where there is a respondent."""
        assert self.respondent is not None
        async with self._free:
            return await ask(self.respondent)


class ServerQuestions:
    """The questions of one server's connection."""

    def __init__(self, server: str, desk: Desk, log: ServerLog) -> None:
        self._server = server
        self._desk = desk
        self._log = log
        self._calls: list[Limits] = []
        self._pending: set[asyncio.Task[Any]] = set()
        self._waits: list[tuple[str, asyncio.Event]] = []

    @property
    def can_ask(self) -> bool:
        """Whether anybody would answer: what is declared to the server."""
        return self._desk.respondent is not None

    @contextmanager
    def call(self, limits: Limits) -> Generator[None]:
        """Around a running tool call: meanwhile its server may ask."""
        self._calls.append(limits)
        if self._pending:
            limits.pause()
        try:
            yield
        finally:
            self._calls.remove(limits)
            if not self._calls:
                for question in self._pending:
                    question.cancel()

    async def elicit(self, context: object, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """The SDK's callback, for both eras of the protocol."""
        if not self._calls or not self.can_ask:
            return ErrorData(code=INVALID_REQUEST, message="Questions are answered only while a tool is being called.")
        if len(self._pending) >= _MOST_PENDING:
            return ErrorData(code=INVALID_REQUEST, message=f"There are {_MOST_PENDING} questions of yours already.")
        if isinstance(params, ElicitRequestFormParams):
            try:
                question = FormQuestion(self._server, _message(params.message), fields_of(params.requested_schema))
            except UnusableForm as error:
                self._log.append(f"a form was refused: {error}", level="warning")
                return ErrorData(code=INVALID_PARAMS, message=f"The form can't be shown: {error}.")
            return await self._asked(lambda respondent: _fill(respondent, question))
        link = _page(params.url)
        if link is None:
            self._log.append("a page to visit was refused: its address must not be opened", level="warning")
            return ErrorData(code=INVALID_PARAMS, message="Only https pages can be visited, or http on this computer.")
        page = PageQuestion(self._server, _message(params.message), link)
        return await self._asked(lambda respondent: _visit(respondent, page))

    async def pages(self, error: AssistantError, data: Any) -> AssistantError:
        """What to raise for a call that was refused until the person has visited pages (error -32042, revision 2025-11-25).

        Each page is put to the person; when all are accepted, waits until they are done with, which the server may say as well.
        The call is never repeated: the model decides. Without anybody to ask, `error` itself.
        """
        if not self.can_ask:
            return error
        pages = _pages(data, self._server)
        if pages is None:
            return known("protocol_error", "call", self._server)
        # Before anything is shown: the server may say that a page is done with while the next one is still being asked about.
        waits = [(id_, asyncio.Event()) for id_, _ in pages]
        self._waits += waits
        try:
            for _, page in pages:
                if (await self._asked(lambda respondent, page=page: _visit(respondent, page))).action != "accept":
                    return known("elicitation_declined", "call", self._server)
            all_completed = asyncio.gather(*(completed.wait() for _, completed in waits))
            asked = asyncio.ensure_future(self._asked(self._pages_done))
            try:
                await asyncio.wait((all_completed, asked), return_when=asyncio.FIRST_COMPLETED)
                finished = all_completed.done() or asked.result().action == "accept"
            finally:
                all_completed.cancel()
                asked.cancel()
                await asyncio.gather(all_completed, asked, return_exceptions=True)
        finally:
            for wait in waits:
                self._waits.remove(wait)
        return known("elicitation_completed" if finished else "elicitation_declined", "call", self._server)

    def completed(self, id_: str) -> None:
        """The server says that the person is done with a page."""
        for waited_for, event in self._waits:
            if waited_for == id_:
                event.set()

    async def _asked(self, ask: Callable[[Respondent], Awaitable[ElicitResult]]) -> ElicitResult:
        """Puts a question; ``cancel`` when the last call ended meanwhile."""
        if not self._pending:
            for limits in self._calls:
                limits.pause()
        question = asyncio.create_task(self._desk.put(ask))
        self._pending.add(question)
        try:
            await asyncio.wait({question})
        finally:
            question.cancel()  # without effect on one that is answered
            self._pending.discard(question)
            if not self._pending:
                for limits in self._calls:
                    limits.resume()
        return ElicitResult(action="cancel") if question.cancelled() else question.result()

    async def _pages_done(self, respondent: Respondent) -> ElicitResult:
        return ElicitResult(action="accept" if await respondent.wait_for_pages(self._server) else "cancel")


async def _fill(respondent: Respondent, question: FormQuestion) -> ElicitResult:
    answer = await respondent.fill(question)
    if isinstance(answer, str):
        return ElicitResult(action=answer)
    content = dict(answer)
    # The window has checked it; a server gets nothing that it didn't ask for all the same.
    if fault_of(question.fields, content) is not None or is_too_large(content):
        raise ValueError("the answer doesn't fit the form")
    return ElicitResult(action="accept", content=cast("Any", content))


async def _visit(respondent: Respondent, question: PageQuestion) -> ElicitResult:
    return ElicitResult(action=await respondent.visit(question))


def _message(text: str) -> str:
    lines = plain(text[: 4 * _LONGEST_MESSAGE]).strip().split("\n")
    return "\n".join(lines[:_MOST_LINES])[:_LONGEST_MESSAGE]


def _page(url: str) -> Link | None:
    """The page of a URL that a server asks to visit: https, or http on this computer; None for any other."""
    link = links.check(url.strip().replace(" ", "%20"))
    if link is None or (link.url.startswith("http:") and not is_loopback(link.url)):
        return None
    return link


def _pages(data: Any, server: str) -> list[tuple[str, PageQuestion]] | None:
    """The pages that an error names, one to three, each with its id; None when they are not as the protocol has them."""
    listed = cast("dict[str, Any]", data).get("elicitations") if isinstance(data, dict) else None
    if not isinstance(listed, list) or not 0 < len(cast("list[Any]", listed)) <= _MOST_PAGES:
        return None
    pages: dict[str, PageQuestion] = {}
    for each in cast("list[Any]", listed):
        given = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        mode, message, url, id_ = (given.get(name) for name in ("mode", "message", "url", "elicitationId"))
        link = _page(url) if isinstance(url, str) else None
        if mode != "url" or not isinstance(message, str) or link is None:
            return None
        if not isinstance(id_, str) or not 0 < len(id_) <= _LONGEST_ID or id_ in pages:
            return None
        pages[id_] = PageQuestion(server, _message(message), link)
    return list(pages.items())
