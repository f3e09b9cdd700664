"""The field in which a message is written: as high as its lines, and with keys of its own. Used by ``composer.py``."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QPalette
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from desktop.ui.chat.widgets import SlimScrollBars

#: Characters of a message; what is pasted beyond is cut, and that is said.
LONGEST = 200_000
_MOST_LINES = 10
_FEWEST_LINES = 1


class MessageField(QPlainTextEdit):
    """Signals:
    enter_pressed: Enter alone; Shift+Enter begins a line.
    escape_pressed: Esc.
    paste_cut: What was pasted was longer than a message may be.
    given(object): The `QMimeData` of something that was pasted or dropped and is no text.
    focus_changed(bool): It got the keyboard, or lost it.
    """

    enter_pressed = Signal()
    escape_pressed = Signal()
    paste_cut = Signal()
    given = Signal(object)
    focus_changed = Signal(bool)

    def __init__(self, takes: Callable[[QMimeData], bool], parent: QWidget) -> None:
        """`takes` tells what is no text to this field, but for whoever hears of `given`."""
        super().__init__(parent)
        self._takes = takes
        self._composing = False
        self._scrolls = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName(self.tr("Message"))
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)
        self.setBackgroundRole(QPalette.ColorRole.NoRole)
        self.document().setDocumentMargin(4)
        SlimScrollBars(self)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        lines = round(self.document().size().height())
        shown = max(_FEWEST_LINES, min(_MOST_LINES, lines))
        bars = Qt.ScrollBarPolicy
        self._scrolls = lines > _MOST_LINES
        self.setVerticalScrollBarPolicy(bars.ScrollBarAsNeeded if self._scrolls else bars.ScrollBarAlwaysOff)
        height = shown * self.fontMetrics().lineSpacing() + 2 * int(self.document().documentMargin())
        if height != self.minimumHeight():
            self.setFixedHeight(height)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or self._takes(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if self._takes(source):
            self.given.emit(source)
            return
        if not source.hasText():
            return
        room = LONGEST - self.document().characterCount() + 1 + len(self.textCursor().selectedText())
        text = source.text()
        self.textCursor().insertText(text[: max(0, room)])
        self.ensureCursorVisible()
        if len(text) > room:
            self.paste_cut.emit()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if self._composing:
            super().keyPressEvent(event)  # the key belongs to the input method
        elif enter and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            self.enter_pressed.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
        elif event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown) and not self._scrolls:
            event.ignore()  # for the messages
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)
