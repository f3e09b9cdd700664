"""One answer of a model, put together from the chunks that litellm streams. Used by ``litellm_model.py`` alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from desktop.assistant.events import ReasoningDelta, TextDelta
from desktop.assistant.language_model import ModelEvent, ToolCallRequested
from desktop.errors import AssistantError


class Answer:
    """Puts one answer together from its chunks.

    Attributes:
        began: Whether anything of it has been handed on.
        usage: What the provider told, or None.
    """

    def __init__(self, emit: Callable[[ModelEvent], None]) -> None:
        self.began = False
        self.usage: Any = None
        self._emit = emit
        self._calls: list[_Call] = []
        self._finish_reason: str | None = None

    def take(self, chunk: Any) -> None:
        self.usage = getattr(chunk, "usage", None) or self.usage
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        self._finish_reason = choice.finish_reason or self._finish_reason
        delta = choice.delta
        if reasoning := getattr(delta, "reasoning_content", None):
            self._hand_on(ReasoningDelta(reasoning))
        if delta.content:
            self._hand_on(TextDelta(delta.content))
        for piece in delta.tool_calls or ():
            self._call_of(piece).add(piece.function)

    def finish(self, response: Any) -> None:
        """Hands on the calls. Raises AssistantError where the answer is not a whole one."""
        if not any(getattr(chunk, "usage", None) for chunk in response.chunks):
            self.usage = None  # litellm's own estimate
        if self._finish_reason == "content_filter" and not self.began:
            raise AssistantError("model_refused_request", operation="model")
        # Where the last chunk holds Google's calls, litellm doesn't note that it was the last.
        ended = response.received_finish_reason or response.intermittent_finish_reason or self._calls
        if not ended or self._finish_reason in ("length", "content_filter"):
            raise AssistantError("model_failed", operation="model")
        if not all(call.name and (ended is not self._calls or call.is_complete) for call in self._calls):
            raise AssistantError("model_failed", operation="model")
        for number, call in enumerate(self._calls):
            self._hand_on(ToolCallRequested(call.id or f"call_{number}", call.name, call.arguments or "{}"))

    def _hand_on(self, event: ModelEvent) -> None:
        self.began = True
        self._emit(event)

    def _call_of(self, piece: Any) -> _Call:
        """The call a piece belongs to. Servers number calls with gaps, all alike, or not at all; give ids once, each time or
        never; and some send each call whole."""
        index, id_, name = piece.index, piece.id or "", piece.function.name or ""
        last = next((call for call in reversed(self._calls) if index is None or call.index == index), None)
        if last is not None:
            another = (id_ and last.id and id_ != last.id) or (not id_ and name and last.name and last.is_complete)
            if not another:
                last.id = last.id or id_
                return last
        call = _Call(index, id_)
        self._calls.append(call)
        return call


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str
    name: str = ""
    arguments: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the arguments that have come are JSON."""
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True

    def add(self, function: Any) -> None:
        self.name = self.name or function.name or ""
        self.arguments += function.arguments or ""
