"""What stands above the composer for a while: a message that waits to be sent, a decision that can't be seen. For the pane."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout

from desktop.ui import theme
from desktop.ui.chat.attachment_chips import Words
from desktop.ui.chat.draft import Draft
from desktop.ui.chat.widgets import Card
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line


class Unsent(Card):
    """What was sent and can't be taken yet."""

    def __init__(self, draft: Draft, *, ready: bool) -> None:
        super().__init__("info_background", "")
        state = self.tr("Sending…") if ready else self.tr("Deskhand is starting; your message is sent in a moment.")
        if ready and draft.attached:
            names = ", ".join(Words.of(each.content).name for each in draft.attached)
            state = self.tr("Reading what is attached: {names}").format(names=visible_line(names, 200))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, theme.SPACING, 12, theme.SPACING)
        layout.setSpacing(theme.SPACING // 2)
        layout.addWidget(PlainLabel(state, tone="muted"))
        if draft.text.strip():
            layout.addWidget(PlainLabel(visible_line(draft.text, 300)))


class Attention(Card):
    """Says that decisions are waited for.

    Signals:
        show_requested: They are to be shown.
    """

    show_requested = Signal()

    def __init__(self) -> None:
        super().__init__("warning_background", "")
        self._label = PlainLabel(tone="warning", wrap=False)
        show = QPushButton(self.tr("Show"))
        show.setAutoDefault(False)
        show.clicked.connect(self.show_requested)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 4, 4, 4)
        layout.addWidget(self._label, 1)
        layout.addWidget(show)
        self.hide()

    def show_count(self, count: int) -> None:
        """`count`: of calls that wait; 0 hides it."""
        one = self.tr("A call waits for your decision")
        self._label.setText(one if count == 1 else self.tr("{count} calls wait for your decision").format(count=count))
        self.setVisible(count > 0)
