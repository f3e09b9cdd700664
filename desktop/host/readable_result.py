"""What can be read of a result that is outside the protocol: of a tool, a resource or a prompt. Used by the client, when the SDK
has refused the result.

The answer is there, and of a tool its call has taken effect: a part that doesn't fit costs itself alone, and is shown as it came.
"""

from __future__ import annotations

import json
from typing import Any, Literal, cast

from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    GetPromptResult,
    PromptMessage,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
)
from pydantic import TypeAdapter, ValidationError

from desktop.errors import AssistantError

_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)
_CONTENTS: TypeAdapter[TextResourceContents | BlobResourceContents] = TypeAdapter(
    TextResourceContents | BlobResourceContents
)
#: Keys of a result that have a meaning of their own.
_KNOWN = frozenset({"content", "structuredContent", "isError", "_meta", "resultType", "ttlMs", "cacheScope"})


def readable_result(answer: dict[str, Any]) -> CallToolResult | None:
    """The parts of a result that fit, in their order, with the others and unknown members as text; None where it is no result
    but another answer of the protocol."""
    if not _is_complete(answer):
        return None
    content = answer.get("content")
    parts = [_readable(block) for block in _listed(content)]
    if content is None and "structuredContent" not in answer:
        unknown = {key: value for key, value in answer.items() if key not in _KNOWN}
        parts += [_as_it_came(unknown)] if unknown else []
    meta = answer.get("_meta")
    return CallToolResult(
        content=parts,
        structured_content=answer.get("structuredContent"),
        is_error=answer.get("isError") in (True, "true"),
        _meta=cast("dict[str, Any]", meta) if isinstance(meta, dict) else None,
    )


def readable_read(answer: dict[str, Any], uri: str) -> ReadResourceResult | None:
    """The parts of what was read of a resource, in their order; None where it is another answer of the protocol.

    Raises AssistantError ``protocol_error`` where there are none.
    """
    if not _is_complete(answer):
        return None
    contents = answer.get("contents", answer.get("content"))  # some servers answer like a tool
    if contents is None or isinstance(contents, bool | int | float):
        raise _without("contents", "read")
    meta = answer.get("_meta")
    return ReadResourceResult(
        contents=[_readable_contents(each, uri) for each in _listed(contents)],
        ttl_ms=0,
        cache_scope="private",
        _meta=cast("dict[str, Any]", meta) if isinstance(meta, dict) else None,
    )


def readable_prompt(answer: dict[str, Any]) -> GetPromptResult | None:
    """The messages of a prompt, in their order: those without a role of the protocol are taken for the user's; None where it is
    another answer of the protocol.

    Raises AssistantError ``protocol_error`` where there are none.
    """
    if not _is_complete(answer):
        return None
    messages, description = answer.get("messages"), answer.get("description")
    if messages is None or isinstance(messages, bool | int | float):
        raise _without("messages", "prompt")
    return GetPromptResult(
        description=description if isinstance(description, str) else None,
        messages=[message for each in _listed(messages) for message in _readable_messages(each)],
    )


def _is_complete(answer: dict[str, Any]) -> bool:
    return answer.get("resultType", "complete") == "complete"


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]


def _without(what: str, operation: Literal["read", "prompt"]) -> AssistantError:
    return AssistantError("protocol_error", operation=operation, reason=f": the answer has no {what}")


def _readable_contents(value: Any, uri: str) -> TextResourceContents | BlobResourceContents:
    """A part of a resource; where it names none, it is of the one that was asked for."""
    if isinstance(value, str):
        return TextResourceContents(uri=uri, text=value)
    if isinstance(value, dict):
        part = cast("dict[str, Any]", value)
        if isinstance(resource := part.get("resource"), dict):  # embedded, as in a tool's result
            part = cast("dict[str, Any]", resource)
        kept = {key: part[key] for key in ("uri", "mimeType", "text", "blob") if isinstance(part.get(key), str)}
        try:
            return _CONTENTS.validate_python({"uri": uri, **kept}, by_name=False)
        except ValidationError:
            pass
    return TextResourceContents(uri=uri, text=_as_it_came(value).text)


def _readable_messages(value: Any) -> list[PromptMessage]:
    """A message for each block of a message."""
    if not isinstance(value, dict) or "content" not in value:
        return [PromptMessage(role="user", content=_readable(value))]
    message = cast("dict[str, Any]", value)
    role = "assistant" if message.get("role") == "assistant" else "user"
    return [PromptMessage(role=role, content=_readable(block)) for block in _listed(message["content"])]


def _readable(block: Any) -> ContentBlock:
    try:
        return _BLOCK.validate_python(block, by_name=False)
    except ValidationError:
        return TextContent(text=block) if isinstance(block, str) else _as_it_came(block)


def _as_it_came(value: Any) -> TextContent:
    return TextContent(text=f"Outside the protocol, shown as it came: {json.dumps(value, ensure_ascii=False)}")
