#!/usr/bin/env python3
"""A stdio server of five entries of each kind in pages of two. ``python paged_server.py straight``, or ``alternate``: it never
comes to an end, its cursors are ``a``, ``b``, ``a`` …"""

from __future__ import annotations

import json
import sys

CURSORS = {"straight": {None: (0, "2"), "2": (2, ""), "": (4, None)}, "alternate": {None: (0, "a")}}
CURSORS["alternate"] |= {"a": (2, "b"), "b": (0, "a")}
KINDS = {
    "tools": lambda number: {"name": f"tool_{number}", "inputSchema": {"type": "object"}},
    "resources": lambda number: {"name": f"resource {number}", "uri": f"test://{number}"},
    "resources/templates": lambda number: {"name": f"template {number}", "uriTemplate": f"test://{number}/{{id}}"},
    "prompts": lambda number: {"name": f"prompt_{number}"},
}
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
    "serverInfo": {"name": "paged", "version": "1"},
}


def answer(method: str, cursor: str | None) -> dict[str, object]:
    kind = method.removesuffix("/list")
    if method == "initialize":
        return {"result": HANDSHAKE}
    if kind not in KINDS:
        return {"error": {"code": -32601, "message": "Method not found"}}
    first, following = CURSORS[sys.argv[1]][cursor]
    key = "resourceTemplates" if kind == "resources/templates" else kind
    entries = [KINDS[kind](number) for number in range(first, min(first + 2, 5))]
    return {"result": {key: entries, **({} if following is None else {"nextCursor": following})}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        outcome = answer(message["method"], message.get("params", {}).get("cursor"))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
