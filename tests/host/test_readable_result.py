"""A result that is outside the protocol keeps all of it that can be read, and says what could not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult, TextContent, TextResourceContents

from desktop.errors import AssistantError
from desktop.host.readable_result import readable_prompt, readable_read, readable_result
from tests.host.conftest import MakeConnection
from tests.host.test_connection import scripted

AS_IT_CAME = "Outside the protocol, shown as it came: "
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "uri", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def texts(result: CallToolResult) -> list[str]:
    return [part.text for part in result.content if isinstance(part, TextContent)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "shown", "structured", "is_error"),
    [
        (
            {"content": [{"type": "text", "text": "one"}, {"type": "video", "x": 1}, {"type": "text", "text": "two"}]},
            ["one", AS_IT_CAME + '{"type": "video", "x": 1}', "two"],
            None,
            False,
        ),
        ({"content": "plain"}, ["plain"], None, False),
        ({"content": ["a", {"type": "text", "text": None}], "isError": True},
         ["a", AS_IT_CAME + '{"type": "text", "text": null}'], None, True),
        ({"structuredContent": {"price": 5}}, [], {"price": 5}, False),
        ({"toolResult": [1, 2]}, [AS_IT_CAME + '{"toolResult": [1, 2]}'], None, False),
        ({"content": None, "isError": "true"}, [], None, True),
        ({}, [], None, False),
    ],
)  # fmt: skip
async def test_what_can_be_read_of_a_malformed_result_is_kept_in_its_order_and_the_rest_is_shown_as_it_came(
    make: MakeConnection, answer: dict[str, Any], shown: list[str], structured: Any, is_error: bool
) -> None:
    connection = make(scripted(tools_call=answer))
    result = await connection.call_tool("tool", {})
    assert (texts(result), result.structured_content, result.is_error) == (shown, structured, is_error)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"contents": [{"uri": "a:1", "text": "one"}, {"uri": "a:2"}, {"uri": "a:3", "text": "three"}]},
         [("a:1", "one"), ("a:b", AS_IT_CAME + '{"uri": "a:2"}'), ("a:3", "three")]),
        ({"contents": [{"text": "no uri", "mimeType": 7}, "bare"]}, [("a:b", "no uri"), ("a:b", "bare")]),
        ({"contents": {"uri": "a:1", "text": "no list"}}, [("a:1", "no list")]),
        ({"contents": [{"uri": "a:1", "blob": "AAAA", "mimeType": None}, None]},
         [("a:1", "AAAA"), ("a:b", AS_IT_CAME + "null")]),
        ({"content": [{"type": "text", "text": "like a tool"},
                      {"type": "resource", "resource": {"uri": "a:1", "text": "embedded"}}]},
         [("a:b", "like a tool"), ("a:1", "embedded")]),
        ({"contents": "text"}, [("a:b", "text")]),
    ],
)  # fmt: skip
async def test_what_can_be_read_of_a_malformed_resource_is_kept_and_said_in_the_log(
    make: MakeConnection, answer: dict[str, Any], shown: list[tuple[str, str]]
) -> None:
    connection = make(scripted(resources_read=answer))
    result = await connection.read_resource("a:b")
    assert [(part.uri, part.text if isinstance(part, TextResourceContents) else part.blob)
            for part in result.contents] == shown  # fmt: skip
    assert any("outside the protocol" in line for line in connection.log.tail(20))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"messages": [{"role": "system", "content": {"type": "text", "text": "one"}},
                       {"role": "assistant", "content": "two"}]}, [("user", "one"), ("assistant", "two")]),
        ({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "one"}, "two"]}], "description": 7},
         [("assistant", "one"), ("assistant", "two")]),
        ({"messages": ["bare", {"role": "user"}, {"role": "user", "content": {"type": "video"}}]},
         [("user", "bare"), ("user", AS_IT_CAME + '{"role": "user"}'), ("user", AS_IT_CAME + '{"type": "video"}')]),
        ({"messages": {"role": "user", "content": {"type": "text", "text": "no list"}}}, [("user", "no list")]),
        ({"messages": "text"}, [("user", "text")]),
    ],
)  # fmt: skip
async def test_what_can_be_read_of_a_malformed_prompt_is_kept_in_its_order(
    make: MakeConnection, answer: dict[str, Any], shown: list[tuple[str, str]]
) -> None:
    connection = make(scripted(prompts_get=answer))
    result = await connection.get_prompt("greeting")
    assert [(message.role, getattr(message.content, "text", "")) for message in result.messages] == shown
    assert any("outside the protocol" in line for line in connection.log.tail(20))


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [{}, {"contents": None}, {"contents": 7}, {"messages": True}, {"text": "secret"}])
async def test_where_nothing_can_be_read_the_error_says_what_is_missing(
    make: MakeConnection, answer: dict[str, Any]
) -> None:
    connection = make(scripted(resources_read=answer, prompts_get=answer))
    for asked, missing in ((connection.read_resource("a:b"), "contents"), (connection.get_prompt("p"), "messages")):
        with pytest.raises(AssistantError) as raised:
            await asked
        assert raised.value.diagnostic.code == "protocol_error"
        assert raised.value.diagnostic.message == (
            f"The server answered outside the protocol: the answer has no {missing}."
        )
        assert raised.value.diagnostic.server == "server"


@given(st.dictionaries(st.sampled_from(["contents", "content", "messages", "description", "_meta"]), VALUES))
def test_whatever_a_server_answers_nothing_but_the_one_error_is_raised(answer: dict[str, Any]) -> None:
    for read in (lambda: readable_read(answer, "a:b"), lambda: readable_prompt(answer)):
        try:
            result = read()
        except AssistantError as error:
            assert error.diagnostic.code == "protocol_error"
        else:
            assert result is not None


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["content", "structuredContent", "isError", "_meta", "other"]), VALUES))
def test_whatever_a_server_answers_is_a_result_with_a_part_for_each_of_its_own(answer: dict[str, Any]) -> None:
    result = readable_result(answer)
    assert result is not None
    assert result.structured_content == answer.get("structuredContent")
    if isinstance(content := answer.get("content"), list):
        assert len(result.content) == len(content)


def test_another_kind_of_answer_is_no_result() -> None:
    assert readable_result({"resultType": "input_required", "content": []}) is None
