"""Small widgets that the parts of the chat share: one-line labels, cards, flat buttons.

Text of servers and models comes in through `visible_text` and never reaches a widget that would read it as HTML or as a
mnemonic.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from itertools import pairwise

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QFocusEvent, QGuiApplication, QIcon, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QFrame,
    QLabel,
    QLayout,
    QProgressBar,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from desktop.ui import icons, theme
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible

_LONGEST_TOOL_TIP = 1000
_SLIM_BARS = """
QScrollBar { background: transparent; border: none; margin: 0; }
QScrollBar:vertical { width: 10px; } QScrollBar:horizontal { height: 10px; }
QScrollBar::handle { background: HANDLE; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 32px; } QScrollBar::handle:horizontal { min-width: 32px; }
QScrollBar::handle:hover { background: HOVER; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
"""


def plain_tool_tip(text: str) -> str:
    """Text for a tool tip: Qt would show what looks like HTML as such, so it gets HTML that shows the text itself."""
    shown = visible(text[:_LONGEST_TOOL_TIP]) + ("…" if len(text) > _LONGEST_TOOL_TIP else "")
    return f"<p style='white-space: pre-wrap'>{html.escape(shown)}</p>" if shown else ""


def button_text(text: str) -> str:
    """Text for a button, whose ``&`` would become a mnemonic."""
    return text.replace("&", "&&")


class ElidedLabel(PlainLabel):
    """One line that ends in an ellipsis where it does not fit; its tool tip has the whole text."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        tone: str = "",
        bold: bool = False,
        fixed_width_font: bool = False,
    ) -> None:
        super().__init__("", parent, tone=tone, bold=bold, fixed_width_font=fixed_width_font, wrap=False)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_text(text)

    def set_text(self, text: str) -> None:
        if text != self.text():
            self.setText(text)
            self.setAccessibleName(text)
            self.setToolTip(plain_tool_tip(text))

    def minimumSizeHint(self) -> QSize:
        return QSize(min(24, self.sizeHint().width()), super().sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        line = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading, line)


class Card(QFrame):
    """A rounded frame on the chat's ground. `ground` and `line` name colours of `theme.Colors`; the focus shows as a ring."""

    def __init__(self, ground: str = "card", line: str = "border", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ground, self._line = ground, line
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)

    def set_colors(self, ground: str, line: str) -> None:
        if (ground, line) != (self._ground, self._line):
            self._ground, self._line = ground, line
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = theme.colors()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(getattr(colors, self._ground)))
        focused = self.hasFocus()
        if focused:
            painter.setPen(QPen(self.palette().color(QPalette.ColorRole.Highlight), 2))
        else:
            painter.setPen(QColor(getattr(colors, self._line)) if self._line else Qt.PenStyle.NoPen)
        inset = 1.0 if focused else 0.5
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), 8, 8)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()


def flat_button(icon: str, name: str, *, text: str = "", parent: QWidget | None = None) -> QToolButton:
    """A button without a frame; `name` is its tool tip and its name for screen readers."""
    button = QToolButton(parent)
    button.setAutoRaise(True)
    button.setAccessibleName(name)
    button.setToolTip(plain_tool_tip(name))
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    if icon:
        icons.set_icon(button, icon)
    if text:
        button.setText(button_text(text))
        button.setToolButtonStyle(
            Qt.ToolButtonStyle.ToolButtonTextBesideIcon if icon else Qt.ToolButtonStyle.ToolButtonTextOnly
        )
    return button


class CopyButton(QToolButton):
    """Copies what `text` gives when it is pressed, and says for a moment that it did."""

    def __init__(self, name: str, text: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._text = text
        self._back = QTimer(self, singleShot=True, interval=1500)
        self._back.timeout.connect(self._show_copy)
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(self._copy)
        self._show_copy()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text())
        self._show("check", self.tr("Copied"))
        self._back.start()

    def _show_copy(self) -> None:
        self._show("copy", self._name)

    def _show(self, icon: str, name: str) -> None:
        icons.set_icon(self, icon)
        self.setAccessibleName(name)
        self.setToolTip(plain_tool_tip(name))


