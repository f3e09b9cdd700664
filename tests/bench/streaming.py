"""The longest gap of the event loop while 200 tokens a second stream into a conversation of 2,000 messages, in a real pane.

Prose, lists, a table and code, as models write them; the fake model below costs nothing, so what is measured is the window.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np  # noqa: F401  # as the host has it in a thread before a conversation is opened
from _measuring import gaps, report
from PySide6.QtWidgets import QApplication

from desktop.assistant.conversation import Conversation, Message, Text, ToolCall, ToolOutput
from desktop.assistant.events import TurnEvent
from desktop.ui import theme
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.chat_pane import ChatPane
from desktop.ui.chat.message_list import MessageList
from desktop.ui.event_loop import run
from tests.ui.fake_assistant import FakeCore, FakeTurn

MESSAGES = 2000
TOKENS = 4000
TOKENS_A_SECOND = 200
_PIECE = 0.02  # seconds between two events

PROSE = "The **quick** brown fox jumps over the `lazy` dog, and [then](https://example.org) it rests a while. "
ANSWER = (
    f"## A heading\n\n{PROSE * 5}\n\n- {PROSE}\n- {PROSE}\n  - nested\n\n1. one\n2. two\n\n"
    "| name | number | text |\n|---|--:|---|\n" + "| a | 1 | some words here |\n" * 12 + "\n"
    "```python\n" + "def greet(name: str) -> str:\n    return f'Hello {name}'  # a comment\n\n" * 12 + "```\n\n"
)


def conversation() -> Conversation:
    """Alternating, an answer now and then with code and with a tool call."""
    made = Conversation(title="A long conversation")
    for number in range(MESSAGES // 2):
        made.add(Message("user", [Text(f"Question {number}: what about it?")]))
        answer = Message("assistant", [Text(ANSWER if number % 5 == 0 else PROSE * 3)], model="A model")
        if number % 3 == 0:
            output = ToolOutput('{"rows": [1, 2, 3]}')
            answer.parts.append(ToolCall("1", "mcp__a__b", '{"x": 1}', "a", "b", "done", output))
        made.add(answer)
    return made


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        core = FakeCore(Path(folder))
        core.start()
        pane = ChatPane(core.as_core, PersonAnswers())
        pane.resize(900, 800)
        pane.show()
        updates: list[float] = []
        _measure_updates(pane.findChild(MessageList), updates)
        long = conversation()
        async with gaps() as opening:
            started = time.perf_counter()
            pane.open_conversation(long)
            shown = time.perf_counter() - started
            await asyncio.sleep(2)  # the rest is built
        core.assistant.script = _stream
        async with gaps() as streaming:
            updates.clear()
            ended = asyncio.Event()
            pane.running_changed.connect(lambda running, _: ended.set() if not running else None)
            pane.send("Go on")
            await ended.wait()
        report(
            "streaming",
            streaming.longest * 1000,
            "ms",
            against=f"{TOKENS_A_SECOND} tokens a second into {MESSAGES} messages",
            budget=50,
            mean_update_ms=round(statistics.mean(updates) * 1000, 2),
            updates=len(updates),
            opened_ms=round(shown * 1000, 1),
            longest_gap_opening_ms=round(opening.longest * 1000, 1),
        )
        pane.close()


def _measure_updates(messages: MessageList | None, updates: list[float]) -> None:
    """Times each drawing of what changed."""
    assert messages is not None
    timer = messages._draw_timer
    draw = messages._draw

    def timed() -> None:
        started = time.perf_counter()
        draw()
        updates.append(time.perf_counter() - started)

    timer.timeout.disconnect()
    timer.timeout.connect(timed)


async def _stream(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
    """Four characters a token; as many at a time as are due."""
    text = ANSWER * (4 * TOKENS // len(ANSWER) + 1)
    started, sent = time.perf_counter(), 0
    while sent < 4 * TOKENS:
        due = min(4 * TOKENS, int((time.perf_counter() - started) * 4 * TOKENS_A_SECOND))
        if due > sent:
            yield turn.text(text[sent:due])
            sent = due
        await asyncio.sleep(_PIECE)


if __name__ == "__main__":
    application = QApplication([])
    theme.apply("light")
    run(main())
