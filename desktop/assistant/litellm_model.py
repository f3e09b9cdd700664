"""A language model behind any provider that litellm knows, or behind an OpenAI-compatible address.

Used by ``core.py`` and the command line; nothing else imports litellm. Its import takes seconds, and it leaves imports, token
counts and tasks to the event loop it runs on: so it lives in a thread of its own, with a loop of its own, and what it streams is
handed over. The window never waits for it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import gc
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from desktop.assistant.answer_assembly import Answer
from desktop.assistant.context_window import estimated_tokens
from desktop.assistant.conversation import Notice, Usage
from desktop.assistant.events import PartAdded
from desktop.assistant.language_model import AnswerFinished, ModelEvent, ModelRequest
from desktop.assistant.model_list import is_loopback, needs_key, provider_of
from desktop.assistant.provider_errors import (
    diagnosed,
    notice,
    refused_tool,
    refuses_deferral,
    refuses_images,
    told_window,
)
from desktop.assistant.provider_messages import deferrable, dialect_of, to_messages, to_tools
from desktop.assistant.schema_projection import Dialect
from desktop.errors import AssistantError

_log = logging.getLogger(__name__)

_IDLE_LIMIT = 600.0
"""Seconds without anything from the model. A large one on a small computer thinks for minutes before its first word."""
_CONNECT_LIMIT = 20.0
#: Share of a conversation that is tried where a model took not all of it and doesn't say how much it takes.
_SMALLER = 0.7
#: Loggers that would write requests, addresses with keys in them, or banners.
_NOISY_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpx2", "httpcore", "httpcore2", "openai")
#: Anthropic's cache wants marks; the others cache by themselves.
_CACHE_MARKS = [{"location": "message", "role": "system"}, {"location": "message", "index": -1}]
_CACHE_MARK = {"type": "ephemeral"}

Value = TypeVar("Value")


def preload() -> None:
    """Begins to import litellm in its thread, without waiting for it."""
    _runtime()


class LitellmModel:
    """A model by litellm's name, such as ``anthropic/claude-sonnet-5-5``; ``openai/NAME`` with `api_base` for an address.

    Without `api_key` a provider's key is taken from its environment variable; an address gets none, never another's.
    """

    def __init__(self, name: str, *, api_base: str = "", api_key: str = "", title: str = "") -> None:
        self.name = name
        self.title = title or name
        self._api_base = api_base
        self._api_key = api_key
        self._provider = provider_of(name)
        self._prefix = self._provider.prefix if self._provider else name.partition("/")[0]
        self._dialect: Dialect = dialect_of(name, api_base)
        self._takes_images = True
        self._takes_deferred = self._prefix == "anthropic" and not api_base
        self._refused_tools: set[str] = set()
        self._learned_window: int | None = None

    @property
    def context_window(self) -> int | None:
        """Tokens the model takes: learned from a refusal, else by litellm's table; None where that doesn't know, or is not there
        yet."""
        if self._learned_window is not None:
            return self._learned_window
        litellm = _runtime().litellm
        if litellm is None or self._api_base:
            return None
        known: dict[str, Any] = litellm.model_cost.get(self.name) or litellm.model_cost.get(
            self.name.partition("/")[2], {}
        )
        tokens = known.get("max_input_tokens") or known.get("max_tokens")
        return tokens if isinstance(tokens, int) else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """One answer, as it comes. Raises AssistantError with a ``model_…`` code.

        A tool or an image that the provider refuses is set aside for this model, with a notice, and the request is made again.
        """
        key = self._key()
        runtime = _runtime()
        litellm = await runtime.ready()
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[ModelEvent | None] = asyncio.Queue()

        def emit(event: ModelEvent | None) -> None:
            with suppress(RuntimeError):  # the loop has closed meanwhile; nobody listens any more
                loop.call_soon_threadsafe(events.put_nowait, event)

        answering = asyncio.run_coroutine_threadsafe(self._answer(litellm, key, request, emit), runtime.loop)
        answering.add_done_callback(lambda _: emit(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            answering.result()
        finally:
            answering.cancel()

    def _key(self) -> str | None:
        if self._api_key:
            return self._api_key
        if self._api_base:
            return "none"  # litellm would send the key of the environment to the address
        key = os.environ.get(self._provider.key_variable) if self._provider else None
        if not key and needs_key(self.name, self._api_base):
            raise AssistantError("model_key_missing", operation="model")
        return key

    async def _answer(
        self, litellm: Any, key: str | None, request: ModelRequest, emit: Callable[[ModelEvent], None]
    ) -> None:
        """Runs in litellm's thread: hands one answer to `emit`. Raises AssistantError."""
        while True:
            answer = Answer(emit)
            try:
                await self._ask(litellm, key, request, answer)
                break
            except Exception as error:  # litellm's own, the provider's, the network's: see provider_errors
                if self._takes_deferred and not answer.began and refuses_deferral(error):
                    _log.info("%s: takes no deferred tools", self.name)
                    self._takes_deferred = False
                    emit(PartAdded(notice("model_refused_deferral")))
                    continue
                told = None if answer.began else self._set_aside(error, request)
                if told is None:
                    failed = diagnosed(error, began=answer.began, model=self.name)
                    if failed.diagnostic.code == "model_context_exceeded":
                        self._learned_window = told_window(error) or int(_SMALLER * estimated_tokens(request))
                    raise failed from None
                emit(PartAdded(told))
        emit(AnswerFinished(self._usage(litellm, answer.usage)))

    async def _ask(self, litellm: Any, key: str | None, request: ModelRequest, answer: Answer) -> None:
        tools = [each for each in request.tools if each.name not in self._refused_tools]
        deferred = deferrable(request, tools) if self._defers(litellm) else frozenset[str]()
        messages = to_messages(request, provider=self._prefix, images=self._takes_images, deferred=deferred)
        import httpx  # litellm's

        arguments: dict[str, Any] = {
            "model": self.name,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            # Whatever the environment says: a provider's key goes to that provider.
            "api_base": self._api_base or (self._provider.address if self._provider else None),
            "api_key": key,
            "timeout": httpx.Timeout(_IDLE_LIMIT, connect=_CONNECT_LIMIT),
            "max_retries": 0,
            "drop_params": True,
        }
        if tools:
            arguments["tools"] = to_tools(tools, dialect=self._dialect, deferred=deferred)
        if self._prefix == "anthropic" or self.name.startswith("openrouter/anthropic/"):
            arguments["cache_control_injection_points"] = _CACHE_MARKS
            if messages[-1]["role"] == "tool" and isinstance(messages[-1]["content"], list):
                messages[-1]["cache_control"] = _CACHE_MARK  # litellm would mark a reference, and lose it there
        client = response = None
        try:
            if self._prefix == "openai" and is_loopback(self._api_base):
                client = arguments["client"] = _direct_client(self._api_base, key)
            response = await _within_idle_limit(litellm.acompletion(**arguments))
            chunks = aiter(response)
            while (chunk := await _within_idle_limit(anext(chunks, None))) is not None:
                answer.take(chunk)
            answer.finish(response)
        finally:
            if response is not None:
                await response.aclose()
            if client is not None:
                await client.close()

    def _defers(self, litellm: Any) -> bool:
        """Whether the model takes deferred tools: by litellm's table, until it refuses them."""
        return self._takes_deferred and litellm.supports_tool_search(self.name.partition("/")[2], "anthropic")

    def _set_aside(self, error: Exception, request: ModelRequest) -> Notice | None:
        """What the provider refused of the request, set aside and told; None: nothing that can be left out."""
        tools = [each for each in request.tools if each.name not in self._refused_tools]
        if (refused := refused_tool(error, tools)) is not None:
            tool, place = refused
            self._refused_tools.add(tool.name)
            return notice("model_refused_tool", tool=tool.name, where=place)
        if self._takes_images and refuses_images(error, request):
            self._takes_images = False
            return notice("model_refused_images")
        return None

    def _usage(self, litellm: Any, usage: Any) -> Usage:
        if usage is None:
            return Usage()
        cost = getattr(usage, "cost", None)
        if cost is None and not self._api_base:
            with suppress(Exception):  # it raises for a model whose price it doesn't know
                cost = sum(litellm.cost_per_token(model=self.name, usage_object=usage))
        cached = getattr(usage.prompt_tokens_details, "cached_tokens", None)
        return Usage(usage.prompt_tokens, usage.completion_tokens, cached, cost)


