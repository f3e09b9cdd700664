"""What can be read of a tool's result that is outside the protocol. Used by the client, when the SDK has refused the result.

The call has taken effect, and the tool's answer is there: a part that doesn't fit costs itself alone, and is shown as it came.
"""

from __future__ import annotations

import json
from typing import Any, cast

from mcp_types import CallToolResult, ContentBlock, TextContent
from pydantic import TypeAdapter, ValidationError

_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)
#: Keys of a result that have a meaning of their own.
_KNOWN = frozenset({"content", "structuredContent", "isError", "_meta", "resultType", "ttlMs", "cacheScope"})


def readable_result(answer: dict[str, Any]) -> CallToolResult | None:
    """The parts of a result that fit, in their order, with the others and unknown members as text; None where it is no result
    but another answer of the protocol."""
    if answer.get("resultType", "complete") != "complete":
        return None
    content = answer.get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else [] if content is None else [content]
    parts = [_readable(block) for block in blocks]
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


def _readable(block: Any) -> ContentBlock:
    try:
        return _BLOCK.validate_python(block, by_name=False)
    except ValidationError:
        return TextContent(text=block) if isinstance(block, str) else _as_it_came(block)


def _as_it_came(value: Any) -> TextContent:
    return TextContent(text=f"Outside the protocol, shown as it came: {json.dumps(value, ensure_ascii=False)}")
