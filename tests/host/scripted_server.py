#!/usr/bin/env python3
"""A stdio server that answers each method as a JSON object says, for faults that the other test servers don't have.

``python scripted_server.py SCRIPT``: SCRIPT is ``{method: answer}``. An answer is a result, or one of the words ``"ignore"`` (no
answer; with ``"deaf": true`` to nothing any more if it was the first message), ``"exit"`` (ends instead) or ``"exit after"``
(answers, then ends), or ``{"error": …}``. What is not named has a usual answer; ``record`` names a file that gets every message
received. ``@FILE`` in place of SCRIPT is the script in a file.
"""

from __future__ import annotations

import json
import sys

USUAL = {
    "server/discover": {"error": {"code": -32601, "message": "Method not found"}},
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        "serverInfo": {"name": "scripted", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "tool", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}


def main() -> None:
    script = sys.argv[1]
    if script.startswith("@"):
        with open(script[1:], encoding="utf-8") as file:
            script = file.read()
    script = json.loads(script)
    deaf = False
    for number, line in enumerate(sys.stdin):
        message = json.loads(line)
        if "record" in script:
            with open(script["record"], "a", encoding="utf-8") as file:
                file.write(line)
        if "id" not in message or deaf:
            continue
        answer = script.get(
            message["method"], USUAL.get(message["method"], {"error": {"code": -32601, "message": "no"}})
        )
        ends = answer in ("exit", "exit after")
        if answer == "exit after":
            answer = USUAL[message["method"]]
        if answer == "ignore":
            deaf = number == 0 and script.get("deaf", False)
        elif answer != "exit":
            outcome = answer if "error" in answer else {"result": answer}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
        if ends:
            sys.exit(5)


if __name__ == "__main__":
    main()
