"""A language model in memory that says what a script says. For tests of the turn; ``model_server.py`` is the one over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from desktop.assistant.conversation import Usage, to_json
from desktop.assistant.events import PartAdded, PartChanged, ReasoningDelta, TextDelta
from desktop.assistant.language_model import AnswerFinished, ModelEvent, ModelRequest, ToolCallRequested


@dataclass(slots=True)
class Call:
    name: str
    arguments: Any = field(default_factory=dict[str, Any])
    """A string is passed on as it is; anything else as JSON."""
    id: str = ""


class Hang:
    """Nothing comes any more, until the stream is closed."""


class BreakOff:
    """The stream ends without its last event."""


Step = str | Call | ModelEvent | BaseException | asyncio.Event | Hang | BreakOff
Answer = Sequence[Step] | Callable[[ModelRequest], Sequence[Step]]


class ScriptedModel:
    """Gives its answers in order. A text is a delta, an event is waited for, an exception raised.

    Attributes:
        requests: What was asked, one a stream.
        sent: The same as text, as it was when it was asked: the bytes a provider would cache.
        closed: Streams that were closed or cancelled before their end.
        streaming: Set whenever a step was passed on or waits.
    """

    title = "Scripted"

    def __init__(self, *answers: Answer, context_window: int | None = None) -> None:
        self.context_window = context_window
        self.requests: list[ModelRequest] = []
        self.sent: list[str] = []
        self.closed = 0
        self.streaming = asyncio.Event()
        self._answers = list(answers)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        assert all(call.output is not None for message in request.messages for call in message.tool_calls)
        self.requests.append(request)
        self.sent.append(serialized(request))
        assert self._answers, "the script is at its end"
        answer = self._answers.pop(0)
        ended = False
        try:
            for step in answer(request) if callable(answer) else answer:
                self.streaming.set()
                match step:
                    case str():
                        yield TextDelta(step)
                    case Call(name, arguments, id_):
                        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
                        yield ToolCallRequested(id_ or f"call-{len(self.requests)}-{name}", name, text)
                    case asyncio.Event():
                        await step.wait()
                    case Hang():
                        await asyncio.get_running_loop().create_future()
                    case BreakOff():
                        ended = True
                        return
                    case BaseException():
                        ended = True
                        raise step
                    case (
                        TextDelta()
                        | ReasoningDelta()
                        | ToolCallRequested()
                        | PartAdded()
                        | PartChanged()
                        | AnswerFinished()
                    ):
                        yield step
            ended = True
            yield AnswerFinished(Usage(10, 2))
        finally:
            self.closed += not ended

    @property
    def tools(self) -> list[list[str]]:
        """The names offered, one list a request."""
        return [[tool.name for tool in request.tools] for request in self.requests]

    def results(self, request: int = -1) -> list[str]:
        """The texts of all tool results in a request."""
        return [
            call.output.text
            for message in self.requests[request].messages
            for call in message.tool_calls
            if call.output
        ]


def serialized(request: ModelRequest) -> str:
    """A request as one text: system, messages as an adapter would send them. Tools are compared apart."""
    lines = [request.system]
    for message in request.messages:
        content = to_json(message)
        parts = [
            {name: part[name] for name in ("kind", "text", "id", "name", "arguments", "output") if name in part}
            for part in content["parts"]
        ]
        lines.append(json.dumps({"role": content["role"], "parts": parts}))
    return "\n".join(lines)
