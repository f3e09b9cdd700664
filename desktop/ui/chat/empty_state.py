"""What a new conversation shows: what Deskhand can do, and things to ask that fit what is configured."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from desktop.catalog_entries import ServerEntry
from desktop.ui import theme
from desktop.ui.chat.message_parts import GUIDE, model_label
from desktop.ui.chat.widgets import button_text, clear, plain_tool_tip
from desktop.ui.flow_layout import FlowLayout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

_BUILT_IN = "deskhand"
_MOST_SERVERS = 3
_WIDEST = 560


class EmptyState(QScrollArea):
    """Signals:
    suggested(str): A suggestion was chosen: the text to write.
    """

    suggested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        ground = QWidget()
        ground.setBackgroundRole(ground.palette().ColorRole.Base)
        ground.setAutoFillBackground(True)
        column = QWidget()
        column.setMaximumWidth(_WIDEST)
        self._greeting = PlainLabel(self.tr("What can I do for you?"), bold=True, scale=1.6)
        self._about = PlainLabel("", tone="muted")
        self._suggestions = FlowLayout()
        self._texts: list[str] = []
        layout = QVBoxLayout(column)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(2 * theme.SPACING)
        layout.addWidget(self._greeting)
        layout.addWidget(self._about)
        layout.addLayout(self._suggestions)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(column, 1000)
        row.addStretch(1)
        outer = QVBoxLayout(ground)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addStretch(2)
        outer.addLayout(row)
        outer.addStretch(3)
        self.setWidget(ground)

    def show_what_is_there(self, servers: Sequence[ServerEntry], *, guide: bool, starting: bool) -> None:
        """`guide`: no language model is chosen. `starting`: the servers are not known yet."""
        self._about.setText(_about(guide=guide))
        texts = [] if starting else suggestions(servers)
        if texts == self._texts:
            return  # one of them may have the keyboard
        self._texts = texts
        clear(self._suggestions)
        for text in texts:
            button = _Suggestion(text)
            button.clicked.connect(lambda _=False, text=text: self.suggested.emit(text))
            self._suggestions.addWidget(button)


class _Suggestion(QPushButton):
    def __init__(self, text: str) -> None:
        super().__init__(button_text(text))
        self.setAutoDefault(False)
        self.setToolTip(plain_tool_tip(text))
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        width = metrics.size(Qt.TextFlag.TextShowMnemonic, self.text()).width()
        return QSize(width + 4 * theme.SPACING, metrics.height() + 2 * theme.SPACING)

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = theme.colors()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        highlight = self.palette().color(QPalette.ColorRole.Highlight)
        painter.setPen(QPen(highlight, 2) if self.hasFocus() else QColor(colors.border))
        painter.setBrush(
            QColor(colors.selected if self.isDown() else colors.hover if self.underMouse() else colors.card)
        )
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), self.height() / 2, self.height() / 2)
        painter.setPen(self.palette().color(QPalette.ColorRole.ButtonText))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextShowMnemonic, self.text())


def suggestions(servers: Sequence[ServerEntry]) -> list[str]:
    """Things to ask, at most six: of the person's servers first, then of Deskhand's own."""
    own = [server for server in servers if server.name != _BUILT_IN]
    texts = [tr("What can {server} do?").format(server=visible_line(server.name, 40)) for server in own[:_MOST_SERVERS]]
    if any(server.name == _BUILT_IN for server in servers):
        texts += [
            tr("What time is it in Tokyo?"),
            tr("Which servers are connected?"),
            tr("Search my conversations"),
        ]
    return texts


def _about(*, guide: bool) -> str:
    if not guide:
        found = tr("Ask in your own words: the model finds the tools it needs among all of your servers.")
        return f"{found} {tr('You see every call and decide what may run.')}"
    found = tr("Say what you need: Deskhand finds the tool for it, asks before it runs, and shows what came of it.")
    choose = tr("For answers in sentences choose a language model above.")
    return f"{found}\n\n{model_label(GUIDE)}. {choose}"
