"""Deskhand's own keys in the ``_meta`` of results: a server can't use them. Used by the connection.

A large message comes reduced, with a token that no server can know; what bears one of them is told from what merely says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from mcp_types import CallToolResult, ReadResourceResult

from desktop.host.large_messages import LARGE_META, LargeMessageReader

_OWN_META = "deskhand/"
_LARGEST_REDUCED = 2**20


class OwnMeta:
    def __init__(self, read_large: LargeMessageReader | None) -> None:
        self._read_large = read_large
        self._tokens: set[object] = set()

    @property
    def read_large(self) -> LargeMessageReader | None:
        """The reader of large messages, whose tokens are noted."""
        return self._receive if self._read_large else None

    async def _receive(self, file: Path) -> bytes:
        """Hands a large message to its reader and notes the token of what was reduced, which no server can know."""
        assert self._read_large is not None
        message = await self._read_large(file)
        if len(message) < _LARGEST_REDUCED:  # a larger one came back whole
            meta = _at(json.loads(message), "result", "_meta", LARGE_META)
            if meta is not None:
                self._tokens.add(meta)
        return message

    def keep(self, result: CallToolResult | ReadResourceResult) -> bool:
        """Takes out what a server put under Deskhand's own keys; whether the result was too large to come whole."""
        meta = result.meta or {}
        token = meta.get(LARGE_META)
        large = isinstance(token, str) and token in self._tokens
        self._tokens.discard(token if large else None)
        if any(key.startswith(_OWN_META) for key in meta):
            kept = {key: value for key, value in meta.items() if not key.startswith(_OWN_META)}
            result.meta = {**kept, LARGE_META: token} if large else kept
        return large


def _at(value: object, *keys: str) -> object:
    """The value under nested keys, or None."""
    for key in keys:
        value = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
    return value
