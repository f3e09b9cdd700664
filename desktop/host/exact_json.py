"""The structured content of a tool's result as the server wrote it, beside the values that the SDK makes of it.

The SDK's parser turns 1.50 into 1.5 and 1e999 into infinity, and keeps one of two equal keys. So a message that has structured
content gets the text of it as one more member of its result, before the SDK reads the message (``large_messages.py``), and the
client takes that member out of the answer again (``sdk_client.py``).
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from desktop.json_text import Reader

EXACT_META = "deskhand/structuredText"
"""Key in the ``_meta`` of a tool's result under which the client puts the text."""
#: The member's name, which no server can know.
_MEMBER = f"deskhand/structuredText/{secrets.token_hex(8)}"
_MARK = b'"structuredContent"'


def with_exact_text(message: bytes) -> bytes:
    """The message of JSON-RPC with the text of its structured content added, where it has any and is JSON."""
    if _MARK not in message:
        return message
    text = message.decode()
    try:
        found = _structured_content(text)
    except ValueError:
        return message
    if found is None:
        return message
    begin, end = found
    member = f", {json.dumps(_MEMBER)}: {json.dumps(text[begin:end], ensure_ascii=False)}"
    return (text[:end] + member + text[end:]).encode()


def take_exact_text(answer: dict[str, Any]) -> str | None:
    """Takes the text that was added out of an answer; None where there is none."""
    return answer.pop(_MEMBER, None)


def _structured_content(text: str) -> tuple[int, int] | None:
    """Where the structured content of a message's result stands; None where it has none. Raises ValueError for no JSON."""
    found = None
    reader = Reader(text)
    for name in reader.members():
        if name == "result" and text.startswith("{", reader.position):
            for inner in reader.members():
                begin = reader.position
                if inner == "structuredContent":
                    reader.value()
                    found = (begin, reader.position)
    return found
