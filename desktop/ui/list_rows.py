"""How the rows of Deskhand's lists are drawn alike. Used by the delegates of the conversations, the catalog and completions."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import QStyle

from desktop.ui import theme

_RADIUS = 6


def draw_ground(painter: QPainter, area: QRect, state: QStyle.StateFlag, palette: QPalette) -> None:
    """A row's ground where it is selected or under the mouse, and a frame where it has the keyboard."""
    colors = theme.colors()
    ground = area.adjusted(0, 1, 0, -1)
    selected = bool(state & QStyle.StateFlag.State_Selected)
    if selected or state & QStyle.StateFlag.State_MouseOver:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.selected if selected else colors.hover))
        painter.drawRoundedRect(ground, _RADIUS, _RADIUS)
    if state & QStyle.StateFlag.State_HasFocus:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(palette.color(QPalette.ColorRole.Highlight))
        painter.drawRoundedRect(ground.adjusted(0, 0, -1, -1), _RADIUS, _RADIUS)


def draw_line(painter: QPainter, area: QRect, alignment: Qt.AlignmentFlag, text: str) -> None:
    """A text on one line, ending in an ellipsis where it does not fit. `alignment` is meant for the screen, not for the text:
    a name that is written from right to left must not leave its column."""
    line = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
    painter.drawText(area, alignment | Qt.AlignmentFlag.AlignAbsolute | Qt.TextFlag.TextSingleLine, line)
