"""Event streams come out with the same events, and large ones replaced."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop.host import large_messages
from desktop.host.event_stream import EventStream
from desktop.host.large_messages import IncomingMessage, MessageRefused

pytestmark = pytest.mark.anyio


class Filtered(httpx2.AsyncByteStream):
    def __init__(self, events: EventStream, chunks: Sequence[bytes]) -> None:
        self._events = events
        self._chunks = chunks

    async def __aiter__(self):  # type: ignore[no-untyped-def]
        for chunk in self._chunks:
            async for event in self._events.take(chunk):
                yield event


async def parsed(content: bytes | httpx2.AsyncByteStream) -> list[httpx2.ServerSentEvent]:
    """The events of a stream as the SDK reads them."""
    body: dict[str, Any] = {"content": content} if isinstance(content, bytes) else {"stream": content}
    response = httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, request=httpx2.Request("GET", "http://x"), **body
    )
    return [event async for event in httpx2.EventSource(response, max_event_size=None)]


def split(stream: bytes, sizes: Sequence[int]) -> list[bytes]:
    chunks: list[bytes] = []
    position = 0
    while position < len(stream):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(stream[position : position + size])
        position += size
    return chunks


def lines() -> st.SearchStrategy[str]:
    words = st.text(st.sampled_from("ab{}: é☃"), max_size=12)
    fields = st.sampled_from(["data: ", "data:", "event: ", "id: ", "retry: ", ": ", ":", "other: ", ""])
    return st.builds(lambda field, word: f"{field}{word}", fields, words)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    st.lists(st.tuples(lines(), st.sampled_from(["\n", "\r\n", "\n\n", "\r\n\r\n", "\r", "\r\r"])), max_size=30),
    st.lists(st.integers(1, 20), min_size=1, max_size=5),
)
async def test_the_same_events_come_out(tmp_path: Path, parts: list[tuple[str, str]], sizes: list[int]) -> None:
    stream = "".join(f"{line}{end}" for line, end in parts).encode() + b"\n\n"
    events = EventStream(lambda: IncomingMessage(tmp_path, None), lambda _: None)
    expected = [event for event in await parsed(stream) if event.data or event.id]
    found = [event for event in await parsed(Filtered(events, split(stream, sizes))) if event.data or event.id]
    assert found == expected


async def test_a_large_event_is_replaced_and_keeps_its_other_fields(tmp_path: Path) -> None:
    sizes: list[int] = []

    async def read(file: Path) -> bytes:
        sizes.append(len(json.loads(file.read_bytes())["result"]["text"]))
        file.unlink()
        return b'{"small":\n1}'

    message = json.dumps({"result": {"text": "x" * 2_000_000}}, indent=1)
    data = "".join(f"data: {line}\r\n" for line in message.split("\n"))
    stream = f": comment\r\nid: 7\r\nevent: message\r\n{data}retry: 5\r\n\r\ndata: next\r\n\r\n".encode()
    events = EventStream(lambda: IncomingMessage(tmp_path / "spool", read), lambda _: None)
    assert await parsed(Filtered(events, split(stream, [65536, 1, 100]))) == [
        httpx2.ServerSentEvent(event="message", data='{"small":\n1}', id="7", retry=5),
        httpx2.ServerSentEvent(data="next", id="7"),
    ]
    assert sizes == [2_000_000]
    assert list((tmp_path / "spool").iterdir()) == []


async def test_an_event_over_the_limit_is_replaced_or_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_messages, "LARGEST_MESSAGE", 2 * large_messages.MIB)
    refused: list[MessageRefused] = []

    def replace(refusal: MessageRefused) -> bytes | None:
        refused.append(refusal)
        return b"instead" if len(refused) == 1 else None

    large = b'data: {"id":7,"result":"' + b"x" * 3_000_000 + b'"}\n\n'
    events = EventStream(lambda: IncomingMessage(tmp_path / "spool", None), replace)
    found = await parsed(Filtered(events, split(large + large + b"data: next\n\n", [65536])))
    assert [event.data for event in found] == ["instead", "next"]
    assert refused[0].code == large_messages.MESSAGE_TOO_LARGE
    assert refused[0].head.startswith(b'{"id":7,"result":"xxx') and refused[0].tail.endswith(b'x"}')
    assert list((tmp_path / "spool").iterdir()) == []


async def test_endless_lines_and_comments_take_no_memory(tmp_path: Path) -> None:
    events = EventStream(lambda: IncomingMessage(tmp_path, None), lambda _: None)
    for beginning in (b":", b"event: "):
        found = [event async for event in events.take(beginning)]
        for _ in range(100):
            found += [event async for event in events.take(b"x" * 100_000)]
        assert found == []
        assert len(events._line) <= 65536  # type: ignore[reportPrivateUsage]
        assert [event async for event in events.take(b"\n\ndata: next\n\n")][-1].endswith(b"data: next\n\n")


async def test_an_event_that_is_not_complete_leaves_no_file(tmp_path: Path) -> None:
    events = EventStream(lambda: IncomingMessage(tmp_path / "spool", None), lambda _: None)
    for _ in range(40):
        assert [event async for event in events.take(b"data: " + b"x" * 60_000)] == []
    assert len(list((tmp_path / "spool").iterdir())) == 1
    events.discard()
    assert list((tmp_path / "spool").iterdir()) == []
