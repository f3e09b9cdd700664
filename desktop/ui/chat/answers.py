"""The person in the window, as the assistant sees them: decides on calls and answers Guide's questions through cards.

``app.py`` gives it to the core as `Approver` and `Asker`; the cards of the chat show what waits here and answer it. A wait that
is cancelled (Stop) is forgotten, so no card can answer it any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

from PySide6.QtCore import QObject, Signal

from desktop.assistant.approval import ApprovalRequest, Decision
from desktop.assistant.conversation import Choice, Form


class PersonAnswers(QObject):
    """Signals:
    waiting_changed: A question came, or one was answered or cancelled.
    server_allowed(str): The person allows all tools that a server has now, for good.
    """

    waiting_changed = Signal()
    server_allowed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._approvals: dict[Hashable, ApprovalRequest] = {}
        self._futures: dict[Hashable, asyncio.Future[Any]] = {}

    async def decide(self, request: ApprovalRequest) -> Decision:
        """Waits for the person's decision on a call."""
        self._approvals[id(request)] = request
        return await self._answer(id(request))

    async def choose(self, choice: Choice) -> int | None:
        """Waits for one of the options."""
        return await self._answer(choice.id)

    async def fill(self, form: Form) -> dict[str, Any] | None:
        """Waits for a tool's arguments."""
        return await self._answer(form.id)

    def approval(self, conversation_id: str, call_id: str) -> ApprovalRequest | None:
        """The oldest decision that waits for a call: ids of calls are the model's, unique in their message alone."""
        return next(
            (
                each
                for each in self._approvals.values()
                if (each.conversation_id, each.call.id) == (conversation_id, call_id)
            ),
            None,
        )

    def waits_for(self, part_id: str) -> bool:
        """Whether a question (a choice or a form) is open."""
        return part_id in self._futures

    def answer_approval(self, request: ApprovalRequest, decision: Decision) -> None:
        """Decides; without effect on what is no longer asked."""
        self._resolve(id(request), decision)

    def allow_server(self, request: ApprovalRequest) -> None:
        """Allows a call, and for good all tools that its server has now."""
        if id(request) not in self._approvals:  # it is asked no more
            return
        self.server_allowed.emit(request.tool.server)
        self.answer_approval(request, "once")

    def answer_choice(self, part_id: str, index: int | None) -> None:
        self._resolve(part_id, index)

    def answer_form(self, part_id: str, values: dict[str, Any] | None) -> None:
        self._resolve(part_id, values)

    def _resolve(self, key: Hashable, value: Any) -> None:
        future = self._futures.get(key)
        if future is not None and not future.done():
            future.set_result(value)

    async def _answer(self, key: Hashable) -> Any:
        self._futures[key] = asyncio.get_running_loop().create_future()
        self.waiting_changed.emit()
        try:
            return await self._futures[key]
        finally:
            del self._futures[key]
            self._approvals.pop(key, None)
            self.waiting_changed.emit()
