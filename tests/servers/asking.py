#!/usr/bin/env python3
"""A stdio server whose one tool, ``ask``, asks the person before it answers, in either era of the protocol.

Its arguments: ``requests`` are the parameters of elicitations, all sent at once; the result is the answers as JSON. ``pages`` are
those of error -32042 instead; ``completes`` says a moment later that the pages named are done with. ``cancels`` withdraws the
requests at once. ``--modern`` speaks the revision of 2026-07-28; ``--record FILE`` gets each message received.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

MODERN = "--modern" in sys.argv
_lock = threading.Lock()


def send(**message: Any) -> None:
    with _lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def complete(result: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result} if MODERN else result


def answered(answers: list[Any]) -> dict[str, Any]:
    return complete({"content": [{"type": "text", "text": json.dumps(answers)}]})


class Server:
    def __init__(self) -> None:
        self._asked: dict[Any, tuple[Any, int, list[Any]]] = {}  # id of a request -> the call, its place, the answers
        self._number = 0

    def take(self, message: dict[str, Any]) -> None:
        method, id_ = message.get("method"), message.get("id")
        if method is None and id_ in self._asked:
            call, place, answers = self._asked.pop(id_)
            answers[place] = message.get("result") or message.get("error")
            if all(each is not None for each in answers):
                send(id=call, result=answered(answers))
        elif id_ is None:
            return
        elif method == "tools/call":
            self.call(id_, message["params"])
        elif (result := self.result(method)) is None:
            send(id=id_, error={"code": -32601, "message": "Method not found"})
        else:
            send(id=id_, result=complete(result))

    def result(self, method: str | None) -> dict[str, Any] | None:
        information = {"name": "asking", "version": "1"}
        match method:
            case "server/discover" if MODERN:
                meta = {"io.modelcontextprotocol/serverInfo": information}
                return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": meta}
            case "initialize" if not MODERN:
                return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": information}
            case "tools/list":
                return {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}
        return None

    def call(self, id_: Any, params: dict[str, Any]) -> None:
        arguments = params.get("arguments") or {}
        requests = arguments.get("requests", [])
        if "pages" in arguments:
            send(id=id_, error={"code": -32042, "message": "visit", "data": {"elicitations": arguments["pages"]}})
            for page in arguments.get("completes", []):
                note = {"method": "notifications/elicitation/complete", "params": {"elicitationId": page}}
                threading.Timer(0.2, lambda note=note: send(**note)).start()
        elif MODERN and requests and "inputResponses" not in params:
            asked = {
                str(place): {"method": "elicitation/create", "params": each} for place, each in enumerate(requests)
            }
            send(id=id_, result={"resultType": "input_required", "inputRequests": asked, "requestState": "state é"})
        elif MODERN and requests:
            answers = [params["inputResponses"][str(place)] for place in range(len(requests))]
            send(id=id_, result=answered([*answers, params.get("requestState")]))
        elif requests:
            answers: list[Any] = [None] * len(requests)
            for place, each in enumerate(requests):
                self._number += 1
                asked_id = f"q{self._number}"
                self._asked[asked_id] = id_, place, answers
                send(id=asked_id, method="elicitation/create", params=each)
                if arguments.get("cancels"):
                    send(method="notifications/cancelled", params={"requestId": asked_id})
        else:
            send(id=id_, result=answered([]))


def main() -> None:
    server = Server()
    record = sys.argv[sys.argv.index("--record") + 1] if "--record" in sys.argv else ""
    for line in sys.stdin:
        if record:
            with open(record, "a", encoding="utf-8") as file:
                file.write(line)
        server.take(json.loads(line))


if __name__ == "__main__":
    main()
