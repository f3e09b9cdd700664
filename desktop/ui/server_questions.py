"""The person in the window, as servers' questions reach them. Built by ``app.py``; satisfies the host's `Respondent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from PySide6.QtWidgets import QWidget

from desktop.ui import tasks
from desktop.ui.dialogs.question_dialogs import FormDialog, PageDialog, WaitDialog, action, content_of

if TYPE_CHECKING:
    from desktop.host.elicitation_form import Value
    from desktop.host.server_questions import Action, FormQuestion, PageQuestion


class WindowRespondent:
    """Shows each question over the window, without blocking it."""

    def __init__(self) -> None:
        self.window: QWidget | None = None

    async def fill(self, question: FormQuestion) -> Mapping[str, Value] | Literal["decline", "cancel"]:
        dialog = FormDialog(question, self._parent())
        return cast("Any", content_of(dialog, await tasks.shown(dialog)))

    async def visit(self, question: PageQuestion) -> Action:
        return cast("Action", action(await tasks.shown(PageDialog(question, self._parent()))))

    async def wait_for_pages(self, server: str) -> bool:
        return action(await tasks.shown(WaitDialog(server, self._parent()))) == "accept"

    def _parent(self) -> QWidget:
        assert self.window is not None, "servers are connected after the window is made"
        return self.window
