"""What was sent is sent again as it was: providers bill a request's beginning again from the first byte that differs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from desktop.assistant import litellm_model
from desktop.assistant.approval import AllowAll, Approvals
from desktop.assistant.conversation import Conversation, Text
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
    "google": ("gemini/gemini-2.5-flash", "/v1beta"),
}


class Parts(NamedTuple):
    """A request in the order in which providers count it; each element is the JSON text of one tool or message."""

    tools: list[str]
    system: str
    messages: list[str]


def parts_of(request: Request) -> Parts:
    """Key order is kept as it came. Marks of where to cache are no content: Anthropic doesn't count them."""
    body = _without_marks(request.body)
    if request.is_openai:
        tools, system, messages = body["tools"], body["messages"][0], body["messages"][1:]
    elif request.path == "/v1/messages":
        tools, system, messages = body["tools"], body["system"], body["messages"]
    else:
        [declared] = body["tools"]
        tools, system, messages = (
            declared["function_declarations"],
            body["system_instruction"],
            body["contents"],
        )
    return Parts([json.dumps(each) for each in tools], json.dumps(system), [json.dumps(each) for each in messages])


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


@pytest.fixture(params=FORMS)
async def requests(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What a provider was sent in ten turns."""
    name, path = FORMS[request.param]
    servers, history, conversation = Servers([*TOOLS]), History(tmp_path / "history.db"), Conversation()
    assistant = Assistant(
        catalog=servers,
        runner=servers,
        reader=servers,
        results=ResultStore(tmp_path / "results"),
        history=history,
        approvals=Approvals(tmp_path / "approvals.json", AllowAll()),
        tool_calls_per_turn=lambda: 50,
    )
    async with ModelServer(list(script())) as server, asyncio.timeout(60):
        provider = Provider(name.partition("/")[0], "", "", server.address.removesuffix("/v1") + path)
        monkeypatch.setattr(litellm_model, "provider_of", lambda _: provider)
        model = LitellmModel(name, api_key="key")
        for turn in range(TURNS):
            async with aclosing(assistant.turn(conversation, model, [Text(f"Turn {turn}: «go»")])) as events:
                async for _ in events:
                    pass
    await history.close()
    assert [call.state for message in conversation.messages for call in message.tool_calls] == ["done"] * 9
    assert len(server.requests) == TURNS + 3 * len(ACTIVATIONS)
    return server.requests


async def test_each_request_begins_with_the_one_before_and_only_an_activation_adds_a_tool(
    requests: list[Request],
) -> None:
    grown: list[int] = []
    for number, (earlier, later) in enumerate(pairwise(map(parts_of, requests)), 1):
        assert later.system == earlier.system
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert len(later.messages) > len(earlier.messages)
        assert later.tools[: len(earlier.tools)] == earlier.tools
        if added := later.tools[len(earlier.tools) :]:
            assert len(added) == 1
            grown.append(number)
    assert grown == [2, 8, 15]  # each the request that follows the activation, and no other
