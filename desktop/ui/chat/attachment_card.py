"""An attachment in the message that it was sent with: what it is and where it is from; its content when it is unfolded."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop.assistant.conversation import Attachment
from desktop.ui import icons, theme
from desktop.ui.chat.attachment_chips import Words
from desktop.ui.chat.result_view import Images, SpilledRow, WholeResult
from desktop.ui.chat.widgets import Card, ElidedLabel, discard, flat_button
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line


class AttachmentCard(Card):
    def __init__(self, attachment: Attachment, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._attachment = attachment
        self._content: QWidget | None = None
        output = attachment.output
        words = Words.of(attachment)
        self.setAccessibleName(self.tr("Attached: {name}").format(name=words.name))
        titles = QVBoxLayout()
        titles.setSpacing(0)
        titles.addWidget(ElidedLabel(words.name, bold=True))
        place = " · ".join(filter(None, (words.about, words.place)))
        if place:
            titles.addWidget(ElidedLabel(place, tone="muted"))
        head = QHBoxLayout()
        head.setSpacing(theme.SPACING)
        if output.text:
            self._toggle = flat_button("right", self.tr("Show what was sent"))
            self._toggle.clicked.connect(self.toggle)
            head.addWidget(self._toggle)
        head.addLayout(titles, 1)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(theme.SPACING if output.text else 12, theme.SPACING, 12, theme.SPACING)
        self._layout.setSpacing(theme.SPACING)
        self._layout.addLayout(head)
        if output.spilled is not None:
            said = self.tr("Not all of it fits a message; the model is told where the rest is.")
            self._layout.addWidget(PlainLabel(said, tone="muted"))
        if output.warning:
            self._layout.addWidget(PlainLabel(visible_line(output.warning, 400), tone="warning"))
        if output.images:
            self._layout.addWidget(Images(output))

    def toggle(self) -> None:
        if self._content is None:
            self._content = QWidget()
            column = QVBoxLayout(self._content)
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(theme.SPACING)
            column.addWidget(WholeResult(self._attachment.output))
            if self._attachment.output.spilled is not None:
                column.addWidget(SpilledRow(self._attachment.output.spilled, self._attachment.name))
            self._layout.addWidget(self._content)
        else:
            discard(self._content)
            self._content = None
        icons.set_icon(self._toggle, "right" if self._content is None else "down")
