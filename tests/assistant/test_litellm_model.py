"""Language models over real HTTP: streams, tool calls in every shape, errors, and Stop."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from desktop.assistant import litellm_model
from desktop.assistant.approval import AllowAll, Approvals
from desktop.assistant.conversation import Conversation, Image, Message, Notice, Text, ToolCall, ToolOutput, Usage
from desktop.assistant.events import PartAdded, ReasoningDelta, TextDelta, TurnFinished
from desktop.assistant.history import History
from desktop.assistant.interfaces import ProgressCallback
from desktop.assistant.language_model import AnswerFinished, ModelEvent, ModelRequest, ToolCallRequested, ToolSpec
from desktop.assistant.litellm_model import LitellmModel
from desktop.assistant.model_list import Provider
from desktop.assistant.results import ResultStore
from desktop.assistant.turn import Assistant
from desktop.errors import AssistantError, Diagnostic
from tests.fakes.certificate import self_signed
from tests.fakes.in_memory_host import Servers, text_result, tool
from tests.fakes.model_server import Answer, Call, ModelServer, Script, rules

pytestmark = pytest.mark.anyio

SEARCH = ToolSpec("mcp_tools", "Finds tools.", {"type": "object", "properties": {"query": {"type": "string"}}})
SUM = ToolSpec(
    "mcp__everything__get-sum", "Adds.", {"type": "object", "properties": {"a": {"type": "number"}, "b": {}}}
)
HELLO = [Message("user", [Text("Hello")])]


def request(messages: Sequence[Message] = (), tools: Sequence[ToolSpec] = (SEARCH, SUM)) -> ModelRequest:
    return ModelRequest("You help.", messages or HELLO, tools)


def model_at(server: ModelServer, **options: Any) -> LitellmModel:
    return LitellmModel("openai/scripted", api_base=server.address, **options)


async def events_of(model: LitellmModel, asked: ModelRequest | None = None) -> list[ModelEvent]:
    async with asyncio.timeout(60), aclosing(model.stream(asked or request())) as stream:
        return [event async for event in stream]


async def events_from(script: Script, asked: ModelRequest | None = None) -> list[ModelEvent]:
    async with ModelServer(script) as server:
        return await events_of(model_at(server), asked)


async def code_from(script: Script) -> str:
    with pytest.raises(AssistantError) as caught:
        await events_from(script)
    return caught.value.diagnostic.code


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


async def test_an_answer_comes_chunk_by_chunk_with_what_the_provider_told_of_its_tokens() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    answer = Answer(reasoning=["Hm", "m."], text=["He", "llo ", "\n```"], usage=usage)
    assert await events_from([answer]) == [
        ReasoningDelta("Hm"),
        ReasoningDelta("m."),
        TextDelta("He"),
        TextDelta("llo "),
        TextDelta("\n```"),
        AnswerFinished(Usage(10, 2, 4, None)),
    ]


async def test_half_a_character_does_not_end_the_conversation(server: ModelServer) -> None:
    server.script = [Answer(text="fine")]
    call = ToolCall("1", SUM.name, '{"a": "\ud83d"}', output=ToolOutput("sum \ud83d"))
    messages = [*HELLO, Message("assistant", [Text("cut \ud83d"), Text("\ud83d\ude00")]), Message("assistant", [call])]
    await events_of(model_at(server), request([*messages, Message("user", [Text("go on")])]))
    sent = server.requests[0].messages
    assert "\ufffd" in sent[2]["content"]
    assert sent[2]["content"].endswith("\U0001f600")
    assert sent[4]["content"] == "sum \ufffd"


async def test_arguments_nested_beyond_all_measure_do_not_end_the_conversation(server: ModelServer) -> None:
    server.script = [Answer(text="fine")]
    call = ToolCall("1", SUM.name, "[" * 100_000, output=ToolOutput("not valid"))
    await events_of(model_at(server), request([*HELLO, Message("assistant", [call]), Message("user", [Text("go on")])]))
    assert server.requests[0].messages[2]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_tokens_are_not_guessed_where_the_provider_tells_none() -> None:
    assert await events_from([Answer(text="Hi")]) == [TextDelta("Hi"), AnswerFinished(Usage())]


async def test_an_answer_may_repeat_itself() -> None:
    events = await events_from([Answer(text=["0000, "] * 300)])
    assert events == [TextDelta("0000, ")] * 300 + [AnswerFinished(Usage())]


async def test_a_known_price_gives_the_cost(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider("openai", "OpenAI", "OPENAI_API_KEY", server.address)
    monkeypatch.setattr(litellm_model, "provider_of", lambda _: provider)
    server.script = [Answer(text="Hi", usage={"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100})]
    events = await events_of(LitellmModel("openai/gpt-4o", api_key="key"))
    assert isinstance(events[-1], AnswerFinished)
    assert events[-1].usage.cost == pytest.approx(1000 * 2.5e-6 + 100 * 1e-5)


ANTHROPIC = ("anthropic/claude-sonnet-4-5", "")
GOOGLE = ("gemini/gemini-2.5-flash", "/v1beta")


def provider_model(server: ModelServer, form: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> LitellmModel:
    """A model of a provider whose address is the server's."""
    name, path = form
    provider = Provider(name.partition("/")[0], "", "", server.address.removesuffix("/v1") + path)
    monkeypatch.setattr(litellm_model, "provider_of", lambda _: provider)
    return LitellmModel(name, api_key="key")


