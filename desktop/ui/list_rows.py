"""How Deskhand's lists look alike. Used by the conversations, the catalog, the prompts, the watches and completions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QIcon, QPainter, QPalette, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QFrame, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from desktop.ui import icons, theme
from desktop.ui.chat.widgets import SlimScrollBars

_RADIUS = 6


@dataclass(frozen=True, slots=True)
class Row:
    """What a row of two lines shows, by `ROW`. Text of servers comes in through ``visible_text``."""

    icon: str
    title: str
    detail: str
    tone: str = "muted"
    """Of the icon."""
    bold: bool = False
    marked: Sequence[tuple[int, int]] = ()
    """Ranges of the title to be drawn bold."""
    picture: QIcon | None = None
    """Drawn in the icon's place."""


#: The role by which a model gives a `Row`.
ROW = Qt.ItemDataRole.UserRole + 100


def list_view(
    model: QAbstractItemModel, delegate: QStyledItemDelegate, name: str, parent: QWidget | None = None
) -> QListView:
    """A list without a frame, of rows of the same height, on the ground of what it stands on. `delegate` becomes its own."""
    view = QListView(parent)
    view.setModel(model)
    delegate.setParent(view)
    view.setItemDelegate(delegate)
    view.setUniformItemSizes(True)
    view.setFrameShape(QFrame.Shape.NoFrame)
    view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    view.setMouseTracking(True)
    view.setAccessibleName(name)
    view.viewport().setAutoFillBackground(False)
    SlimScrollBars(view)
    return view


class TwoLines(QStyledItemDelegate):
    """Draws a `Row`: an icon, the title, and below it the detail."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        row = index.data(ROW)
        if not isinstance(row, Row):
            return
        area: QRect = option.rect  # type: ignore[assignment]
        palette: QPalette = option.palette  # type: ignore[assignment]
        state: QStyle.StateFlag = option.state  # type: ignore[assignment]
        direction: Qt.LayoutDirection = option.direction  # type: ignore[attr-defined]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw_ground(painter, area, state, palette)
        inner = area.adjusted(theme.SPACING, 0, -theme.SPACING, 0)
        upper = QRect(inner.left(), inner.top(), inner.width(), inner.height() // 2)
        size = icons.size()
        mark = QRect(upper.left(), upper.bottom() - size, size, size)
        picture = row.picture or icons.icon(row.icon, row.tone)
        picture.paint(painter, QStyle.visualRect(direction, inner, mark))
        upper = upper.adjusted(size + theme.SPACING, 0, 0, 0)
        lower = QStyle.visualRect(direction, inner, upper.translated(0, upper.height()))
        upper = QStyle.visualRect(direction, inner, upper)
        leading = QStyle.visualAlignment(direction, Qt.AlignmentFlag.AlignLeft)
        font = QFont(painter.font())
        if row.bold:
            font.setBold(True)
            painter.setFont(font)
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        draw_line(painter, upper, leading | Qt.AlignmentFlag.AlignBottom, row.title, row.marked)
        if row.bold:
            font.setBold(False)
            painter.setFont(font)
        painter.setPen(QColor(theme.colors().muted))
        draw_line(painter, lower, leading | Qt.AlignmentFlag.AlignTop, row.detail)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        metrics: QFontMetrics = option.fontMetrics  # type: ignore[attr-defined]
        return QSize(80, 2 * metrics.lineSpacing() + 8)


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
