"""The turns that run: one at most in a conversation, each in a task of its own. The chat pane starts them and draws them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop.assistant.conversation import Conversation, Message, Text
from desktop.errors import AssistantError, Diagnostic
from desktop.ui import tasks

if TYPE_CHECKING:
    from desktop.core import Core


@dataclass(slots=True)
class Run:
    """A turn, from Enter to its end."""

    conversation: Conversation
    text: str
    first: int
    """How many messages there were before."""
    task: asyncio.Task[None] | None = None
    began: bool = False
    """The assistant has taken the text: it is in the conversation."""
    fault: Diagnostic | None = None
    """Why the turn could not begin."""

    @property
    def messages(self) -> list[Message]:
        """Those of this turn."""
        return self.conversation.messages[self.first :]


class Turns(QObject):
    """Signals:
    changed(object, object): A `Run` and the `TurnEvent` that came of it.
    began(object): The assistant has taken a `Run`'s text. Before its first event.
    ended(object): A `Run` is over, whichever way.
    """

    changed = Signal(object, object)
    began = Signal(object)
    ended = Signal(object)

    def __init__(self, core: Core, parent: QObject) -> None:
        super().__init__(parent)
        self._core = core
        self._runs: dict[str, Run] = {}

    @property
    def running(self) -> list[Run]:
        return list(self._runs.values())

    def of(self, conversation_id: str) -> Run | None:
        """The turn that runs in a conversation."""
        return self._runs.get(conversation_id)

    def start(self, conversation: Conversation, text: str) -> None:
        """Says something in a conversation in which no turn runs. It waits until Deskhand has started."""
        run = self._runs[conversation.id] = Run(conversation, text, len(conversation.messages))
        run.task = tasks.start(self._run(run))
        run.task.add_done_callback(lambda _: self._end(run))

    def stop(self, conversation_id: str) -> None:
        """Stops a conversation's turn, if one runs."""
        run = self._runs.get(conversation_id)
        if run is not None and run.task is not None:
            run.task.cancel()

    async def _run(self, run: Run) -> None:
        try:
            await self._core.ready()
            model = await self._core.language_model()
            turn = self._core.assistant.turn(run.conversation, model, [Text(run.text)])
            async with aclosing(turn) as events:
                async for event in events:
                    if not run.began:
                        run.began = True
                        self.began.emit(run)
                    self.changed.emit(run, event)
        except AssistantError as error:
            run.fault = error.diagnostic

    def _end(self, run: Run) -> None:
        """After the task, also after one that was cancelled before it ran at all."""
        del self._runs[run.conversation.id]
        self.ended.emit(run)
