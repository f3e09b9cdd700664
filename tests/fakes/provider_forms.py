"""A scripted answer in the forms in which Anthropic and Google stream. Used by ``model_server.py`` alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.model_server import Answer

Stream = tuple[Iterable[Mapping[str, Any]], Iterable[Mapping[str, Any]]]


def anthropic_stream(answer: Answer) -> Stream:
    """The events of the answer, and those of its regular end. `Answer.usage` is in Anthropic's form here."""
    usage = dict(answer.usage or {"input_tokens": 1, "output_tokens": 1})
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}

    def events() -> Iterator[Mapping[str, Any]]:
        yield {"type": "message_start", "message": message}
        index = 0
        if answer.text:
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            for text in [answer.text] if isinstance(answer.text, str) else answer.text:
                delta = {"type": "text_delta", "text": text}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
            index += 1
        for call in answer.calls:
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            yield {"type": "content_block_start", "index": index, "content_block": block}
            for piece in (call.text[:3], call.text[3:]):
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
            index += 1

    reason = "tool_use" if answer.calls else "end_turn"
    end = [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": usage["output_tokens"]}},
        {"type": "message_stop"},
    ]
    return events(), end


def google_stream(answer: Answer) -> Stream:
    """The chunks of the answer; the last one, with the calls, is its regular end. `Answer.usage` is in Google's form here."""
    texts = [answer.text] if isinstance(answer.text, str) else list(answer.text)
    chunks = [{"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": each}]}}]} for each in texts]
    calls = [
        {"functionCall": {"name": each.name, "args": json.loads(each.text)}, "thoughtSignature": "c2lnbmF0dXJl"}
        for each in answer.calls
    ]
    last = {"index": 0, "content": {"role": "model", "parts": calls or [{"text": ""}]}, "finishReason": "STOP"}
    usage = {} if answer.usage is None else {"usageMetadata": answer.usage}
    return chunks, [{"candidates": [last]} | usage]
