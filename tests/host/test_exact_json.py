"""The text of structured content reaches the client as the server wrote it, over every transport."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.host.connection import Connection
from desktop.host.exact_json import EXACT_META, take_exact_text, with_exact_text
from tests.host.conftest import MakeConnection, scripted
from tests.servers.running import hostile, http_server

EXACT = '{"a": [1.50, 1e999, -0, 12345678901234567890123, 1E5], "b":"\\u00e9\\"}", "b":0.10}'
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["result", "structuredContent", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@asynccontextmanager
async def connected(make: MakeConnection, transport: str) -> AsyncIterator[Connection]:
    if transport == "stdio":
        yield make(hostile())
        return
    async with http_server(hostile(*(["--sse"] if transport == "event stream" else []))) as url:
        connection = make(kind="http", url=url)
        yield connection
        await connection.close()


@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["stdio", "http", "event stream"])
async def test_the_text_comes_to_the_letter_beside_the_values(make: MakeConnection, transport: str) -> None:
    async with connected(make, transport) as connection:
        result = await connection.call_tool("structured", {"json": EXACT})
        assert (result.meta or {})[EXACT_META] == EXACT
        assert result.structured_content["b"] == 0.1
        assert set(result.model_dump(by_alias=True)) == {
            "content",
            "structuredContent",
            "isError",
            "resultType",
            "_meta",
        }
        assert EXACT_META not in ((await connection.call_tool("echo", {"text": "x"})).meta or {})


@pytest.mark.anyio
async def test_a_result_outside_the_protocol_keeps_the_text_too(make: MakeConnection) -> None:
    connection = make(scripted(tools_call={"content": [{"type": "video"}], "structuredContent": {"price": 2.5}}))
    assert (await connection.call_tool("tool", {})).meta == {EXACT_META: '{"price": 2.5}'}


@given(VALUES, VALUES, VALUES)
def test_whatever_a_message_holds_nothing_but_the_text_of_its_structured_content_is_added(
    content: Any, structured: Any, more: Any
) -> None:
    message = {"result": {"content": content, "structuredContent": structured, "x": more}, "more": more, "id": 1}
    read = json.loads(with_exact_text(json.dumps(message).encode()))
    assert json.loads(take_exact_text(read["result"]) or "") == structured
    assert read == message


@pytest.mark.parametrize(
    "text",
    [
        '{"result": {"content": [{"structuredContent": 1}]}}',
        '{"structuredContent": 1, "result": {"x": "\\"structuredContent\\": 1"}}',
        '{"method": "x", "params": {"structuredContent": 1}}',
        '{"result": {"structuredContent": 1',
        '{"result": {"structuredContent" 1}}',
        '{"result": ["structuredContent"]}',
        '"structuredContent"',
        '{"result": {"structuredContent": ' + "[" * 100_000,
    ],
)
def test_a_message_without_structured_content_of_its_own_stays_as_it_is(text: str) -> None:
    assert with_exact_text(text.encode()) == text.encode()
