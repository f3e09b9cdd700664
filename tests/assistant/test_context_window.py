"""What is sent of a conversation that is longer than the model's window."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.assistant.context_window import fitted
from desktop.assistant.conversation import Image, Message, Notice, Part, SpilledFile, Text, ToolCall, ToolOutput
from desktop.assistant.language_model import ToolSpec
from desktop.errors import Diagnostic


def called(number: int, text: str, *, images: int = 0, spilled: bool = False) -> Message:
    file = SpilledFile(f"id{number}", "/tmp/x", 1, 1, 1) if spilled else None
    output = ToolOutput(text, [Image("image/png", "AA==")] * images, spilled=file)
    return Message("assistant", [ToolCall(f"c{number}", "mcp__s__t", "{}", state="done", output=output)])


def conversation(*results: str) -> list[Message]:
    return [Message("user", [Text("go")]), *(called(number, text) for number, text in enumerate(results))]


def texts(messages: list[Message]) -> list[str]:
    return [call.output.text for message in messages for call in message.tool_calls if call.output is not None]


def fit(messages: list[Message], window: int | None, tools: list[ToolSpec] | None = None) -> list[Message]:
    return list(fitted(messages, system="system", tools=tools or [], window=window))


def test_what_fits_is_sent_as_it_is() -> None:
    messages = conversation("x" * 4000, "y" * 4000)
    assert fit(messages, 100_000) == messages
    assert fit(messages, None) == messages


def test_messages_that_hold_nothing_for_a_model_are_left_out() -> None:
    notice = Message("assistant", [Notice(Diagnostic("model_failed"))])
    messages = [Message("user", [Text("go")]), notice, Message("assistant", []), Message("user", [Text("again")])]
    assert fit(messages, None) == [messages[0], messages[3]]


def test_the_oldest_results_are_shortened_and_say_so() -> None:
    messages = conversation("a" * 4000, "b" * 4000, "c" * 4000)
    before = deepcopy(messages)
    first, second, third = texts(fit(messages, 3000))
    assert first == "a" * 400 + (
        "\n[Shortened to fit your context window: 4000 characters and 0 images before."
        " If you need the rest, make the call again.]"
    )
    assert second.startswith("b" * 400 + "\n[Shortened")
    assert third == "c" * 4000
    assert messages == before


def test_a_result_in_a_file_names_where_the_rest_is() -> None:
    messages = [called(1, "a" * 8000, spilled=True), called(2, "b" * 8000)]
    assert "read result://id1 of the server deskhand" in texts(fit(messages, 3000))[0]


def test_images_go_with_the_result_they_are_in() -> None:
    messages = [called(1, "short", images=3), called(2, "short")]
    shortened = fit(messages, 4000)[0].tool_calls[0].output
    assert shortened is not None
    assert shortened.images == []
    assert "3 images before" in shortened.text


def test_the_newest_results_stay_even_if_they_are_too_long() -> None:
    messages = conversation("a" * 100_000)
    assert fit(messages, 1000) == messages


def test_tools_and_system_prompt_take_room_too() -> None:
    messages = conversation("a" * 4000, "b" * 400)
    schema = {"type": "object", "description": "x" * 8000}
    assert texts(fit(messages, 2500)) == ["a" * 4000, "b" * 400]
    assert "[Shortened" in texts(fit(messages, 2500, [ToolSpec("t", "", schema)]))[0]


PARTS: st.SearchStrategy[Part] = st.builds(Text, st.integers(0, 3000).map(lambda size: "t" * size))
MESSAGES = st.lists(
    st.builds(lambda parts: Message("user", parts), st.lists(PARTS, min_size=1, max_size=2))
    | st.builds(called, st.integers(), st.integers(0, 6000).map(lambda size: "r" * size), images=st.integers(0, 1)),
    max_size=12,
)


@given(MESSAGES, st.integers(500, 8000))
def test_what_was_sent_once_is_sent_the_same_again_until_room_is_made(messages: list[Message], window: int) -> None:
    before = deepcopy(messages)
    sent = [fit(messages[: length + 1], window) for length in range(len(messages))]
    assert messages == before
    changes = 0
    for shorter, longer in pairwise(sent):
        assert len(longer) == len(shorter) + 1
        for old, new in zip(shorter, longer, strict=False):
            assert [type(part) for part in old.parts] == [type(part) for part in new.parts]
            if any("[Shortened" in text for text in texts([old])):
                assert old == new
        changes += shorter != longer[:-1]
    made = sum(text.count("[Shortened") for text in texts(sent[-1])) if sent else 0
    assert changes <= made


@pytest.mark.parametrize("window", [0, -5])
def test_a_window_of_nothing_shortens_what_it_can(window: int) -> None:
    first, second = texts(fit(conversation("a" * 4000, "b" * 4000), window))
    assert "[Shortened" in first
    assert second == "b" * 4000
