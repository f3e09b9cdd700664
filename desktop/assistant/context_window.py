"""What is sent when a conversation is longer than the model's window. Used by the turn; the stored conversation stays whole.

Providers charge less for a request that begins with the very bytes of the one before. So messages are shortened as the
conversation would have been message by message: what was shortened once stays shortened in the same way, and when the window is
full, enough is shortened to leave room for several more messages.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from desktop.assistant.conversation import Form, Image, Message, Notice, Reasoning, Text, ToolCall
from desktop.assistant.language_model import ToolSpec

_CHARACTERS_A_TOKEN = 4
_IMAGE_TOKENS = 1500
#: Shares of the window: where shortening begins (the rest is the answer's), and what it leaves.
_FULL = 0.8
_ROOM = 0.5
#: Characters that stay of a shortened result. One up to twice as long isn't worth shortening.
_KEPT = 400


def fitted(
    messages: Sequence[Message], *, system: str, tools: Sequence[ToolSpec], window: int | None
) -> Sequence[Message]:
    """The messages for a request: without those that hold nothing for a model, and with the oldest tool results shortened where
    they would not fit `window` tokens. A shortened result says so to the model.

    The results that the model has not seen yet are never shortened; where that is not enough, the provider's refusal says so.
    """
    sent = [message for message in messages if any(not isinstance(part, Notice) for part in message.parts)]
    if window is None:
        return sent
    other = sum(len(tool.description) + len(json.dumps(tool.schema)) for tool in tools) + len(system)
    room = window - other / _CHARACTERS_A_TOKEN
    used = 0.0
    long_calls: list[ToolCall] = []  # oldest first
    shortened: set[int] = set()
    for message in sent:
        used += _tokens(message)
        if used > room * _FULL:
            while long_calls and used > room * _ROOM:
                call = long_calls.pop(0)
                used -= _saved(call)
                shortened.add(id(call))
        long_calls += [call for call in message.tool_calls if _saved(call) > 0]
    return [_shortened(message, shortened) for message in sent]


def _tokens(message: Message) -> float:
    return sum(_part_tokens(part) for part in message.parts)


def _part_tokens(part: object) -> float:
    match part:
        case Text(text) | Reasoning(text):
            return len(text) / _CHARACTERS_A_TOKEN
        case Image():
            return _IMAGE_TOKENS
        case ToolCall(arguments=arguments, output=output):
            result = 0.0 if output is None else len(output.text) / _CHARACTERS_A_TOKEN
            images = 0 if output is None else len(output.images) * _IMAGE_TOKENS
            return len(arguments) / _CHARACTERS_A_TOKEN + result + images
        case Form(values=values):
            return len(str(values)) / _CHARACTERS_A_TOKEN
        case _:
            return 0


def _saved(call: ToolCall) -> float:
    """Tokens that shortening a call's result saves."""
    if call.output is None:
        return 0
    text = len(call.output.text) - _KEPT if len(call.output.text) > 2 * _KEPT else 0
    return text / _CHARACTERS_A_TOKEN + len(call.output.images) * _IMAGE_TOKENS


def _shortened(message: Message, calls: set[int]) -> Message:
    if not any(id(call) in calls for call in message.tool_calls):
        return message
    parts = [_short(part) if isinstance(part, ToolCall) and id(part) in calls else part for part in message.parts]
    return dataclasses.replace(message, parts=parts)


def _short(call: ToolCall) -> ToolCall:
    output = call.output
    if output is None:
        return call
    again = f"read result://{output.spilled.id} of the server deskhand" if output.spilled else "make the call again"
    text = (
        f"{output.text[:_KEPT]}\n[Shortened to fit your context window: {len(output.text)} characters and"
        f" {len(output.images)} images before. If you need the rest, {again}.]"
    )
    return dataclasses.replace(call, output=dataclasses.replace(output, text=text, images=[]))
