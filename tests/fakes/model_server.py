"""A scripted language model behind a real OpenAI-compatible address on 127.0.0.1, and in Anthropic's and Google's forms.

Used in-process by tests (``async with ModelServer(script) as server``) and as a program by the benchmark and by tests of whole
processes: ``python -m tests.fakes.model_server --script FILE --port 0`` prints its port and serves until it is ended.

A script is a list of answers, given in that order, or a callable that makes an answer of a request. In JSON it is a list of
answers or ``{"rules": […]}`` (see `rules`). Like the real service, the server refuses a conversation in which a tool call
has no result, an unknown model, and a wrong key.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tests.fakes.provider_forms import anthropic_stream, google_stream

_LARGEST_HEAD = 2**16
_LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(slots=True)
class Call:
    """A tool call of an answer."""

    name: str
    arguments: Any = field(default_factory=dict[str, Any])
    """A string is sent as it is, whatever it holds; anything else as JSON."""
    id: str = ""
    """Empty: numbered by the server."""
    pieces: int = 1
    """How many deltas the arguments come in."""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(slots=True)
class Answer:
    """One answer of the model, sent in the order of the fields: reasoning, text, calls, deltas, usage."""

    reasoning: Sequence[str] = ()
    text: Sequence[str] = ()
    """Chunks; a plain string is one chunk."""
    calls: Sequence[Call] = ()
    deltas: Sequence[Mapping[str, Any]] = ()
    """``choices[0].delta`` objects sent as they are, for shapes that only some servers send."""
    usage: Mapping[str, Any] | None = None
    """OpenAI's form; sent where the request asks for it."""
    delay: float = 0
    """Seconds before each chunk."""
    ending: Literal["done", "hang", "disconnect", "garbage"] = "done"
    """After the chunks: the regular end; nothing until the client leaves; a closed socket; no JSON."""
    finish_reason: str = ""
    """Empty: ``tool_calls`` with calls, else ``stop``."""
    status: int = 200
    """Another one: an error with `message` and `code` instead of an answer."""
    message: str = ""
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    """With names in lower case."""
    body: Any

    @property
    def is_openai(self) -> bool:
        """Whether it is in OpenAI's form; what follows reads only that one."""
        return self.path == "/v1/chat/completions"

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    @property
    def tools(self) -> list[str]:
        return [each["function"]["name"] for each in self.body.get("tools", ())]

    @property
    def user(self) -> str:
        """The text of the person's last message."""
        return next((_text(each) for each in reversed(self.messages) if each["role"] == "user"), "")

    @property
    def results(self) -> list[str]:
        """The texts of the tool results since the person's last message."""
        since = max((at for at, each in enumerate(self.messages) if each["role"] == "user"), default=0)
        return [_text(each) for each in self.messages[since:] if each["role"] == "tool"]


Script = Sequence[Answer] | Callable[[Request], Answer]


def echo(request: Request) -> Answer:
    """The script where none is given: says what it was told, a word a chunk."""
    return Answer(text=re.findall(r"\S+\s*", f"You said: {request.user}"))


def rules(content: Iterable[Mapping[str, Any]]) -> Callable[[Request], Answer]:
    """A script in which the first rule that fits gives the answer.

    A rule is ``{"user": regex, "result": regex or null, "tool": name, "answer": {…}}``. Each condition may be left out. ``user``
    is searched for in the person's last message, ``result`` in the last tool result since then (null: there is none yet),
    and the tool of that name must be offered. ``{{name}}`` in any string of the answer is replaced by the named group of that
    name in either regex. So a script can find a tool, activate it, call it and speak of its result.
    """
    listed = list(content)

    def script(request: Request) -> Answer:
        last = request.results[-1] if request.results else None
        for rule in listed:
            found: dict[str, str] = {}
            if (match := re.search(rule.get("user", ""), request.user)) is None:
                continue
            found |= match.groupdict("")
            if "tool" in rule and rule["tool"] not in request.tools:
                continue
            if "result" in rule:
                if rule["result"] is None or last is None:
                    if rule["result"] is not last:
                        continue
                elif (match := re.search(rule["result"], last)) is None:
                    continue
                else:
                    found |= match.groupdict("")
            return answer_from_json(_filled(rule["answer"], found))
        return Answer(status=500, message="no rule of the script fits the request")

    return script


def answer_from_json(content: Mapping[str, Any]) -> Answer:
    """An answer as a script's JSON gives it: the fields of `Answer`, its calls with the fields of `Call`."""
    answer = Answer(**{name: value for name, value in content.items() if name != "calls"})
    answer.calls = [Call(**each) for each in content.get("calls", ())]
    return answer


def script_from_json(content: Any) -> Script:
    if isinstance(content, list):
        return [answer_from_json(each) for each in content]
    return rules(content["rules"])


