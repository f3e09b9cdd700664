#!/usr/bin/env python3
"""A server whose resources ``state://N`` change when they are told to, in either era of the protocol; stdio or ``--http PORT``.

``state://clock`` changes every second while somebody watches it. The tool ``touch`` (``uri``, ``times``) says that a resource
changed so many times, as fast as the pipe takes it. ``--modern`` speaks the revision of 2026-07-28; ``--refuse URI`` honours no
watch of that resource; ``--record FILE`` gets each message received.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

ARGUMENTS = sys.argv[1:]
MODERN = "--modern" in ARGUMENTS
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def option(name: str) -> str:
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else ""


class Send(Protocol):
    def __call__(self, **message: Any) -> None: ...


def complete(result: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result} if MODERN else result


class Server:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._watched: dict[str, Send] = {}  # of the older era
        self._streams: dict[Any, tuple[frozenset[str], Send]] = {}  # of the newer one
        self._versions: dict[str, int] = {}
        threading.Thread(target=self._tick, daemon=True).start()

    def take(self, message: dict[str, Any], send: Send) -> None:
        if option("--record"):
            with self._lock, open(option("--record"), "a", encoding="utf-8") as file:
                file.write(json.dumps(message) + "\n")
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "notifications/cancelled":
            self.end_stream(params.get("requestId"))
        if id_ is None or method is None:
            return
        if method == "subscriptions/listen" and MODERN:
            self._listen(id_, params, send)
            return
        result = self._result(method, params, send)
        if result is None:
            send(id=id_, error={"code": -32601, "message": "Method not found"})
        else:
            send(id=id_, result=complete(result))

    def end_stream(self, id_: Any) -> None:
        with self._lock:
            self._streams.pop(id_, None)

    def touch(self, uri: str, times: int = 1) -> None:
        for _ in range(times):
            with self._lock:
                self._versions[uri] = self._versions.get(uri, 0) + 1
                listening = [(id_, send) for id_, (uris, send) in self._streams.items() if uri in uris]
                watching = self._watched.get(uri)
            updated = {"method": "notifications/resources/updated"}
            if watching is not None:
                watching(**updated, params={"uri": uri})
            for id_, send in listening:
                send(**updated, params={"uri": uri, "_meta": {SUBSCRIPTION: id_}})

    def _listen(self, id_: Any, params: dict[str, Any], send: Send) -> None:
        wanted = params["notifications"].get("resourceSubscriptions") or []
        honoured = [uri for uri in wanted if uri != option("--refuse")]
        with self._lock:
            self._streams[id_] = frozenset(honoured), send
        acknowledged = {"notifications": {"resourceSubscriptions": honoured}, "_meta": {SUBSCRIPTION: id_}}
        send(method="notifications/subscriptions/acknowledged", params=acknowledged)

    def _result(self, method: str, params: dict[str, Any], send: Send) -> dict[str, Any] | None:
        capabilities = {"tools": {}, "resources": {"subscribe": "--deaf" not in ARGUMENTS}}
        information = {"name": "changing", "version": "1"}
        match method:
            case "server/discover" if MODERN:
                meta = {"io.modelcontextprotocol/serverInfo": information}
                return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "_meta": meta}
            case "initialize" if not MODERN:
                return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": information}
            case "tools/list":
                return {"tools": [{"name": "touch", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                arguments = params.get("arguments") or {}
                self.touch(arguments["uri"], arguments.get("times", 1))
                return {"content": [{"type": "text", "text": "touched"}]}
            case "resources/list":
                uris = ["state://clock", *(f"state://{number}" for number in range(60))]
                return {"resources": [{"uri": uri, "name": uri.partition("://")[2]} for uri in uris]}
            case "resources/templates/list":
                return {"resourceTemplates": []}
            case "resources/read":
                text = f"version {self._versions.get(params['uri'], 0)}"
                return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": text}]}
            case "resources/subscribe" if not MODERN and params["uri"] != option("--refuse"):
                self._watched[params["uri"]] = send
                return {}
            case "resources/unsubscribe" if not MODERN:
                self._watched.pop(params["uri"], None)
                return {}
        return None

    def _tick(self) -> None:
        while True:
            time.sleep(1)
            self.touch("state://clock")


def serve_stdio(server: Server) -> None:
    lock = threading.Lock()

    def send(**message: Any) -> None:
        with lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        server.take(json.loads(line), send)


def serve_http(server: Server, port: int) -> None:
    """The newer era over Streamable HTTP: an answer is a JSON body, a stream of notices is an event stream."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if message.get("method") == "subscriptions/listen":
                self._stream(message)
                return
            answers: list[dict[str, Any]] = []
            server.take(message, lambda **answer: answers.append({"jsonrpc": "2.0", **answer}))
            body = json.dumps(answers[0]).encode() if answers else b""
            self.send_response(200 if answers else 202)
            if answers:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, message: dict[str, Any]) -> None:
            ended = threading.Event()
            lock = threading.Lock()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()

            def send(**event: Any) -> None:
                data = json.dumps({"jsonrpc": "2.0", **event})
                try:
                    with lock:
                        self.wfile.write(f"event: message\ndata: {data}\n\n".encode())
                        self.wfile.flush()
                except OSError:
                    ended.set()
                    server.end_stream(message["id"])

            server.take(message, send)
            while not ended.wait(0.5):
                try:
                    with lock:
                        self.wfile.write(b": still there\n\n")
                        self.wfile.flush()
                except OSError:
                    ended.set()
            server.end_stream(message["id"])
            self.close_connection = True

        def do_GET(self) -> None:
            self.send_response(405)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    http.daemon_threads = True
    print(f"http://127.0.0.1:{http.server_address[1]}/mcp", flush=True)
    http.serve_forever()


if __name__ == "__main__":
    if "--http" in ARGUMENTS:
        serve_http(Server(), int(option("--http")))
    else:
        serve_stdio(Server())