@pytest.mark.parametrize(
    ("form", "usage", "told"),
    [
        (
            ANTHROPIC,
            {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0, "output_tokens": 20},
            Usage(100, 20, 90),
        ),
        (
            GOOGLE,
            {
                "promptTokenCount": 100,
                "candidatesTokenCount": 20,
                "totalTokenCount": 120,
                "cachedContentTokenCount": 60,
            },
            Usage(100, 20, 60),
        ),
    ],
    ids=["Anthropic", "Google"],
)
async def test_other_providers_forms_give_the_same_events(
    form: tuple[str, str], usage: dict[str, int], told: Usage, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [Call("mcp_tools", {"query": "x"}, "toolu_1"), Call("mcp_tools", {"query": "y"}, "toolu_2")]
    script = [Answer(text=["Let ", "me."], calls=calls, usage=usage), Answer(text=["Hi"], usage=usage)]
    async with ModelServer(script, key="key") as server:
        model = provider_model(server, form, monkeypatch)
        events = await events_of(model)
        second = await events_of(model)
    assert events[:2] == [TextDelta("Let "), TextDelta("me.")]
    requested = [each for each in events if isinstance(each, ToolCallRequested)]
    assert [(each.name, json.loads(each.arguments)) for each in requested] == [
        ("mcp_tools", {"query": "x"}),
        ("mcp_tools", {"query": "y"}),
    ]
    assert len({each.id for each in requested}) == 2
    assert second[0] == TextDelta("Hi")
    for last in (events[-1], second[-1]):
        assert isinstance(last, AnswerFinished) and last.usage.cost
        assert replace(last.usage, cost=None) == told


@pytest.mark.parametrize("form", [ANTHROPIC, GOOGLE], ids=["Anthropic", "Google"])
async def test_other_providers_answers_that_break_off_are_told_and_stopped_ones_closed(
    form: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer([Answer(text="Hel", ending="disconnect"), Answer(text="Hel", ending="hang")]) as server:
        model = provider_model(server, form, monkeypatch)
        with pytest.raises(AssistantError) as caught:
            await events_of(model)
        assert caught.value.diagnostic.code == "model_failed"
        stream = model.stream(request())
        assert await anext(stream) == TextDelta("Hel")
        await stream.aclose()
        await server.wait_for(lambda: server.disconnects == 1, 1)


@pytest.mark.parametrize("form", [ANTHROPIC, GOOGLE], ids=["Anthropic", "Google"])
async def test_other_providers_errors_have_the_same_codes(
    form: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[str] = []
    answers = [Answer(status=status, message="This model has no such thing") for status in (401, 404, 429, 500)]
    async with ModelServer(answers) as server:
        for _ in answers:
            with pytest.raises(AssistantError) as caught:
                await events_of(provider_model(server, form, monkeypatch))
            codes.append(caught.value.diagnostic.code)
    assert codes == ["model_key_refused", "model_unknown", "model_rate_limited", "model_unavailable"]


async def test_what_anthropic_is_to_keep_in_its_cache_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = [*HELLO, Message("assistant", [call("a", "mcp_tools", "{}", ToolOutput("found"))])]
    async with ModelServer([Answer(text="Hi")]) as server:
        await events_of(provider_model(server, ANTHROPIC, monkeypatch), request(conversation))
    body = server.requests[0].body
    mark = {"type": "ephemeral"}
    assert body["system"] == [{"type": "text", "text": "You help.", "cache_control": mark}]
    assert body["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "found", "cache_control": mark}
    ]


def fragment(index: int | None, name: str | None = None, arguments: str = "", id_: str | None = None) -> dict[str, Any]:
    return {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        (
            [[fragment(0, "f", '{"a"', "x")], [fragment(0, None, ": 1")], [fragment(0, None, "}")]],
            [("x", "f", '{"a": 1}')],
        ),
        ([[fragment(0, "f", "", "x")]], [("x", "f", "{}")]),
        ([[fragment(2, "f", "{}", "x")], [fragment(5, "g", "{}", "y")]], [("x", "f", "{}"), ("y", "g", "{}")]),
        ([[fragment(0, "f", "{}", "x"), fragment(1, "g", "{}", "y")]], [("x", "f", "{}"), ("y", "g", "{}")]),
        ([[fragment(0, "f", "{}", "x")], [fragment(0, "g", "{}", "y")]], [("x", "f", "{}"), ("y", "g", "{}")]),
        ([[fragment(0, "f", "{}")], [fragment(0, "g", "{}")]], [("call_0", "f", "{}"), ("call_1", "g", "{}")]),
        ([[fragment(0, None, "{", "x")], [fragment(0, "f", "}", "x")]], [("x", "f", "{}")]),
        ([[fragment(0, "f", "{", "x")], [fragment(0, "f", "}", "x")]], [("x", "f", "{}")]),
        (
            [
                [fragment(0, "f", "", "x")],
                [fragment(1, "g", "", "y")],
                [fragment(0, None, "{}")],
                [fragment(1, None, "[]")],
            ],
            [("x", "f", "{}"), ("y", "g", "[]")],
        ),
        ([[fragment(0, "f", "no json", "x")]], [("x", "f", "no json")]),
    ],
    ids=[
        "in pieces",
        "without arguments",
        "numbered with gaps",
        "two in one chunk",
        "all numbered 0",
        "all numbered 0 without ids",
        "name in a later chunk",
        "name in every chunk",
        "pieces of two calls in turn",
        "arguments that are no JSON",
    ],
)
async def test_tool_calls_are_put_together_from_their_pieces(
    deltas: list[list[dict[str, Any]]], calls: list[tuple[str, str, str]]
) -> None:
    events = await events_from([Answer(deltas=[{"tool_calls": each} for each in deltas])])
    assert events == [*(ToolCallRequested(*call) for call in calls), AnswerFinished(Usage())]


async def test_text_and_parallel_calls_come_in_one_answer() -> None:
    calls = [Call("mcp_tools", {"query": "sum"}, "a", pieces=7), Call("mcp_tools", {"query": "tree"}, "b", pieces=3)]
    assert await events_from([Answer(text="Let me see.", calls=calls)]) == [
        TextDelta("Let me see."),
        ToolCallRequested("a", "mcp_tools", '{"query": "sum"}'),
        ToolCallRequested("b", "mcp_tools", '{"query": "tree"}'),
        AnswerFinished(Usage()),
    ]


def call(id_: str, name: str, arguments: str, output: ToolOutput) -> ToolCall:
    return ToolCall(id_, name, arguments, state="done", output=output)


async def test_the_conversation_is_sent_in_the_providers_form_and_the_same_each_time(server: ModelServer) -> None:
    picture = Image("image/png", "AAAA")
    conversation = [
        Message("user", [Text("What is this?"), picture]),
        Message(
            "assistant",
            [
                Text("I look."),
                call("a", "mcp_tools", '{"query": "x"}', ToolOutput("none")),
                call("b", "see it!", "[1", ToolOutput("", [picture])),
            ],
        ),
        Message("assistant", []),
        Message("assistant", [call("a", "mcp_tools", "{}", ToolOutput("again"))], id="m"),
        Message("assistant", [Text("Nothing.")]),
        Message("user", [Text("Thanks"), Text("Bye")]),
    ]
    await events_of(model_at(server), request(conversation))
    await events_of(model_at(server), request(conversation))
    assert server.requests[0].body == server.requests[1].body
    messages = server.requests[0].messages
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    second_id = messages[6]["tool_calls"][0]["id"]
    assert second_id not in ("a", "b")
    assert messages == [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, shown]},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "mcp_tools", "arguments": '{"query": "x"}'}},
                {"id": "b", "type": "function", "function": {"name": "see_it_", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "none"},
        {"role": "tool", "tool_call_id": "b", "content": "(The result is empty.)"},
        {"role": "user", "content": [{"type": "text", "text": "Images in the result of see_it_:"}, shown]},
        {
            "role": "assistant",
            "tool_calls": [{"id": second_id, "type": "function", "function": {"name": "mcp_tools", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": second_id, "content": "again"},
        {"role": "assistant", "content": "Nothing."},
        {"role": "user", "content": "Thanks\n\nBye"},
    ]
    assert server.requests[0].body["tools"][0] == {
        "type": "function",
        "function": {"name": "mcp_tools", "description": "Finds tools.", "parameters": SEARCH.schema},
    }


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(status=401, message="Incorrect API key"), "model_key_refused"),
        (Answer(status=402, message="Pay"), "model_credit_exhausted"),
        (Answer(status=429, message="You exceeded your quota", code="insufficient_quota"), "model_credit_exhausted"),
        (Answer(status=403, message="Not yours"), "model_not_allowed"),
        (Answer(status=404, message="The model `x` does not exist", code="model_not_found"), "model_unknown"),
        (Answer(status=404, message="Unknown request URL"), "model_unreachable"),
        (Answer(status=429, message="Slow down", headers={"Retry-After": "30"}), "model_rate_limited"),
        (Answer(status=400, message="maximum context length is 8192 tokens"), "model_context_exceeded"),
        (Answer(status=400, message="the request exceeds the available context size"), "model_context_exceeded"),
        (Answer(status=400, message="temperature is bad"), "model_refused_request"),
        (Answer(status=413, message="Request Entity Too Large"), "model_context_exceeded"),
        (Answer(status=408, message="too slow"), "model_unavailable"),
        (Answer(status=500, message="boom"), "model_unavailable"),
        (Answer(status=502, message="bad gateway"), "model_unavailable"),
        (Answer(status=503, message="Loading model"), "model_unavailable"),
        (Answer(status=529, message="Overloaded"), "model_unavailable"),
        (Answer(ending="garbage"), "model_unreachable"),
        (Answer(text="Hel", ending="disconnect"), "model_failed"),
        (Answer(text="Hel", ending="garbage"), "model_failed"),
        (Answer(ending="disconnect"), "model_unreachable"),
        (Answer(deltas=[{"tool_calls": [fragment(0, None, "{}", "x")]}]), "model_failed"),
    ],
)
async def test_each_error_has_the_code_that_names_its_remedy(answer: Answer, code: str) -> None:
    assert await code_from([answer]) == code


async def test_what_came_before_a_break_is_kept() -> None:
    events: list[ModelEvent] = []
    async with ModelServer([Answer(text=["Hel", "lo"], ending="disconnect")]) as server:
        with pytest.raises(AssistantError):
            async for event in model_at(server).stream(request()):
                events.append(event)
    assert events == [TextDelta("Hel"), TextDelta("lo")]


async def test_an_answer_cut_at_its_longest_is_no_whole_answer() -> None:
    cut = {"tool_calls": [fragment(0, "f", '{"a": [1, ', "x")]}
    assert await code_from([Answer(text="Once upon", deltas=[cut], finish_reason="length")]) == "model_failed"


@pytest.mark.parametrize(("text", "code"), [("", "model_unreachable"), ("Hel", "model_failed")])
async def test_a_model_that_says_nothing_more_is_given_up(
    text: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm_model, "_IDLE_LIMIT", 0.3)
    assert await code_from([Answer(text=text and [text], ending="hang")]) == code


async def fault_of(address: str) -> Diagnostic:
    with pytest.raises(AssistantError) as caught:
        await events_of(LitellmModel("openai/scripted", api_base=address))
    return caught.value.diagnostic


async def test_a_refused_connection_is_told_as_such() -> None:
    async with ModelServer() as server:
        address = server.address
    fault = await fault_of(address)
    assert fault.message == "The model can't be reached: nothing listens at its address."


async def test_a_name_that_nobody_knows_is_told_as_such() -> None:
    fault = await fault_of("http://deskhand.invalid/v1")
    assert fault.message == "The model can't be reached: the name in its address is not known here."


async def test_an_address_with_a_foreign_certificate_or_without_tls_is_told_as_such(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path)[0])

    async def say_no(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    said: list[str] = []
    for tls in (context, None):
        async with await asyncio.start_server(say_no, "127.0.0.1", 0, ssl=tls) as server:
            port = server.sockets[0].getsockname()[1]
            said.append((await fault_of(f"https://127.0.0.1:{port}/v1")).message)
    assert said == [
        "The model can't be reached: the certificate of its address is not trusted.",
        "The model can't be reached: there is no TLS at its address, which may begin with http:// instead.",
    ]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "1"}, "; it asks to wait 1 second."),
        ({"Retry-After": "20.5"}, "; it asks to wait 21 seconds."),
        ({"Retry-After": "3600"}, "; it asks to wait 60 minutes."),
        ({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, "."),
        ({"Retry-After": "secret"}, "."),
        ({}, "."),
    ],
)
async def test_how_long_a_provider_asks_to_wait_is_told(headers: Mapping[str, str], wait: str) -> None:
    async with ModelServer([Answer(status=429, message="Slow down", headers=headers)]) as server:
        assert (await fault_of(server.address)).message == f"The provider limits the rate of requests{wait}"