class ModelServer:
    """The server, an async context manager.

    Attributes:
        script: What it answers; may be replaced at any time.
        requests: The requests for answers, in order of arrival.
        disconnects: How many clients left in the middle of an answer.
        models: The names it knows; empty: any.
        key: What a client must send as its bearer token; empty: nothing.
    """

    def __init__(
        self,
        script: Script = echo,
        *,
        port: int = 0,
        models: Sequence[str] = (),
        key: str = "",
        record: Path | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self.disconnects = 0
        self.models = models
        self.key = key
        self.script = script
        self._port = port
        self._record = record
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        return self._port

    @property
    def address(self) -> str:
        """What is entered as the model's address."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def wait_for(self, condition: Callable[[], bool], time_limit: float = 10) -> None:
        """Waits until something of this server holds, such as ``lambda: server.disconnects == 1``."""
        async with asyncio.timeout(time_limit), self._changed:
            await self._changed.wait_for(condition)

    async def serve(self) -> None:
        assert self._server is not None
        await self._server.serve_forever()

    async def __aenter__(self) -> ModelServer:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port, limit=_LARGEST_HEAD)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve_connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._serve_request(reader, writer):
                    pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; whether the connection can take another."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        start, *lines = head.rstrip().split("\r\n")
        method, path, _ = start.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        key_headers = ("authorization", "x-api-key", "x-goog-api-key")
        sent = next((headers[name].removeprefix("Bearer ") for name in key_headers if name in headers), "")
        if self.key and sent != self.key:
            return await _send_error(
                writer, Answer(status=401, message=f"Incorrect API key provided: {sent}.", code="invalid_api_key")
            )
        match method, path:
            case "GET", "/v1/models":
                return await _send_json(
                    writer, {"object": "list", "data": [{"id": each, "object": "model"} for each in self.models]}
                )
            case "GET", "/api/tags":  # Ollama's list
                return await _send_json(writer, {"models": [{"name": each, "model": each} for each in self.models]})
            case "POST", "/v1/chat/completions" | "/v1/messages":
                return await self._complete(Request(path, headers, json.loads(body)), reader, writer)
            case "POST", _ if ":streamGenerateContent" in path:
                return await self._complete(Request(path, headers, json.loads(body)), reader, writer)
            case _:
                return await _send_error(writer, Answer(status=404, message=f"Unknown request URL: {method} {path}."))

    async def _complete(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        answer = self._answer(request)
        if self._record is not None:
            with self._record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(request.body) + "\n")
        await self._note()
        if answer.status != 200:
            return await _send_error(writer, answer)
        if request.is_openai and not request.body.get("stream"):
            return await _send_json(writer, _whole(request, answer))
        # A client sends nothing while it is being answered: the end of its stream means that it left.
        answering = asyncio.ensure_future(_send_stream(writer, request, answer))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if answering.done() and answering.exception() is None:
                return answering.result()
            self.disconnects += 1
            await self._note()
            return False
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    def _answer(self, request: Request) -> Answer:
        self.requests.append(request)
        if request.is_openai:
            name = request.body["model"]
            if self.models and name not in self.models:
                return Answer(status=404, message=f"The model `{name}` does not exist.", code="model_not_found")
            if fault := _fault(request):
                return Answer(status=400, message=fault)
        if callable(self.script):
            return self.script(request)
        if len(self.requests) > len(self.script):
            return Answer(status=500, message="the script is at its end")
        return self.script[len(self.requests) - 1]

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _fault(request: Request) -> str:
    """What a strict service would refuse in a request, in its words; empty: nothing."""
    for name in request.tools:
        if not _LEGAL_NAME.fullmatch(name):
            return f"Invalid 'tools[{request.tools.index(name)}].function.name': does not match pattern."
    open_ids: list[str] = []
    for at, message in enumerate([*request.messages, {"role": "end"}]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return (
                    f"Invalid parameter: messages[{at}] with role 'tool' must be a response to a preceding message"
                    " with 'tool_calls'."
                )
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
                f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_ids)}"
            )
        if message["role"] == "assistant" and not message.get("content") and not message.get("tool_calls"):
            return f"Invalid value for 'messages[{at}].content': expected a string, got null."
        open_ids = [each["id"] for each in message.get("tool_calls") or ()]
        if len(set(open_ids)) < len(open_ids):
            return f"Duplicate ids in 'messages[{at}].tool_calls'."
    return ""


def _deltas(request: Request, answer: Answer) -> Iterable[Mapping[str, Any]]:
    yield {"role": "assistant", "content": ""}
    yield from ({"reasoning_content": each} for each in answer.reasoning)
    yield from ({"content": each} for each in _chunks(answer.text))
    for index, call in enumerate(answer.calls):
        size = max(1, -(-len(call.text) // call.pieces))
        pieces = [call.text[at : at + size] for at in range(0, len(call.text), size)] or [""]
        first = {"id": _id(request, call, index), "type": "function", "function": {"name": call.name, "arguments": ""}}
        if call.pieces == 1:
            first["function"]["arguments"] = pieces.pop()
        yield {"tool_calls": [{"index": index, **first}]}
        yield from ({"tool_calls": [{"index": index, "function": {"arguments": each}}]} for each in pieces)
    yield from answer.deltas


async def _send_stream(writer: asyncio.StreamWriter, request: Request, answer: Answer) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    if request.is_openai:
        chunks, end = _openai_stream(request, answer)
    elif request.path == "/v1/messages":
        chunks, end = anthropic_stream(answer)
    else:
        chunks, end = google_stream(answer)

    async def send(data: str) -> None:
        event = f"data: {data}\n\n".encode()
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await writer.drain()

    for chunk in chunks:
        if answer.delay:
            await asyncio.sleep(answer.delay)
        await send(json.dumps(chunk))
    match answer.ending:
        case "hang":
            await asyncio.get_running_loop().create_future()
        case "disconnect":
            return False
        case "garbage":
            await send('{"choices": [{"delta"')
        case "done":
            for chunk in end:
                await send(json.dumps(chunk))
    if request.is_openai:
        await send("[DONE]")
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _openai_stream(request: Request, answer: Answer) -> tuple[Iterable[Any], Iterable[Any]]:
    """The chunks of the answer, and those of its regular end."""
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": request.body["model"]}

    def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> Mapping[str, Any]:
        return frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    end = [chunk({}, _finish_reason(answer))]
    if answer.usage is not None and (request.body.get("stream_options") or {}).get("include_usage"):
        end.append(frame | {"choices": [], "usage": answer.usage})
    return map(chunk, _deltas(request, answer)), end


def _whole(request: Request, answer: Answer) -> dict[str, Any]:
    """The answer to a request that doesn't stream."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(_chunks(answer.text)) or None}
    if answer.reasoning:
        message["reasoning_content"] = "".join(answer.reasoning)
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": _id(request, each, index),
                "type": "function",
                "function": {"name": each.name, "arguments": each.text},
            }
            for index, each in enumerate(answer.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer)}
    content = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": request.body["model"]}
    return content | {"choices": [choice]} | ({} if answer.usage is None else {"usage": answer.usage})


