"""The page of the prompt picker that shows exactly what will be sent. Used by ``prompt_picker.py``."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from desktop.assistant.conversation import Prompt
from desktop.ui import theme
from desktop.ui.chat.prompt_view import PromptContent, prompt_label
from desktop.ui.chat.widgets import ElidedLabel, SlimScrollBars, clear
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line


class PromptPreview(QWidget):
    """Signals:
    back: Another prompt, or other arguments.
    cancelled: None at all.
    used: This one.
    """

    back = Signal()
    cancelled = Signal()
    used = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = ElidedLabel(bold=True)
        self._about = PlainLabel(tone="muted")
        content = QWidget()
        self._content = QVBoxLayout(content)
        self._content.setContentsMargins(0, 0, theme.SPACING, 0)
        self._area = scrolled(content)
        self._area.setAccessibleName(self.tr("Preview"))
        self._area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the keys scroll it
        back = QPushButton(self.tr("Back"))
        cancel = QPushButton(self.tr("Cancel"))
        self.use_button = QPushButton(self.tr("Use"))
        for button, signal in ((back, self.back), (cancel, self.cancelled), (self.use_button, self.used)):
            button.setAutoDefault(False)
            button.clicked.connect(signal)
        buttons = QHBoxLayout()
        buttons.addWidget(back)
        buttons.addStretch()
        buttons.addWidget(cancel)
        buttons.addWidget(self.use_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(self._title)
        layout.addWidget(self._about)
        layout.addWidget(self._area, 1)
        layout.addLayout(buttons)

    def show_prompt(self, prompt: Prompt, usable: bool) -> None:
        """`usable`: there is something in it that a model can be sent."""
        self.clear()
        self._title.set_text(prompt_label(prompt))
        about = (
            self.tr("This is what {server} gives. It is sent as it is here.")
            if usable
            else self.tr("This is what {server} gives. There is nothing in it that a model can be sent.")
        )
        self._about.setText(about.format(server=visible_line(prompt.server, 80)))
        self._content.addWidget(PromptContent(prompt))
        self._content.addStretch()
        self.use_button.setEnabled(usable)
        self.use_button.setDefault(usable)
        self._area.verticalScrollBar().setValue(0)
        (self.use_button if usable else self._area).setFocus()

    def clear(self) -> None:
        """Shows nothing any more."""
        self.use_button.setDefault(False)  # Enter is the other page's now
        clear(self._content)


def scrolled(content: QWidget) -> QScrollArea:
    """An area without a frame that scrolls its content up and down."""
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(content)
    area.viewport().setAutoFillBackground(False)
    content.setAutoFillBackground(False)
    SlimScrollBars(area)
    return area