class _Runtime:
    """litellm, once it is imported, and the loop that everything of it runs on.

    A daemon thread: quitting waits neither for an import nor for a provider.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._imported: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._imported.set_running_or_notify_cancel()  # one caller's cancellation must not cancel it for the others
        threading.Thread(target=self._run, name="litellm", daemon=True).start()

    @property
    def litellm(self) -> Any:
        """The module, or None while it is being imported."""
        return self._imported.result() if self._imported.done() else None

    async def ready(self) -> Any:
        return await asyncio.wrap_future(self._imported)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self._imported.set_result(_import_litellm())
        except BaseException as error:  # carried to whoever waits
            self._imported.set_exception(error)
        self.loop.run_forever()


@functools.cache
def _runtime() -> _Runtime:
    """The one runtime: a module is imported once."""
    return _Runtime()


def _import_litellm() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import asks the network for a table of prices
    # It makes a million objects that live as long as the process. The garbage collector would look through them during the
    # import and ever after, and stop the window for up to 0.3 s each time.
    gc.disable()
    try:
        import litellm as module
    finally:
        gc.enable()
    gc.freeze()

    litellm: Any = module
    litellm.suppress_debug_info = True
    litellm.disable_aiohttp_transport = True
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = (
        sys.maxsize
    )  # else a hundred equal pieces, such as rows of zeros, end an answer
    for name in _NOISY_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.CRITICAL + 1)
    return litellm


def _direct_client(api_base: str, key: str | None) -> Any:
    """A client that asks no proxy: those of the environment know nothing of this computer's own addresses."""
    import openai

    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    return openai.AsyncOpenAI(base_url=api_base, api_key=key, http_client=http, max_retries=0)


async def _within_idle_limit(awaitable: Awaitable[Value]) -> Value:
    async with asyncio.timeout(_IDLE_LIMIT):
        return await awaitable
