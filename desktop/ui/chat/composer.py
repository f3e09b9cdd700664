"""Where the person writes: a field that grows, and one button that sends or stops. Used by ``chat_pane.py``."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QPalette
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from desktop.ui import theme
from desktop.ui.chat.completion_popup import CompletionPopup
from desktop.ui.chat.widgets import Card, RoundButton, SlimScrollBars
from desktop.ui.labels import PlainLabel

#: Characters of a message; what is pasted beyond is cut, and that is said.
LONGEST = 200_000
_MOST_LINES = 10
_FEWEST_LINES = 1


class Composer(Card):
    """Attributes:
    completions: What is offered while one writes; its sources are added by whoever knows them.

    Signals:
    sent(str): The person wants to send this text. The field keeps it until `clear`.
    stopped: The person wants the running answer to stop.
    """

    sent = Signal(str)
    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("card", "border", parent)
        self._busy = False
        self._edit = _Edit(self)
        self._edit.enter_pressed.connect(self._send)
        self._edit.escape_pressed.connect(self._stop)
        self._edit.textChanged.connect(self._show_state)
        self._edit.paste_cut.connect(self._say_cut)
        self._edit.focus_changed.connect(self._show_focus)
        self.completions = CompletionPopup(self._edit)
        self._button = RoundButton(34)
        self._button.clicked.connect(lambda: self._stop() if self._busy else self._send())
        self._hint = PlainLabel(tone="muted", scale=0.9)
        self._hint.hide()
        row = QHBoxLayout()
        row.setSpacing(theme.SPACING)
        row.addWidget(self._edit, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._button, 0, Qt.AlignmentFlag.AlignBottom)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 6, 6, 6)
        layout.setSpacing(theme.SPACING // 2)
        layout.addLayout(row)
        layout.addWidget(self._hint)
        self._show_state()

    @property
    def text(self) -> str:
        return self._edit.toPlainText()

    def set_text(self, text: str) -> None:
        self._edit.setPlainText(text)
        self._edit.moveCursor(self._edit.textCursor().MoveOperation.End)

    def clear(self) -> None:
        self._edit.clear()

    def set_busy(self, busy: bool) -> None:
        """While an answer comes, the button stops it; what is written meanwhile stays."""
        self._busy = busy
        self._say("")
        self._show_state()

    def set_placeholder(self, text: str) -> None:
        self._edit.setPlaceholderText(text)
        self._edit.viewport().update()  # Qt draws it anew only where the cursor blinks
        self._edit.setAccessibleDescription(text)

    def has_focus(self) -> bool:
        return self._edit.hasFocus()

    def _send(self) -> None:
        if self._busy:
            self._say(self.tr("An answer is coming. Stop it (Esc) or wait, then send."))
        elif self.text.strip():
            self._say("")
            self.sent.emit(self.text)

    def _stop(self) -> None:
        if self._busy:
            self.stopped.emit()

    def _say_cut(self) -> None:
        said = self.tr("What was pasted was cut: a message has at most {count} characters.")
        self._say(said.format(count=f"{LONGEST:,}"))

    def _say(self, text: str) -> None:
        self._hint.setText(text)
        self._hint.setVisible(bool(text))

    def _show_state(self) -> None:
        name = self.tr("Stop (Esc)") if self._busy else self.tr("Send (Enter)")
        self._button.show_action("stop" if self._busy else "send", name)
        self._button.setEnabled(self._busy or bool(self.text.strip()))

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._edit.setFocus(event.reason())

    def _show_focus(self, focused: bool) -> None:
        self.set_colors("card", "running" if focused else "border")


class _Edit(QPlainTextEdit):
    enter_pressed = Signal()
    escape_pressed = Signal()
    paste_cut = Signal()
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
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

    def insertFromMimeData(self, source: QMimeData) -> None:
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
