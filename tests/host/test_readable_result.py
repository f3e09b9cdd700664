"""A tool's result that is outside the protocol keeps all of it that can be read, and says what could not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult, TextContent

from desktop.host.readable_result import readable_result
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