@pytest.mark.parametrize(("status", "told"), [(400, "(HTTP status 400)"), (500, "(HTTP status 500)")])
async def test_a_refusal_has_its_status_and_nothing_of_its_text(status: int, told: str) -> None:
    async with ModelServer([Answer(status=status, message="sk-secret")]) as server:
        fault = await fault_of(server.address)
    assert told in fault.message
    assert "secret" not in str(fault)


async def test_a_name_of_no_provider_is_told_as_such() -> None:
    with pytest.raises(AssistantError) as caught:
        await events_of(LitellmModel("no-such-model"))
    assert caught.value.diagnostic.code == "model_unknown"


async def test_without_a_key_nothing_is_asked() -> None:
    with pytest.raises(AssistantError) as caught:
        await events_of(LitellmModel("anthropic/claude-sonnet-5-5"))
    assert caught.value.diagnostic.code == "model_key_missing"


async def test_a_key_stays_out_of_errors_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ModelServer(key="right") as server:
        with pytest.raises(AssistantError) as caught:
            await events_of(model_at(server, api_key="sk-canary-4711"))
        assert await events_of(model_at(server, api_key="right"))
    assert caught.value.diagnostic.code == "model_key_refused"
    assert "canary" not in repr(caught.value) + str(caught.value.diagnostic)
    assert caught.value.__suppress_context__
    assert "canary" not in caplog.text and "Hello" not in caplog.text
    assert "openai/scripted: the answer failed: AuthenticationError, status 401" in caplog.text


