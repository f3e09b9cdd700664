"""A line of text for which a server suggests values while one types. Used where prompts and templates are filled in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from PySide6.QtCore import QStringListModel, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCompleter, QLineEdit, QWidget

from desktop.errors import AssistantError
from desktop.ui import tasks
from desktop.visible_text import visible_line

#: Milliseconds without a key before the server is asked.
_DELAY = 250
#: What a server may suggest at once (MCP specification, completion).
_MOST = 100
_LONGEST = 4096

Suggest = Callable[[str], Awaitable[Sequence[str]]]


class SuggestedLine(QLineEdit):
    """Asks for suggestions a moment after the last key, and at once for Down; whoever types is never made to wait.

    A suggestion that would not look like what it is (hidden characters) is not offered. A server that can't be asked suggests
    nothing.
    """

    def __init__(self, suggest: Suggest, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMaxLength(_LONGEST)
        self._suggest = suggest
        self._asking: asyncio.Task[None] | None = None
        self._model = QStringListModel(self)
        completer = QCompleter(self._model, self)
        completer.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setMaxVisibleItems(10)
        completer.activated.connect(self._taken)
        self.setCompleter(completer)
        self._later = QTimer(self, singleShot=True, interval=_DELAY)
        self._later.timeout.connect(self._ask)
        self.textEdited.connect(self._edited)

    @property
    def suggestions(self) -> list[str]:
        """What is offered now."""
        return self._model.stringList()

    def _edited(self) -> None:
        self._model.setStringList([])  # what was suggested for other text
        self._later.start()

    def _taken(self) -> None:
        self._later.stop()

    def _ask(self) -> None:
        self._later.stop()
        if self._asking is not None:
            self._asking.cancel()
        self._asking = tasks.start(self._show_suggestions(self.text()), on_error=self)

    async def _show_suggestions(self, text: str) -> None:
        try:
            suggested = await self._suggest(text)
        except AssistantError:
            return
        offered = [each for each in suggested[:_MOST] if each != text and visible_line(each, _LONGEST) == each]
        if self.text() == text and self.hasFocus():
            self._model.setStringList(list(dict.fromkeys(offered)))
            if offered:
                self.completer().complete()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down and event.modifiers() == Qt.KeyboardModifier.NoModifier:
            self._ask()
            return
        super().keyPressEvent(event)
