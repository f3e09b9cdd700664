"""A conversation that outgrows the model's window goes on with a summary of its earlier turns, which the person can read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.assistant import summary
from desktop.assistant.approval import AllowAll, Approvals
from desktop.assistant.context_window import first_kept, summarised
from desktop.assistant.conversation import Conversation, Message, Notice, Text, ToolCall, ToolOutput, Usage
from desktop.assistant.events import PartAdded, TurnEvent
from desktop.assistant.history import History
from desktop.assistant.language_model import LanguageModel, ModelRequest
from desktop.assistant.litellm_model import LitellmModel
from desktop.assistant.results import ResultStore
from desktop.assistant.summary import transcript
from desktop.assistant.turn import SYSTEM, Assistant
from desktop.errors import AssistantError, Diagnostic
from tests.fakes.in_memory_host import Servers, tool
from tests.fakes.model_server import Answer as ModelAnswer
from tests.fakes.model_server import ModelServer
from tests.fakes.scripted import Answer, Call, Hang, ScriptedModel

pytestmark = pytest.mark.anyio

ECHO = tool("one", "echo")
#: Tokens. Four long turns of some 5,000 fill it.
WINDOW = 20_000
LONG = "wort " * 4000


class Desk:
    def __init__(self, folder: Path) -> None:
        self.history = History(folder / "history.db")
        self.conversation = Conversation()
        self.assistant = Assistant(
            catalog=(servers := Servers([ECHO])),
            runner=servers,
            reader=servers,
            results=ResultStore(folder / "results"),
            history=self.history,
            approvals=Approvals(folder / "approvals.json", AllowAll()),
            tool_calls_per_turn=lambda: 50,
        )

    def add(self, *messages: Message) -> None:
        for message in messages:
            self.history.save(self.conversation, self.conversation.add(message))

    async def say(self, model: LanguageModel, text: str) -> list[TurnEvent]:
        turn = self.assistant.turn(self.conversation, model, [Text(text)])
        async with asyncio.timeout(60), aclosing(turn) as events:
            return [event async for event in events]

    @property
    def notices(self) -> list[Notice]:
        return [part for message in self.conversation.messages for part in message.parts if isinstance(part, Notice)]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path)
    call = ToolCall("earlier", "mcp_tools", '{"activate": ["one.echo"]}', state="done", output=ToolOutput("loaded"))
    desk.assistant.toolbox(desk.conversation).load(ECHO, call)
    desk.add(Message("user", [Text("The house is red.")]), Message("assistant", [call, Text(LONG)]))
    for number in range(3):
        desk.add(Message("user", [Text(f"Go on, {number}.")]), Message("assistant", [Text(LONG)]))
    yield desk
    await desk.history.close()


def sent(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages)


def model(*answers: Answer) -> ScriptedModel:
    return ScriptedModel(*answers, context_window=WINDOW)


async def test_earlier_turns_are_summarised_by_the_model_told_to_the_person_and_tools_stay(desk: Desk) -> None:
    asked = model(["The house", " is red."], ["Yes."], ["Yes again."])
    events = await desk.say(asked, "What next?")
    summarising, answering = asked.requests
    assert summarising.tools == [] and summarising.system != SYSTEM
    assert "Person: The house is red." in sent(summarising)
    assert 'Assistant called mcp_tools with {"activate": ["one.echo"]}; result: loaded' in sent(summarising)
    assert "The house is red." in answering.messages[0].text and "data" in answering.messages[0].text
    assert answering.messages[-1].text.endswith("What next?")
    assert len(sent(answering)) < 2 * len(LONG)
    assert [each.name for each in answering.tools] == ["mcp_tools", ECHO.native_name]
    (notice,) = desk.notices
    assert (notice.diagnostic.code, notice.summary) == ("context_summarised", "The house is red.")
    assert notice.severity == "info"
    assert PartAdded(notice) in events
    assert len(desk.conversation.messages) == 10  # nothing of what was said is gone
    assert desk.conversation.messages[-1].text == "Yes."

    await desk.say(asked, "And then?")  # what was sent stays as it was sent
    assert len(asked.requests) == 3
    assert asked.requests[2].messages[: len(answering.messages)] == answering.messages


async def test_a_stored_conversation_goes_on_with_its_summary(desk: Desk) -> None:
    await desk.say(model(["The house is red."], ["Yes."]), "What next?")
    await desk.history.flush()
    loaded = await desk.history.load(desk.conversation.id)
    assert summarised(loaded.messages) == summarised(desk.conversation.messages)
    assert len(summarised(loaded.messages)) == 2


async def test_another_summary_is_made_of_the_one_before(desk: Desk) -> None:
    asked = model(["First summary."], ["Yes."], ["Second summary."], ["No."])
    await desk.say(asked, "What next?")
    for number in range(4):
        desk.add(Message("user", [Text(f"More, {number}.")]), Message("assistant", [Text(LONG)]))
    await desk.say(asked, "And now?")
    assert "First summary." in sent(asked.requests[2])
    assert "red" not in sent(asked.requests[2])
    assert "Second summary." in asked.requests[3].messages[0].text
    assert "First summary." not in sent(asked.requests[3])


@pytest.mark.parametrize(
    "answer", [[AssistantError("model_unreachable", operation="model")], [" \n"], [Call("mcp_tools", {"query": "x"})]]
)
async def test_without_a_summary_earlier_turns_are_left_out_and_the_person_is_told(desk: Desk, answer: Answer) -> None:
    asked = model(answer, ["Yes."])
    await desk.say(asked, "What next?")
    (notice,) = desk.notices
    assert (notice.diagnostic.code, notice.summary, notice.severity) == ("context_left_out", "", "warning")
    assert asked.requests[-1].messages[0].text.startswith("[The conversation before this")
    assert "red" not in sent(asked.requests[-1])
    assert desk.conversation.messages[-1].text == "Yes."


async def test_a_summary_that_takes_too_long_is_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_TIME_LIMIT", 0.05)
    asked = model(["The house", Hang()], ["Yes."])
    await desk.say(asked, "What next?")
    assert asked.closed == 1
    assert desk.notices[0].diagnostic.code == "context_left_out"


async def test_a_summary_without_end_is_cut(desk: Desk) -> None:
    asked = model(["x" * 5000, "y" * 5000, Hang()], ["Yes."])
    await desk.say(asked, "What next?")
    assert asked.closed == 1
    assert desk.notices[0].summary == "x" * 5000 + "y" * 3000


async def test_a_stop_while_the_summary_is_made_closes_its_stream(desk: Desk) -> None:
    asked = model([Hang()])
    turn = asyncio.create_task(desk.say(asked, "What next?"))
    await asyncio.wait_for(asked.streaming.wait(), 10)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert asked.closed == 1
    assert [notice.diagnostic.code for notice in desk.notices] == ["cancelled"]
    assert desk.conversation.messages[-1].finished


async def test_what_a_summary_took_counts_in_the_turn(desk: Desk) -> None:
    events = await desk.say(model(["Short."], ["Yes."]), "What next?")
    assert events[-1].usage == Usage(20, 4)  # type: ignore[union-attr]  # the last one is TurnFinished


async def test_a_conversation_that_fits_or_whose_window_is_unknown_is_sent_as_it_is(desk: Desk) -> None:
    for window in (None, 10 * WINDOW):
        asked = ScriptedModel(["Yes."], context_window=window)
        await desk.say(asked, "What next?")
        assert "The house is red." in sent(asked.requests[0])
    assert desk.notices == []


@pytest.mark.parametrize(
    "said", ["This model's maximum context length is 20000 tokens.", "the request exceeds the available context size"]
)
async def test_a_model_whose_window_is_learned_from_its_refusal_is_asked_again_within_it(desk: Desk, said: str) -> None:
    script = [ModelAnswer(status=400, message=said), ModelAnswer(text="The house is red."), ModelAnswer(text="Yes.")]
    async with ModelServer([*script, ModelAnswer(text="Yes again.")]) as server:
        asked = LitellmModel("openai/scripted", api_base=server.address)
        await desk.say(asked, "What next?")
        assert desk.conversation.messages[-1].text == "Yes."
        await desk.say(asked, "And then?")
    assert [notice.diagnostic.code for notice in desk.notices] == ["context_summarised"]
    sizes = [len(json.dumps(each.body)) for each in server.requests]
    assert len(sizes) == 4
    assert sizes[2] < sizes[3] < sizes[0] / 2


async def test_a_model_that_refuses_again_is_not_asked_for_ever(desk: Desk) -> None:
    refusal = ModelAnswer(status=400, message="maximum context length is 20000 tokens")
    async with ModelServer([refusal, ModelAnswer(text="The house is red."), refusal]) as server:
        await desk.say(LitellmModel("openai/scripted", api_base=server.address), "What next?")
    assert [notice.diagnostic.code for notice in desk.notices] == ["context_summarised", "model_context_exceeded"]


async def test_a_single_turn_that_is_too_long_is_left_to_the_provider(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    asked = model(["Yes."])
    await desk.say(asked, LONG * 8)
    assert desk.notices == []
    await desk.history.close()


MESSAGES = st.lists(
    st.builds(
        lambda role, size: Message(role, [Text("t" * size)]),
        st.sampled_from(["user", "assistant"]),
        st.integers(0, 9000),
    ),
    min_size=1,
    max_size=12,
)


@given(MESSAGES, st.integers(1000, 20_000))
def test_what_is_kept_begins_with_what_the_person_said(messages: list[Message], window: int) -> None:
    messages = [*messages, Message("user", [Text("last")])]
    kept = first_kept(messages, system="", tools=[], window=window)
    if kept is None:
        return
    assert messages[kept].role == "user" and kept > 0
    notice = Notice(Diagnostic("context_summarised"), covers=messages[kept - 1].id, summary="short")
    told = summarised([*messages, Message("assistant", [notice])])
    assert told[0].text.endswith(messages[kept].text) and "short" in told[0].text
    assert list(told[1:-1]) == messages[kept + 1 :]


@given(MESSAGES, st.integers(0, 5000))
def test_a_transcript_is_never_longer_than_asked_and_keeps_the_newest(messages: list[Message], limit: int) -> None:
    text = transcript([*messages, Message("user", [Text("last")])], limit)
    assert len(text) <= limit
    assert limit < 200 or text.endswith("Person: last")


def test_a_summary_of_a_branch_that_was_left_counts_no_more() -> None:
    messages = [Message("user", [Text("one")]), Message("assistant", [Text("two")])]
    notice = Notice(Diagnostic("context_summarised"), covers="elsewhere", summary="short")
    assert summarised([*messages, Message("assistant", [notice])])[0].text == "one"
