"""What a typed command answered, above the composer until the person closes it or goes on. Used by ``chat_pane.py``."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from desktop.ui import theme
from desktop.ui.chat.widgets import Card, flat_button
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible

_MOST_LINES = 18


class CommandAnswer(Card):
    """Signals:
    closed: The person wants it gone.
    """

    closed = Signal()

    def __init__(self, command: str, text: str, *, fault: bool) -> None:
        """`command` is its name, without what was given to it."""
        super().__init__("error_background" if fault else "info_background", "")
        close = flat_button("close", self.tr("Close the answer"))
        close.clicked.connect(self.closed)
        head = QHBoxLayout()
        head.addWidget(PlainLabel(command, bold=True, wrap=False))
        head.addWidget(PlainLabel(self.tr("Only you see this."), tone="muted", wrap=False), 1)
        head.addWidget(close)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, theme.SPACING // 2, theme.SPACING // 2, theme.SPACING)
        layout.setSpacing(theme.SPACING // 2)
        layout.addLayout(head)
        if fault:
            layout.addWidget(PlainLabel(visible(text), tone="error", selectable=True))
        else:
            layout.addWidget(FixedText(visible(text), command, most_lines=_MOST_LINES))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)
