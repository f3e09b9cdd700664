"""What was sent is sent again as it was: providers bill a request's beginning again from the first byte that differs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from desktop.assistant import litellm_model
from desktop.assistant.approval import AllowAll, Approvals
from desktop.assistant.conversation import Conversation, Notice, Text
from desktop.assistant.history import History
from desktop.assistant.litellm_model import LitellmModel
from desktop.assistant.model_list import Provider
from desktop.assistant.results import ResultStore
from desktop.assistant.turn import Assistant
from tests.fakes.in_memory_host import Servers, tool
from tests.fakes.model_server import Answer, Call, ModelServer, Request

pytestmark = pytest.mark.anyio

TOOLS = [
    tool("files", name, schema={"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}})
    for name in ("zip", "copy", "move")
]
TURNS = 10
#: In which turn which tool is activated and called.
ACTIVATIONS = {0: TOOLS[0], 3: TOOLS[1], 7: TOOLS[2]}
FORMS = {
    "openai": ("openai/gpt-4o", "/v1"),
    "anthropic": ("anthropic/claude-sonnet-4-5", ""),
    "anthropic, no deferred tools": ("anthropic/claude-sonnet-4-20250514", ""),
    "google": ("gemini/gemini-2.5-flash", "/v1beta"),
}


class Parts(NamedTuple):
    """A request in the order in which providers count it; each element is the JSON text of one tool or message.

    Anthropic leaves deferred tools out of its count of tools, and counts a definition where a result refers to it.
    """

    tools: list[str]
    system: str
    messages: list[str]


def parts_of(request: Request) -> Parts:
    """Key order is kept as it came. Marks of where to cache are no content: Anthropic doesn't count them."""
    body = _without_marks(request.body)
    if request.is_openai:
        tools, system, messages = body["tools"], body["messages"][0], body["messages"][1:]
    elif request.path == "/v1/messages":
        deferred = {each["name"]: each for each in body["tools"] if each.get("defer_loading")}
        tools = [each for each in body["tools"] if each["name"] not in deferred]
        system, messages = body["system"], _with_definitions(body["messages"], deferred)
    else:
        [declared] = body["tools"]
        tools, system, messages = (
            declared["function_declarations"],
            body["system_instruction"],
            body["contents"],
        )
    return Parts([json.dumps(each) for each in tools], json.dumps(system), [json.dumps(each) for each in messages])


def _with_definitions(value: Any, deferred: dict[str, Any]) -> Any:
    """Messages with each reference as the definition it stands for. A reference to another tool is a KeyError."""
    if isinstance(value, dict):
        if value.get("type") == "tool_reference":
            return deferred[value["tool_name"]]
        return {name: _with_definitions(each, deferred) for name, each in value.items()}
    return [_with_definitions(each, deferred) for each in value] if isinstance(value, list) else value


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_marks(each) for name, each in value.items() if name != "cache_control"}
    return [_without_marks(each) for each in value] if isinstance(value, list) else value


def script() -> Iterator[Answer]:
    for turn in range(TURNS):
        if turn in ACTIVATIONS:
            found = ACTIVATIONS[turn]
            yield Answer(text="I look.", calls=[Call("mcp_tools", {"query": found.name}, id=f"query{turn}")])
            yield Answer(calls=[Call("mcp_tools", {"activate": [found.identifier]}, id=f"activate{turn}")])
            yield Answer(calls=[Call(found.native_name, {"b": "é", "a": turn}, id=f"call{turn}")])
        yield Answer(text=["Done ", f"{turn}."])


