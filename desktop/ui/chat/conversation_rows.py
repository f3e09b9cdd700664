"""The rows of the list of conversations: the item model, and how a row is drawn. Used by ``conversation_list.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from desktop.ui import list_rows, theme
from desktop.ui.chat.widgets import plain_tool_tip
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.assistant.history import Summary

LONGEST_TITLE = 200
_Index = QModelIndex | QPersistentModelIndex


class Role(int, Enum):
    ID = Qt.ItemDataRole.UserRole
    SNIPPET = Qt.ItemDataRole.UserRole + 1
    STATE = Qt.ItemDataRole.UserRole + 2
    """"", "running" or "waiting" (for the person)."""


@dataclass(frozen=True, slots=True)
class _Heading:
    text: str


class ConversationModel(QAbstractListModel):
    """Summaries under headings of days, newest first. A row is a heading (not to be chosen) or a conversation.

    Signals:
        renamed(str, str): The person gave a conversation (by its id) another title.
    """

    renamed = Signal(str, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[_Heading | Summary] = []
        self._running: set[str] = set()
        self._waiting: set[str] = set()

    def show_summaries(self, summaries: Sequence[Summary], *, grouped: bool) -> None:
        self.beginResetModel()
        self._rows = []
        heading = ""
        today = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
        limits = (
            (today.timestamp(), self.tr("Today")),
            ((today - timedelta(days=1)).timestamp(), self.tr("Yesterday")),
            (float("-inf"), self.tr("Earlier")),
        )
        for summary in summaries:
            group = next(name for start, name in limits if summary.updated >= start)
            if grouped and group != heading:
                heading = group
                self._rows.append(_Heading(group))
            self._rows.append(summary)
        self.endResetModel()

    def show_states(self, running: set[str], waiting: set[str]) -> None:
        changed = (self._running ^ running) | (self._waiting ^ waiting)
        self._running, self._waiting = running, waiting
        for id_ in changed:
            index = self.index_of(id_)
            if index.isValid():
                self.dataChanged.emit(index, index)

    def index_of(self, id_: str) -> QModelIndex:
        for number, row in enumerate(self._rows):
            if not isinstance(row, _Heading) and row.id == id_:
                return self.index(number)
        return QModelIndex()

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        if isinstance(row, _Heading):
            return row.text if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) else None
        title = visible_line(row.title, LONGEST_TITLE) or self.tr("Untitled")
        state = "waiting" if row.id in self._waiting else "running" if row.id in self._running else ""
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return title
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tool_tip("\n".join(each for each in (title, visible_line(row.snippet, 300)) if each))
            case Qt.ItemDataRole.AccessibleTextRole:
                said = {"waiting": self.tr("waits for you"), "running": self.tr("running"), "": ""}[state]
                return f"{title}, {said}" if said else title
            case Role.ID:
                return row.id
            case Role.SNIPPET:
                return visible_line(row.snippet, 200)
            case Role.STATE:
                return state
        return None

    def setData(self, index: _Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        row = self._rows[index.row()]
        title = " ".join(str(value).split())[:LONGEST_TITLE]
        if isinstance(row, _Heading) or not title or title == row.title:
            return False
        self.renamed.emit(row.id, title)
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        if isinstance(self._rows[index.row()], _Heading):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable


class ConversationDelegate(QStyledItemDelegate):
    """Draws a heading, or a title with what was found in the conversation and its state."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        colors = theme.colors()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area: QRect = option.rect  # type: ignore[assignment]
        palette: QPalette = option.palette  # type: ignore[assignment]
        font: QFont = option.font  # type: ignore[assignment]
        state: QStyle.StateFlag = option.state  # type: ignore[assignment]
        text = area.adjusted(theme.SPACING, 0, -theme.SPACING, 0)
        leading = Qt.AlignmentFlag.AlignLeading
        if index.data(Role.ID) is None:
            font.setBold(True)
            font.setPointSizeF(font.pointSizeF() * 0.9)
            painter.setFont(font)
            painter.setPen(QColor(colors.muted))
            painter.drawText(text.adjusted(0, 0, 0, -4), leading | Qt.AlignmentFlag.AlignBottom, str(index.data()))
            painter.restore()
            return
        list_rows.draw_ground(painter, area, state, palette)
        mark = {"waiting": colors.warning, "running": colors.running}.get(str(index.data(Role.STATE)))
        if mark is not None:
            right_to_left = option.direction == Qt.LayoutDirection.RightToLeft  # type: ignore[attr-defined]
            x = text.left() + 4 if right_to_left else text.right() - 4
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(mark))
            painter.drawEllipse(QPoint(x, area.center().y()), 4, 4)
            text = text.adjusted(16 if right_to_left else 0, 0, 0 if right_to_left else -16, 0)
        metrics = painter.fontMetrics()
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        title = metrics.elidedText(str(index.data()), Qt.TextElideMode.ElideRight, text.width())
        snippet = str(index.data(Role.SNIPPET) or "")
        if snippet:
            upper = QRect(text.left(), area.top(), text.width(), area.height() // 2)
            painter.drawText(upper, leading | Qt.AlignmentFlag.AlignBottom, title)
            painter.setPen(QColor(colors.muted))
            lower = upper.translated(0, upper.height())
            shown = metrics.elidedText(snippet, Qt.TextElideMode.ElideRight, text.width())
            painter.drawText(lower, leading | Qt.AlignmentFlag.AlignTop, shown)
        else:
            painter.drawText(text, leading | Qt.AlignmentFlag.AlignVCenter, title)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(80, 2 * option.fontMetrics.lineSpacing() + 6)  # type: ignore[attr-defined]