async def test_a_key_of_the_environment_is_never_sent_to_an_address(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    await events_of(model_at(server))
    assert "sk-canary" not in str(server.requests[0].headers)


async def test_a_model_on_this_computer_is_asked_without_a_proxy(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await events_of(model_at(server))


async def test_a_providers_key_goes_to_the_provider_whatever_the_environment_says(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(proxy, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            monkeypatch.setenv(name, server.address)
        with pytest.raises(AssistantError):
            await events_of(LitellmModel("openai/gpt-5.4", api_key="sk-of-this-test"))
    assert asked and asked[0].startswith(b"CONNECT api.openai.com:443 ")
    assert server.requests == []


async def test_a_tool_the_provider_refuses_is_set_aside_and_told() -> None:
    message = "Invalid schema for function 'mcp__everything__get-sum': In context=('properties', 'b'), no type."
    async with ModelServer([Answer(status=400, message=message), Answer(text="Hi"), Answer(text="Ho")]) as server:
        model = model_at(server)
        events = await events_of(model)
        await events_of(model)
    assert isinstance(events[0], PartAdded) and isinstance(events[0].part, Notice)
    told = events[0].part
    assert (told.diagnostic.code, told.severity) == ("model_refused_tool", "warning")
    assert told.diagnostic.message == "The provider refuses the tool mcp__everything__get-sum in b."
    assert events[1] == TextDelta("Hi")
    assert [each.tools for each in server.requests] == [["mcp_tools", SUM.name], ["mcp_tools"], ["mcp_tools"]]


async def test_a_tool_is_found_by_its_place_in_the_request() -> None:
    async with ModelServer(
        [Answer(status=400, message="tools.1.custom.input_schema: bad"), Answer(text="Hi")]
    ) as server:
        await events_of(model_at(server))
    assert server.requests[1].tools == ["mcp_tools"]


async def test_images_a_model_refuses_are_left_out_and_told() -> None:
    conversation = [Message("user", [Text("See"), Image("image/png", "AAAA")])]
    refusal = Answer(status=500, message="image input is not supported")
    async with ModelServer([refusal, Answer(text="Hi")]) as server:
        events = await events_of(model_at(server), request(conversation))
    assert isinstance(events[0], PartAdded) and isinstance(events[0].part, Notice)
    assert events[0].part.diagnostic.code == "model_refused_images"
    assert server.requests[1].messages[1]["content"] == "See\n\n[Left out: an image. This model takes none.]"


@pytest.mark.parametrize("own_client", [True, False], ids=["address on this computer", "provider"])
@pytest.mark.parametrize("answer", [Answer(ending="hang"), Answer(text="Hi", ending="hang")], ids=["before", "midway"])
async def test_stop_closes_the_connection_at_once(
    answer: Answer, own_client: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer([answer]) as server:
        provider = Provider("openai", "OpenAI", "OPENAI_API_KEY", server.address)
        if not own_client:
            monkeypatch.setattr(litellm_model, "provider_of", lambda _: provider)
        model = model_at(server) if own_client else LitellmModel("openai/scripted", api_key="key")
        began = asyncio.Event()

        async def read() -> None:
            async with aclosing(model.stream(request())) as stream:
                async for _ in stream:
                    began.set()

        task = asyncio.create_task(read())
        await server.wait_for(lambda: len(server.requests) == 1, 60)
        if answer.text:
            await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_for(lambda: server.disconnects == 1, 1)


ACT = rules(
    [
        {
            "result": None,
            "answer": {"text": "I look.", "calls": [{"name": "mcp_tools", "arguments": {"query": "sum"}, "pieces": 4}]},
        },
        {
            "result": r"\[tool\] (?P<tool>\S+)",
            "answer": {"calls": [{"name": "mcp_tools", "arguments": {"activate": ["{{tool}}"]}}]},
        },
        {
            "result": "loaded",
            "user": r"(?P<a>\d+) and (?P<b>\d+)",
            "tool": "mcp__math__sum",
            "answer": {
                "calls": [
                    {"name": "mcp__math__sum", "arguments": '{"a": {{a}}, "b": {{b}}}'},
                    {"name": "mcp__math__sum", "arguments": {"a": 1, "b": 1}},
                ]
            },
        },
        {"result": "(?P<result>.*)", "answer": {"text": ["It is ", "{{result}}."]}},
    ]
)


async def test_a_model_finds_activates_and_calls_a_tool_in_one_turn(tmp_path: Path) -> None:
    async def add(arguments: Mapping[str, Any], on_progress: ProgressCallback) -> CallToolResult:
        return text_result(str(arguments["a"] + arguments["b"]))

    servers = Servers([tool("math", "sum")], bodies={"math.sum": add})
    history = History(tmp_path / "history.db")
    assistant = Assistant(
        catalog=servers,
        runner=servers,
        reader=servers,
        results=ResultStore(tmp_path / "results"),
        history=history,
        approvals=Approvals(tmp_path / "approvals.json", AllowAll()),
        tool_calls_per_turn=lambda: 50,
    )
    conversation = Conversation()
    async with ModelServer(ACT) as server, asyncio.timeout(60):
        turn = assistant.turn(conversation, model_at(server), [Text("add 2 and 40")])
        assert isinstance([event async for event in turn][-1], TurnFinished)
    await history.close()
    assert sorted(arguments["a"] for _, arguments in servers.calls) == [1, 2]
    assert conversation.messages[-1].text == "It is 2."
    assert [each.tools for each in server.requests] == [["mcp_tools"]] * 2 + [["mcp_tools", "mcp__math__sum"]] * 2
    sent = [json.dumps(each.messages) for each in server.requests]
    assert all(later.startswith(earlier[:-1]) for earlier, later in pairwise(sent)), (
        "what was sent is sent again as it was"
    )


async def test_closing_the_stream_closes_the_connection_at_once() -> None:
    async with ModelServer([Answer(text="Hi", ending="hang")]) as server:
        stream = model_at(server).stream(request())
        assert await anext(stream) == TextDelta("Hi")
        await stream.aclose()
        await server.wait_for(lambda: server.disconnects == 1, 1)


@pytest.mark.parametrize(
    ("said", "window"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", 8192),
        ("request (5020 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096),
        ('{"type":"exceed_context_size_error","n_prompt_tokens":5020,"n_ctx":4096}', 4096),
        ("Trying to keep the first 6000 tokens when context length of only 4096 tokens", 4096),
        ("prompt is longer than the context window", None),
    ],
)
async def test_how_much_a_model_takes_is_read_of_its_refusal(said: str, window: int | None) -> None:
    async with ModelServer([Answer(status=400, message=said)]) as server:
        model = model_at(server)
        assert model.context_window is None
        with pytest.raises(AssistantError):
            await events_of(model, request([Message("user", [Text("x" * 40_000)])]))
    assert model.context_window == window or (window is None and 6000 < (model.context_window or 0) < 9000)


async def test_the_window_of_a_known_model_is_told(server: ModelServer) -> None:
    await events_of(model_at(server))  # litellm is imported by now
    assert LitellmModel("anthropic/claude-sonnet-4-5").context_window == 200_000
    assert LitellmModel("claude-sonnet-4-5").context_window == 200_000
    assert LitellmModel("openai/gpt-4o", api_base=server.address).context_window is None
    assert LitellmModel("openai/no-such-model").context_window is None


def test_importing_asks_no_network_and_the_program_ends_silently() -> None:
    program = """
import asyncio, sys
asked = []
def note(name, values):
    if name in ("socket.connect", "socket.getaddrinfo"):
        asked.append(values[1] if name == "socket.connect" else values[:2])
sys.addaudithook(note)
from desktop.assistant.conversation import Message, Text
from desktop.assistant.language_model import ModelRequest
from desktop.assistant.litellm_model import LitellmModel, preload
from tests.fakes.model_server import Answer, ModelServer
preload()

async def main():
    async with ModelServer([Answer(text="Hi"), Answer(text="Hi", ending="hang")]) as server:
        model = LitellmModel("openai/scripted", api_base=server.address)
        request = ModelRequest("", [Message("user", [Text("Hello")])], [])
        print([type(event).__name__ async for event in model.stream(request)])
        await anext(model.stream(request))
        print([task for task in asyncio.all_tasks() if "litellm" in repr(task)])
        print({each for each in asked if each != ("127.0.0.1", server.port)})

asyncio.run(main())
"""
    found = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.stdout.splitlines() == ["['TextDelta', 'AnswerFinished']", "[]", "set()"]
    assert found.stderr == ""
    assert found.returncode == 0