class Desk:
    """A conversation with three tools, and a model at a scripted server in one of the forms."""

    def __init__(self, form: str, server: ModelServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        name, path = FORMS[form]
        provider = Provider(name.partition("/")[0], "", "", server.address.removesuffix("/v1") + path)
        monkeypatch.setattr(litellm_model, "provider_of", lambda _: provider)
        self.servers, self.history, self.conversation = Servers([*TOOLS]), History(folder / "h.db"), Conversation()
        self.model = LitellmModel(name, api_key="key")
        self.assistant = Assistant(
            catalog=self.servers,
            runner=self.servers,
            reader=self.servers,
            results=ResultStore(folder / "results"),
            history=self.history,
            approvals=Approvals(folder / "approvals.json", AllowAll()),
            tool_calls_per_turn=lambda: 50,
        )

    async def say(self, text: str) -> None:
        events = self.assistant.turn(self.conversation, self.model, [Text(text)])
        async with asyncio.timeout(60), aclosing(events):
            async for _ in events:
                pass
        await self.history.flush()


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def desk(
    request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Desk]:
    desk = Desk(getattr(request, "param", "anthropic"), server, tmp_path, monkeypatch)
    yield desk
    await desk.history.close()


@pytest.mark.parametrize("desk", FORMS, indirect=True)
async def test_each_request_begins_with_the_one_before_and_only_an_activation_adds_a_tool(
    desk: Desk, server: ModelServer, request: pytest.FixtureRequest
) -> None:
    server.script = list(script())
    for turn in range(TURNS):
        await desk.say(f"Turn {turn}: «go»")
    calls = [call for message in desk.conversation.messages for call in message.tool_calls]
    assert [call.state for call in calls] == ["done"] * 9
    assert len(server.requests) == TURNS + 3 * len(ACTIVATIONS)
    grown: list[int] = []
    for number, (earlier, later) in enumerate(pairwise(map(parts_of, server.requests)), 1):
        assert later.system == earlier.system
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert len(later.messages) > len(earlier.messages)
        assert later.tools[: len(earlier.tools)] == earlier.tools
        if added := later.tools[len(earlier.tools) :]:
            assert len(added) == 1
            grown.append(number)
    # Each the request that follows the activation; where tools can be deferred, not even that.
    deferring = request.node.callspec.params["desk"] == "anthropic"
    assert grown == ([] if deferring else [2, 8, 15])


def activating(*identifiers: str) -> list[Answer]:
    return [Answer(calls=[Call("mcp_tools", {"activate": [*identifiers]}, id="a")]), Answer(text="Done.")]


def result_of(request: Request) -> Any:
    """The content of the first tool result."""
    return next(
        block["content"]
        for message in request.body["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    )


def deferred_in(request: Request) -> list[str]:
    return [each["name"] for each in request.body["tools"] if each.get("defer_loading")]


async def test_an_activation_is_answered_with_references_to_deferred_tools_and_the_cache_is_marked_there(
    desk: Desk, server: ModelServer
) -> None:
    server.script = activating("files.zip", "files.copy")
    await desk.say("go")
    names = [TOOLS[0].native_name, TOOLS[1].native_name]
    sent = server.requests[1]
    assert result_of(sent) == [{"type": "tool_reference", "tool_name": each} for each in names]
    assert deferred_in(sent) == names
    assert sent.body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert json.dumps(sent.body).count("cache_control") == 2
    assert not any("cache_control" in each for each in sent.body["tools"])


async def test_an_answer_that_says_more_than_what_was_loaded_stays_text_and_its_tools_are_not_deferred(
    desk: Desk, server: ModelServer
) -> None:
    server.script = activating("files.zip", "files.nothing")
    await desk.say("go")
    assert "not loaded: files.nothing" in json.dumps(result_of(server.requests[1]))
    assert deferred_in(server.requests[1]) == []
    assert len(server.requests[1].body["tools"]) == 2


async def test_a_tool_that_is_not_offered_any_more_is_not_referred_to(desk: Desk, server: ModelServer) -> None:
    server.script = [*activating("files.zip", "files.copy"), Answer(text="Yes.")]
    await desk.say("go")
    desk.servers.entries.remove(TOOLS[1])
    await desk.say("again")
    assert "tool_reference" not in json.dumps(server.requests[-1].body)
    assert [each["name"] for each in server.requests[-1].body["tools"]] == ["mcp_tools", TOOLS[0].native_name]


async def test_a_model_that_refuses_deferred_tools_gets_them_plainly_from_then_on(
    desk: Desk, server: ModelServer
) -> None:
    refusal = Answer(status=400, message="tools.1.custom.defer_loading: Extra inputs are not permitted")
    activation, done = activating("files.zip")
    server.script = [activation, refusal, done, Answer(text="Yes.")]
    await desk.say("go")
    await desk.say("again")
    assert [len(deferred_in(each)) for each in server.requests] == [0, 1, 0, 0]
    notices = [part for message in desk.conversation.messages for part in message.parts if isinstance(part, Notice)]
    assert [part.diagnostic.code for part in notices] == ["model_refused_deferral"]
    assert all(len(each.body["tools"]) == 2 for each in server.requests[1:])
    assert [message.text for message in desk.conversation.messages if message.role == "assistant"] == [
        "",
        "Done.",
        "Yes.",
    ]
