"""What is attached to the message that is being written: a chip each, with a button that takes it off. For ``composer.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLocale, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QSizePolicy, QWidget

from desktop.assistant.attachments import FileSource, ImageSource, ResourceSource
from desktop.assistant.conversation import Attachment, Prompt
from desktop.ui import icons, messages, theme
from desktop.ui.chat.draft import Attached, Content
from desktop.ui.chat.widgets import Card, ElidedLabel, Glyph, SlimScrollBars, clear, flat_button, plain_tool_tip
from desktop.ui.flow_layout import FlowLayout
from desktop.visible_text import visible_line

_WIDEST_NAME = 220
#: Lines of chips that are seen at once.
_MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class Words:
    """An attachment in words, each on one line, nothing hidden in it."""

    icon: str
    name: str
    about: str
    """Whose it is and how large."""
    place: str
    """Where it is from."""

    @classmethod
    def of(cls, content: Content) -> Words:
        size: int | None
        match content:
            case ResourceSource(server, uri, name, size) | Attachment(name, server, uri, size):
                icon, whose, place = "resource" if server else "file", server, uri
            case FileSource(path, size):
                icon, name, whose, place = "file", path.name, "", str(path)
            case ImageSource(name):
                icon, whose, size, place = "file", "", content.size, ""
            case Prompt(server, name, title):
                icon, name, whose, size, place = "prompt", title or name, server, None, ""
        about = filter(None, (visible_line(whose, 60), _size(size) if size else ""))
        return cls(icon, visible_line(name, 120), " · ".join(about), visible_line(place, 500))


def _size(size: int) -> str:
    return QLocale().formattedDataSize(size, 0 if size < 2**20 else 1)


class Chips(QScrollArea):
    """A few lines of them; more scroll.

    Signals:
    removed: The person took one off.
    """

    removed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._attached: list[Attached] = []
        self._chips: list[_Chip] = []
        page = QWidget()
        self._layout = FlowLayout(page)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self.setWidget(page)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        page.setAutoFillBackground(False)
        SlimScrollBars(self)
        self.setAccessibleName(self.tr("Attached"))
        self.hide()

    @property
    def attached(self) -> list[Attached]:
        return list(self._attached)

    def show_attached(self, attached: Sequence[Attached]) -> None:
        self._attached = list(attached)
        clear(self._layout)
        self._chips = [_Chip(each, lambda each=each: self._remove(each)) for each in self._attached]
        for chip in self._chips:
            self._layout.addWidget(chip)
        self._fit()
        self.setVisible(bool(self._attached))

    def _fit(self) -> None:
        if self._chips:
            line = self._chips[0].sizeHint().height() + self._layout.spacing()
            wanted = self._layout.heightForWidth(self.viewport().width())
            self.setFixedHeight(min(wanted, _MOST_LINES * line))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _remove(self, attached: Attached) -> None:
        place = self._attached.index(attached)
        self.show_attached([each for each in self._attached if each is not attached])
        if self._chips:
            self._chips[min(place, len(self._chips) - 1)].setFocus()
        self.removed.emit()


class _Chip(Card):
    def __init__(self, attached: Attached, remove: Callable[[], None]) -> None:
        fault = attached.fault
        super().__init__("code" if fault is None else "error_background", "" if fault is None else "error")
        self._remove = remove
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        words = Words.of(attached.content)
        icon, tone, said, details = words.icon, "muted", words.about, words.place
        if fault is not None:
            faulty = messages.words(fault)
            icon, tone, said = "error", "error", faulty.title
            details = " ".join(filter(None, (faulty.detail, faulty.remedy)))
        glyph = Glyph()
        glyph.show_state(icon, tone, said or words.name)
        label = ElidedLabel(words.name)
        label.setMaximumWidth(icons.scaled(_WIDEST_NAME))
        button = flat_button("close", self.tr("Remove {name}").format(name=words.name))
        button.clicked.connect(lambda: remove())
        self.setFocusProxy(button)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.SPACING, 2, 2, 2)
        layout.setSpacing(theme.SPACING // 2)
        layout.addWidget(glyph)
        layout.addWidget(label)
        if said:
            about = ElidedLabel(said, tone=tone)
            about.setMinimumWidth(min(about.sizeHint().width(), icons.scaled(_WIDEST_NAME)))  # the name gives way first
            layout.addSpacing(2)
            layout.addWidget(about)
        layout.addWidget(button)
        self._layout = layout
        self.setAccessibleName(", ".join(filter(None, (words.name, said))))
        self.setToolTip(plain_tool_tip("\n".join(filter(None, (words.name, words.about, details)))))

    def sizeHint(self) -> QSize:
        return self._layout.sizeHint()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):  # what its button leaves alone
            self._remove()
        else:
            super().keyPressEvent(event)
