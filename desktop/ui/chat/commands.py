"""Typed commands in the chat: what was written is run, not sent, and answered above the composer. Used by ``chat_pane.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop.errors import AssistantError
from desktop.ui import messages, tasks
from desktop.ui.chat.command_answer import CommandAnswer
from desktop.ui.chat.completion_popup import Source
from desktop.ui.chat.mcp_command_line import NotUnderstood
from desktop.ui.chat.mcp_commands import McpCommands
from desktop.ui.chat.widgets import clear
from desktop.ui.panels.server_steps import ServerSteps
from desktop.visible_text import visible

if TYPE_CHECKING:
    from desktop.core import Core


class Commands(QWidget):
    """Holds the newest answer; nothing is seen of it while there is none.

    Attributes:
        source: What the composer offers while a command is written.

    Signals:
        prompt_requested(str, str, object): The prompt picker is to open, with a server, a name and arguments, all perhaps empty.
    """

    prompt_requested = Signal(str, str, object)

    def __init__(self, core: Core, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._commands = McpCommands(core, ServerSteps(core, self), self.prompt_requested.emit)
        self.source = Source("/", self.tr("Commands"), self._commands.offers, whole_line=True)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self.hide()

    def take(self, text: str) -> bool:
        """Runs what was written if it is a command; whether it is one."""
        if not self._commands.takes(text):
            return False
        self.close_answer()
        tasks.start(self._run(text), on_error=self)
        return True

    def close_answer(self) -> None:
        clear(self._layout)
        self.hide()

    async def _run(self, text: str) -> None:
        name = " ".join(text.split()[:2] if text.startswith("/mcp") else text.split()[:1])
        fault = True
        try:
            said = await self._commands.run(text)
            fault = False
        except NotUnderstood as reason:
            name, said = text.split()[0], str(reason)
        except AssistantError as error:
            words = messages.words(error.diagnostic)
            said = f"{words.detail} {words.remedy}".strip()
        self.close_answer()
        if said:
            answer = CommandAnswer(name, said, fault=fault)
            answer.closed.connect(self.close_answer)
            self._layout.addWidget(answer)
            self.show()
            # The keyboard stays where the person writes: a screen reader is told.
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, visible(said)))
