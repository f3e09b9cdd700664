"""What a turn needs of a language model, and what it sends it.

``litellm_model.py`` is the real one, ``guide.py`` the embedded default.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from desktop.assistant.conversation import Message, Usage
from desktop.assistant.events import PartAdded, PartChanged, ReasoningDelta, TextDelta
from desktop.catalog_entries import ToolDefinition


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is offered to the model."""

    name: str
    description: str
    schema: dict[str, Any]
    definition: ToolDefinition | None = None
    """Of an activated tool; None for ``mcp_tools``. It holds the server's own schema; `schema` is a projection of that, which
    OpenAI-style providers accept (``schema_projection.py``)."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """All that a model gets: append-only from turn to turn, so that providers' prompt caches keep working."""

    system: str
    messages: Sequence[Message]
    """Well-formed: every tool call has an output."""
    tools: Sequence[ToolSpec]
    """``mcp_tools`` first, then activated tools in the order of their activation."""


@dataclass(frozen=True, slots=True)
class ToolCallRequested:
    """A complete call: its pieces are put together by the model's adapter."""

    id: str
    name: str
    arguments: str
    """JSON text as the model gave it."""


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The last event of a stream."""

    usage: Usage = field(default_factory=Usage)


ModelEvent = TextDelta | ReasoningDelta | ToolCallRequested | PartAdded | PartChanged | AnswerFinished


class LanguageModel(Protocol):
    @property
    def title(self) -> str:
        """The name that is shown."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens that a request and its answer may have together; None: not known, nothing is shortened.

        May change with a refusal (``model_context_exceeded``): the request is then made again within it.
        """
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """One answer, as it comes. An async generator: closing or cancelling it closes the connection at once.

        Raises AssistantError with a ``model_…`` code; what was streamed before stays.
        """
        ...
