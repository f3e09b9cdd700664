"""The person in the window, as servers' questions reach them. Built by ``app.py``; satisfies the host's `Respondent`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import shiboken6
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from desktop.ui import tasks
from desktop.ui.dialogs.question_dialogs import FormDialog, PageDialog, WaitDialog, action, content_of

if TYPE_CHECKING:
    from desktop.host.elicitation_form import Value
    from desktop.host.server_questions import Action, FormQuestion, PageQuestion

Dialog = TypeVar("Dialog", bound=QDialog)


class WindowRespondent:
    """Shows each question over the window, without blocking it."""

    def __init__(self) -> None:
        self.window: QWidget | None = None

    async def fill(self, question: FormQuestion) -> Mapping[str, Value] | Literal["decline", "cancel"]:
        return cast("Any", content_of(*await self._asked(lambda parent: FormDialog(question, parent))))

    async def visit(self, question: PageQuestion) -> Action:
        _, result = await self._asked(lambda parent: PageDialog(question, parent))
        return cast("Action", action(result))

    async def wait_for_pages(self, server: str) -> bool:
        _, result = await self._asked(lambda parent: WaitDialog(server, parent))
        return action(result) == "accept"

    async def _asked(self, make: Callable[[QWidget], Dialog]) -> tuple[Dialog, int]:
        """Shows a question over whatever has the keyboard for itself, which would keep it from being answered otherwise; when
        that closes first, over the window."""
        assert self.window is not None, "servers are connected after the window is made"
        while True:
            dialog = make(QApplication.activeModalWidget() or self.window)
            result = await tasks.shown(dialog)
            if shiboken6.isValid(dialog) or not shiboken6.isValid(self.window):
                return dialog, result