class RoundButton(QToolButton):
    """The one thing to do here: an icon on a disc of the accent colour, or of a card's where `quiet`."""

    def __init__(self, size: int, *, quiet: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._quiet = quiet
        self._icon = ""
        self._size = size
        self._fit()

    def show_action(self, icon: str, name: str) -> None:
        self._icon = icon
        self.setAccessibleName(name)
        self.setToolTip(plain_tool_tip(name))
        self.update()

    def _fit(self) -> None:
        self.setFixedSize(icons.scaled(self._size), icons.scaled(self._size))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        colors, palette = theme.colors(), self.palette()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line = palette.color(QPalette.ColorRole.Highlight) if self.hasFocus() else QColor(colors.border)
        painter.setPen(QPen(line, 2 if self.hasFocus() else 1) if self._quiet or self.hasFocus() else Qt.PenStyle.NoPen)
        ground = QColor(colors.hover if self.underMouse() else colors.card)
        if not self._quiet:
            ground = palette.color(QPalette.ColorRole.Highlight) if self.isEnabled() else QColor(colors.border)
            ground = ground.darker(115) if self.isDown() else ground
        painter.setBrush(ground)
        painter.drawEllipse(QRectF(self.rect()).adjusted(1.5, 1.5, -1.5, -1.5))
        mode = QIcon.Mode.Normal if self._quiet else QIcon.Mode.Selected if self.isEnabled() else QIcon.Mode.Disabled
        edge = icons.scaled(8)
        icons.icon(self._icon).paint(painter, self.rect().adjusted(edge, edge, -edge, -edge), mode=mode)


class SlimScrollBars(QObject):
    """Gives a scroll area bars without arrows, in colours that follow the theme. Lives as long as the area."""

    def __init__(self, area: QAbstractScrollArea) -> None:
        super().__init__(area)
        self._bars = area.verticalScrollBar(), area.horizontalScrollBar()
        theme.theme_changed.connect(self._draw)
        self._draw()

    def _draw(self) -> None:
        colors = theme.colors()
        for bar in self._bars:
            bar.setStyleSheet(_SLIM_BARS.replace("HANDLE", colors.border).replace("HOVER", colors.muted))


class Glyph(QLabel):
    """A small icon that stands for a state, with the state's name for screen readers and as tool tip."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon, self._tone = "", ""
        self.setFixedSize(icons.size(), icons.size())

    def show_state(self, icon: str, tone: str, name: str) -> None:
        if name != self.accessibleName():
            self.setAccessibleName(name)
            self.setToolTip(plain_tool_tip(name))
        if (icon, tone) != (self._icon, self._tone):
            self._icon, self._tone = icon, tone
            self._draw()

    def _draw(self) -> None:
        size = icons.size()
        self.setFixedSize(size, size)
        if self._icon:
            self.setPixmap(icons.pixmap(self._icon, size, self._tone, scale=self.devicePixelRatioF()))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self._draw()


class ProgressLine(QProgressBar):
    """Progress as a thin line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRange(0, 1000)
        self.setTextVisible(False)
        self.setFixedHeight(4)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.colors().border))
        painter.drawRoundedRect(self.rect(), 2, 2)
        done = QRectF(0, 0, self.width() * self.value() / self.maximum(), self.height())
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            done.moveRight(self.width())
        painter.setBrush(QColor(theme.colors().running))
        painter.drawRoundedRect(done, 2, 2)


def discard(widget: QWidget) -> None:
    """Takes a widget out of its layout and deletes it, unseen from now on."""
    parent = widget.parentWidget()
    if parent is not None and (layout := parent.layout()) is not None:
        layout.removeWidget(widget)
    widget.hide()
    widget.deleteLater()


def clear(layout: QLayout) -> None:
    """Deletes the widgets of a layout."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()


def order_tab_stops(places: Iterable[QWidget]) -> None:
    """Has Tab walk through widgets and what is in them in this order; what is in several comes with the last of them.

    Qt's own order is that of making, which is another one where widgets are made as messages come.
    """
    stops = [
        widget
        for place in places
        for widget in (place, *place.findChildren(QWidget))
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and widget.focusProxy() is None
        and widget.window() is place.window()
    ]
    for before, after in pairwise(reversed(dict.fromkeys(reversed(stops)))):
        QWidget.setTabOrder(before, after)
