"""What happens in a turn, as typed events: the turn yields them, the chat pane draws them, the command line prints them.

An event names what changed; the changed value itself is the message or part it carries, the very one that is in the
conversation. So whoever draws needs no state of its own, and whoever comes late can draw the conversation as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from desktop.assistant.conversation import Choice, Form, Message, Notice, ToolCall, Usage, to_json
from desktop.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class MessageStarted:
    """A message was added to the conversation: the person's, then one for each answer of the model."""

    message: Message


@dataclass(frozen=True, slots=True)
class TextDelta:
    """`text` was appended to the last part of the message, a `Text` (a new one, where the last part was something else)."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model asked for a call; it waits for approval (state ``waiting``) or runs already."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """The call's state, progress or progress message changed. At most ten a second for a call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolsActivated:
    """The tools that are active in the conversation, in the order of their activation (native names)."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartAdded:
    """A notice, or a question to the person, was added to the message; a question waits for its answer."""

    part: Choice | Form | Notice


@dataclass(frozen=True, slots=True)
class PartChanged:
    """The question was answered."""

    part: Choice | Form


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The last event of a turn that was not stopped by cancelling it."""

    reason: Literal["done", "failed"]
    diagnostic: Diagnostic | None = None
    """Why it failed; the same stands in the message as a `Notice`."""
    usage: Usage | None = None
    """Of the whole turn."""


TurnEvent = (
    MessageStarted
    | TextDelta
    | ReasoningDelta
    | ToolCallStarted
    | ToolCallProgress
    | ToolCallFinished
    | ToolsActivated
    | PartAdded
    | PartChanged
    | TurnFinished
)


def event_to_json(event: TurnEvent) -> dict[str, Any]:
    """The event as one JSON object for ``deskhand ask --json``: ``{"event": "tool_call_started", "call": {…}}``."""
    content: dict[str, Any] = {"event": re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()}
    match event:
        case MessageStarted(message):
            content["message"] = to_json(message)
        case TextDelta(text) | ReasoningDelta(text):
            content["text"] = text
        case ToolCallStarted(call) | ToolCallProgress(call) | ToolCallFinished(call):
            content["call"] = to_json(call)
        case ToolsActivated(names):
            content["names"] = list(names)
        case PartAdded(part) | PartChanged(part):
            content["part"] = to_json(part)
        case TurnFinished(reason, diagnostic, usage):
            content["reason"] = reason
            content["diagnostic"] = _diagnostic(diagnostic)
            content["usage"] = None if usage is None else {name: getattr(usage, name) for name in Usage.__slots__}
    return content


def _diagnostic(diagnostic: Diagnostic | None) -> dict[str, Any] | None:
    if diagnostic is None:
        return None
    return {
        "code": diagnostic.code,
        "server": diagnostic.server,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }
