"""The turns that run: one at most in a conversation, each in a task of its own. The chat pane starts them and draws them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop.assistant.conversation import Attachment, Conversation, Message, Part, Prompt, Text
from desktop.errors import AssistantError, Diagnostic
from desktop.ui import tasks
from desktop.ui.chat.draft import Attached, Draft

if TYPE_CHECKING:
    from desktop.core import Core


@dataclass(slots=True)
class Run:
    """A turn, from Enter to its end."""

    conversation: Conversation
    draft: Draft
    first: int
    """How many messages there were before."""
    task: asyncio.Task[None] | None = None
    began: bool = False
    """The assistant has taken the draft: it is in the conversation."""
    fault: Diagnostic | None = None
    """Why the turn could not begin; what could not be read of the draft says so itself."""

    @property
    def messages(self) -> list[Message]:
        """Those of this turn."""
        return self.conversation.messages[self.first :]


class Turns(QObject):
    """Signals:
    changed(object, object): A `Run` and the `TurnEvent` that came of it.
    began(object): The assistant has taken a `Run`'s draft. Before its first event.
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

    def start(self, conversation: Conversation, draft: Draft) -> None:
        """Says something in a conversation in which no turn runs. It waits until Deskhand has started, and until what is attached
        is read."""
        run = self._runs[conversation.id] = Run(conversation, draft, len(conversation.messages))
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
            parts = await self._parts(run)
            if parts is None:
                return
            turn = self._core.assistant.turn(run.conversation, model, parts)
            async with aclosing(turn) as events:
                async for event in events:
                    if not run.began:
                        run.began = True
                        self.began.emit(run)
                    self.changed.emit(run, event)
        except AssistantError as error:
            run.fault = error.diagnostic

    async def _parts(self, run: Run) -> list[Part] | None:
        """What is sent of a draft, what is attached before what is written; None where something can't be read."""
        read = await asyncio.gather(*(self._read(each, run.conversation.id) for each in run.draft.attached))
        found: list[Part] = [part for part in read if part is not None]
        if len(found) < len(read):
            return None
        return [*found, Text(run.draft.text)] if run.draft.text.strip() else found

    async def _read(self, attached: Attached, conversation_id: str) -> Attachment | Prompt | None:
        if isinstance(attached.content, Attachment | Prompt):
            return attached.content
        attached.fault = None
        try:
            return await self._core.assistant.attachments.read(attached.content, conversation_id=conversation_id)
        except AssistantError as error:
            attached.fault = error.diagnostic
            return None

    def _end(self, run: Run) -> None:
        """After the task, also after one that was cancelled before it ran at all."""
        del self._runs[run.conversation.id]
        self.ended.emit(run)
