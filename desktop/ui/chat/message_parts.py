"""Parts of a message that are no module of their own: what the person wrote, reasoning, notices. For ``message_widget.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from desktop.assistant.conversation import Conversation, Notice
from desktop.errors import Diagnostic
from desktop.ui import icons, messages, theme
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.code_block import CodeView
from desktop.ui.chat.result_view import Remedy, remedy_text
from desktop.ui.chat.text_view import TextView
from desktop.ui.chat.widgets import Card, CopyButton, Glyph, discard, flat_button
from desktop.ui.flow_layout import FlowLayout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible, visible_line

#: Characters and lines of what a person wrote that are shown whole; more scrolls in its place.
_LONGEST_WHOLE = 6000
_MOST_LINES = 40
_SCROLLED_LINES = 16
_BUBBLE_SHARE = 0.85
_BUBBLE_PADDING = 12
GUIDE = "Guide"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the parts of a message need besides their content."""

    conversation: Conversation
    answers: PersonAnswers
    remedy: Remedy
    """Called with the diagnostic whose button was pressed."""
    send_again: Callable[[], None]
    is_running: Callable[[], bool]
    """Whether a turn of the conversation runs: more may come."""
    width: Callable[[], int]
    """Of the column, in pixels."""
    run_command: Callable[[str], object]
    """Called with a ``/mcp prompt …`` that was clicked."""


def model_label(title: str) -> str:
    """What answers, as it is shown; Guide says what it is wherever it shows."""
    if title == GUIDE:
        return tr("Guide · finds and runs tools; no language model")
    return visible_line(title, 120) or tr("Assistant")


class Bubble(QWidget):
    """What the person wrote: as it is, at the far side of the column."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        shown = visible(text)
        self._whole = len(shown) <= _LONGEST_WHOLE and shown.count("\n") < _MOST_LINES
        self.view: TextView | CodeView
        if self._whole:
            self.view = TextView(parent=self)
            self.view.plain(shown)
        else:
            self.view = CodeView(wrap=True, prose=True, most_lines=_SCROLLED_LINES, parent=self)
            self.view.set_text(shown)
        self.view.setAccessibleName(self.tr("You wrote"))
        copy = CopyButton(self.tr("Copy message"), lambda: text, self)
        self._layout = QHBoxLayout(self)
        self._layout.setSpacing(_BUBBLE_PADDING + theme.SPACING // 2)
        self._layout.addWidget(copy, 0, Qt.AlignmentFlag.AlignTop)
        self._layout.addWidget(self.view)
        self._copy_width = copy.sizeHint().width() + self._layout.spacing()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)

    def _fit(self) -> None:
        widest = round(self.width() * _BUBBLE_SHARE) - 2 * _BUBBLE_PADDING
        width = self.view.width_of_text(widest) if isinstance(self.view, TextView) else widest
        margins = self._layout.contentsMargins()
        start = max(0, self.width() - width - _BUBBLE_PADDING - self._copy_width)
        left, right = (start, _BUBBLE_PADDING) if not self._mirrored() else (_BUBBLE_PADDING, start)
        if (margins.left(), margins.right()) != (left, right):
            self._layout.setContentsMargins(left, theme.SPACING, right, theme.SPACING)

    def _mirrored(self) -> bool:
        return self.layoutDirection() == Qt.LayoutDirection.RightToLeft

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():  # its height follows from that
            self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.colors().own_message))
        ground = self.view.geometry().adjusted(-_BUBBLE_PADDING, -theme.SPACING, _BUBBLE_PADDING, theme.SPACING)
        painter.drawRoundedRect(ground, 12, 12)


class FoldedText(QWidget):
    """A text folded away behind a line with its title, such as what a model shows of its reasoning."""

    def __init__(self, title: str, text: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = title
        self._text = text
        self._view: CodeView | None = None
        self._toggle = flat_button("right", title, text=title)
        self._toggle.clicked.connect(self.toggle)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._layout.addWidget(self._toggle)

    def toggle(self) -> None:
        if self._view is None:
            self._view = CodeView(wrap=True, prose=True, most_lines=_SCROLLED_LINES, parent=self)
            self._view.setAccessibleName(self._title)
            self._layout.addWidget(self._view)
        else:
            discard(self._view)
            self._view = None
        icons.set_icon(self._toggle, "right" if self._view is None else "down")
        self.refresh()

    def refresh(self) -> None:
        if self._view is not None:
            self._view.set_text(visible(self._text()))


class NoticeView(Card):
    """Something Deskhand says in the conversation: what happened, and what can be done."""

    def __init__(self, part: Notice, around: Surroundings, parent: QWidget | None = None) -> None:
        tone = {"info": "muted", "warning": "warning", "error": "error"}.get(part.severity, "error")
        ground = f"{part.severity}_background" if tone == part.severity else "code"
        super().__init__(ground, "", parent)
        words = messages.words(part.diagnostic)
        glyph = Glyph()
        glyph.show_state("information" if tone == "muted" else tone, tone, words.title)
        texts = QVBoxLayout()
        texts.setSpacing(theme.SPACING // 2)
        texts.addWidget(PlainLabel(words.title, bold=True, tone="" if tone == "muted" else tone))
        if part.severity != "info" or part.covers:
            texts.addWidget(PlainLabel(" ".join(each for each in (words.detail, words.remedy) if each)))
        if part.summary:
            texts.addWidget(FoldedText(self.tr("Summary"), lambda: part.summary))
        buttons = FlowLayout()
        for text, act in self._acts(part.diagnostic, around):
            button = QPushButton(text)
            button.setAutoDefault(False)
            button.clicked.connect(act)
            buttons.addWidget(button)
        if buttons.count():
            texts.addLayout(buttons)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, theme.SPACING, 12, theme.SPACING)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(glyph, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(texts, 1)
        self.setAccessibleName(words.title)

    def _acts(self, diagnostic: Diagnostic, around: Surroundings) -> list[tuple[str, Callable[[], None]]]:
        acts: list[tuple[str, Callable[[], None]]] = []
        if text := remedy_text(diagnostic):
            acts.append((text, lambda: around.remedy(diagnostic)))
        if diagnostic.code in _WORTH_ANOTHER_TRY:
            acts.append((self.tr("Send again"), around.send_again))
        return acts


_WORTH_ANOTHER_TRY = frozenset(
    {"model_unreachable", "model_unavailable", "model_rate_limited", "model_failed", "model_refused_tool"}
)