async def _send_json(
    writer: asyncio.StreamWriter, content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> bool:
    body = json.dumps(content).encode()
    lines = [f"HTTP/1.1 {status} -", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    await writer.drain()
    return True


async def _send_error(writer: asyncio.StreamWriter, answer: Answer) -> bool:
    kind = "invalid_request_error" if answer.status < 500 else "server_error"
    error = {"message": answer.message, "type": kind, "param": None, "code": answer.code or None}
    return await _send_json(writer, {"error": error}, answer.status, answer.headers)


def _finish_reason(answer: Answer) -> str:
    if answer.finish_reason:
        return answer.finish_reason
    return "tool_calls" if answer.calls or any("tool_calls" in each for each in answer.deltas) else "stop"


def _id(request: Request, call: Call, index: int) -> str:
    return call.id or f"call_{len(request.messages)}_{index}"


def _chunks(text: Sequence[str]) -> Sequence[str]:
    return [text] if isinstance(text, str) else text


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(each.get("text", "") for each in content)


def _filled(value: Any, found: Mapping[str, str]) -> Any:
    match value:
        case str():
            return re.sub(r"\{\{(\w+)\}\}", lambda match: found[match[1]], value)
        case list():
            return [_filled(each, found) for each in value]
        case dict():
            return {name: _filled(each, found) for name, each in value.items()}
        case _:
            return value


async def _serve(make: Callable[[], ModelServer]) -> None:
    async with make() as server:
        print(server.port, flush=True)
        await server.serve()


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted language model on 127.0.0.1.")
    parser.add_argument("--script", type=Path, help="JSON: a list of answers, or rules; without it, an echo")
    parser.add_argument("--port", type=int, default=0, help="0: a free one; it is printed")
    parser.add_argument("--model", action="append", default=[], help="a name it knows; none: any")
    parser.add_argument("--record", type=Path, help="append the body of each request to this file, as JSON lines")
    options = parser.parse_args()
    script = echo if options.script is None else script_from_json(json.loads(options.script.read_text("utf-8")))
    with suppress(KeyboardInterrupt):
        asyncio.run(
            _serve(partial(ModelServer, script, port=options.port, models=options.model, record=options.record))
        )


if __name__ == "__main__":
    main()
