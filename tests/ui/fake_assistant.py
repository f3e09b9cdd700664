"""A core without servers and models, whose turns a test steers event by event: what the chat needs of `Core`, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from desktop.assistant.conversation import Conversation, Message, Notice, Part, Text, interrupt
from desktop.assistant.events import MessageStarted, TextDelta, TurnEvent, TurnFinished
from desktop.assistant.toolbox import Toolbox
from desktop.catalog_entries import ServerEntry
from desktop.errors import Diagnostic
from desktop.settings import Settings
from desktop.signals import Signal

if TYPE_CHECKING:
    from desktop.core import Core

Script = Callable[["FakeTurn"], AsyncGenerator[TurnEvent, None]]


class FakeTurn:
    """What a script works on: the conversation, and the message that is being answered."""

    def __init__(self, conversation: Conversation, said: str) -> None:
        self.conversation = conversation
        self.said = said
        self.message = Message("assistant", model="Test model", finished=False)

    def text(self, text: str) -> TextDelta:
        """Appends to the message, as the turn does."""
        last = self.message.parts[-1] if self.message.parts else None
        if isinstance(last, Text):
            last.text += text
        else:
            self.message.parts.append(Text(text))
        return TextDelta(text)


class FakeAssistant:
    """Runs a script a turn; `script` is what the next turn does after the messages have started."""

    def __init__(self) -> None:
        self.script: Script = _echo
        self.unloaded: list[str] = []

    async def turn(
        self, conversation: Conversation, model: Any, parts: Sequence[Part]
    ) -> AsyncGenerator[TurnEvent, None]:
        said = next(part.text for part in parts if isinstance(part, Text))
        conversation.title = conversation.title or said[:80]
        turn = FakeTurn(conversation, said)
        try:
            yield MessageStarted(conversation.add(Message("user", list(parts))))
            yield MessageStarted(conversation.add(turn.message))
            async for event in self.script(turn):
                yield event
            turn.message.finished = True
            yield TurnFinished("done")
        except (asyncio.CancelledError, GeneratorExit):
            turn.message.parts.append(Notice(Diagnostic("cancelled", "model"), "info"))
            raise
        finally:
            turn.message.finished = True
            interrupt(turn.message)

    def toolbox(self, conversation: Conversation) -> Toolbox:
        return Toolbox(conversation.messages)

    def unload(self, conversation: Conversation, native_name: str) -> None:
        self.unloaded.append(native_name)
        Toolbox(conversation.messages).unload(native_name)


class FakeHistory:
    def __init__(self) -> None:
        self.changed: Signal[()] = Signal()
        self.renamed: list[tuple[str, str]] = []

    async def rename(self, id_: str, title: str) -> None:
        self.renamed.append((id_, title))


class FakeCatalog:
    def __init__(self) -> None:
        self.entries = [ServerEntry("deskhand")]

    def servers(self) -> list[ServerEntry]:
        return self.entries


class FakeHost:
    def __init__(self) -> None:
        self.servers_changed: Signal[()] = Signal()
        self.state_changed: Signal[str] = Signal()
        self.connections: dict[str, Any] = {}


class FakeCore:
    """`start` makes it ready, as the real one does after its imports."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(folder / "settings.json")
        self.history = FakeHistory()
        self.started: Signal[()] = Signal()
        self.fault: Exception | None = None
        self._ready = asyncio.Event()

    def start(self) -> None:
        self.assistant = FakeAssistant()
        self.catalog = FakeCatalog()
        self.host = FakeHost()
        self._ready.set()
        self.started.emit()

    async def ready(self) -> None:
        await self._ready.wait()

    async def language_model(self) -> Any:
        if self.fault is not None:
            raise self.fault
        return object()

    @property
    def as_core(self) -> Core:
        return cast("Core", self)


async def _echo(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
    yield turn.text(f"You said: {turn.said}")
