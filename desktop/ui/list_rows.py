"""How the rows of Deskhand's lists are drawn alike. Used by the delegates of the conversations, the catalog and completions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPalette, QTextCharFormat, QTextLayout
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


def draw_line(
    painter: QPainter,
    area: QRect,
    alignment: Qt.AlignmentFlag,
    text: str,
    marked: Sequence[tuple[int, int]] = (),
) -> None:
    """A text on one line, ending in an ellipsis where it does not fit. `alignment` is meant for the screen, not for the text:
    a name that is written from right to left must not leave its column. `marked` are ranges (start, end) to be drawn bold."""
    line = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
    if not marked:
        painter.drawText(area, alignment | Qt.AlignmentFlag.AlignAbsolute | Qt.TextFlag.TextSingleLine, line)
        return
    layout = QTextLayout(line, painter.font())
    layout.setFormats([_bold(start, min(end, len(line))) for start, end in marked if start < len(line)])
    layout.beginLayout()
    drawn = layout.createLine()
    layout.endLayout()
    right = alignment & Qt.AlignmentFlag.AlignRight
    x = max(area.left(), area.right() - drawn.naturalTextWidth()) if right else area.left()
    y = area.bottom() - drawn.height() + 1 if alignment & Qt.AlignmentFlag.AlignBottom else area.top()
    layout.draw(painter, QPointF(x, y))


def _bold(start: int, end: int) -> QTextLayout.FormatRange:
    found = QTextLayout.FormatRange()
    found.start, found.length = start, end - start  # type: ignore[assignment]  # the stubs take fields for methods
    font = QTextCharFormat()
    font.setFontWeight(QFont.Weight.Bold)
    found.format = font  # type: ignore[assignment]
    return found
