"""All conversations: found by words, grouped by day, renamed and deleted. At the side of the window.

Reads the history and writes to it; which one is open is the window's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QAction, QColor, QFont, QKeyEvent, QKeySequence, QPainter, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from desktop.ui import tasks, theme
from desktop.ui.chat.widgets import Card, SlimScrollBars, flat_button, plain_tool_tip
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.assistant.history import History, Summary

#: Conversations that are read at first; four times as many when the end of the list is seen.
_FIRST = 500
#: Milliseconds after the last key before a search begins.
_SEARCH_DELAY = 150
_LONGEST_TITLE = 200
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
        title = visible_line(row.title, _LONGEST_TITLE) or self.tr("Untitled")
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
        title = " ".join(str(value).split())[:_LONGEST_TITLE]
        if isinstance(row, _Heading) or not title or title == row.title:
            return False
        self.renamed.emit(row.id, title)
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        if isinstance(self._rows[index.row()], _Heading):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable


class ConversationList(QWidget):
    """Signals:
    chosen(str): A conversation is to be opened, by its id.
    new_requested: A new conversation is to be begun.
    deleted(str): A conversation is gone.
    """

    chosen = Signal(str)
    new_requested = Signal()
    deleted = Signal(str)

    def __init__(self, history: History, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._history = history
        self._limit = _FIRST
        self._shown_all = True
        self._current = ""
        self._reading: asyncio.Task[None] | None = None
        self._search = QLineEdit()
        self._search.setPlaceholderText(self.tr("Search conversations"))
        self._search.setAccessibleName(self.tr("Search conversations"))
        self._search.setClearButtonEnabled(True)
        self._search.setMaxLength(500)
        self._search.installEventFilter(self)
        new = flat_button("add", self.tr("New conversation"))
        new.clicked.connect(self.new_requested)
        self.model = ConversationModel(self)
        self.model.renamed.connect(lambda id_, title: tasks.start(history.rename(id_, title), on_error=self))
        self.view = QListView()
        self.view.setModel(self.model)
        self.view.setItemDelegate(_Delegate(self.view))
        self.view.setUniformItemSizes(True)
        self.view.setFrameShape(QFrame.Shape.NoFrame)
        self.view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.setMouseTracking(True)
        self.view.setAccessibleName(self.tr("Conversations"))
        palette = self.view.palette()
        palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
        self.view.viewport().setAutoFillBackground(False)
        SlimScrollBars(self.view)
        self.view.clicked.connect(self._choose)
        self.view.activated.connect(self._choose)
        self.view.customContextMenuRequested.connect(self._show_menu)
        self.view.verticalScrollBar().valueChanged.connect(self._read_more)
        self._nothing = PlainLabel("", tone="muted")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._delete_bar = _DeleteBar(self)
        self._delete_bar.confirmed.connect(lambda id_: tasks.start(self._delete(id_), on_error=self))
        self._delete_bar.ended.connect(self.view.setFocus)
        top = QHBoxLayout()
        top.setSpacing(theme.SPACING // 2)
        top.addWidget(self._search, 1)
        top.addWidget(new)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.SPACING, theme.SPACING, theme.SPACING, theme.SPACING)
        layout.setSpacing(theme.SPACING)
        layout.addLayout(top)
        layout.addWidget(self._nothing)
        layout.addWidget(self.view, 1)
        layout.addWidget(self._delete_bar)
        self.setMinimumWidth(180)
        rename = QAction(self.tr("Rename"), self.view)
        delete = QAction(self.tr("Delete"), self.view)
        rename.setShortcut(QKeySequence(Qt.Key.Key_F2))
        delete.setShortcut(QKeySequence(QKeySequence.StandardKey.Delete))
        for action, run in ((rename, self._rename_current), (delete, self._ask_to_delete)):
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(run)
            self.view.addAction(action)
        self._search_later = QTimer(self, singleShot=True, interval=_SEARCH_DELAY)
        self._search_later.timeout.connect(self.reload)
        self._search.textChanged.connect(lambda: self._search_later.start())
        history.changed.connect(self._search_later.start)
        self._nothing.hide()

    def reload(self) -> None:
        """Reads the list anew. Done by itself after each change of the history."""
        if self._reading is not None:
            self._reading.cancel()
        self._reading = tasks.start(self._read(), on_error=self)
        self.destroyed.connect(self._reading.cancel)

    def show_current(self, id_: str) -> None:
        """Marks the conversation that is open."""
        self._current = id_
        self.view.setCurrentIndex(self.model.index_of(id_))

    def show_states(self, running: set[str], waiting: set[str]) -> None:
        """Marks conversations whose turn runs, and those that wait for the person."""
        self.model.show_states(running, waiting)

    def focus_search(self) -> None:
        self._search.setFocus()
        self._search.selectAll()

    async def _read(self) -> None:
        query = self._search.text().strip()
        summaries = await self._history.summaries(query, self._limit)
        self._shown_all = len(summaries) < self._limit
        if self.view.state() == QListView.State.EditingState:
            self._search_later.start()  # not under the person's hands
            return
        bar = self.view.verticalScrollBar()
        position = bar.value()
        self.model.show_summaries(summaries, grouped=not query)
        self.view.setCurrentIndex(self.model.index_of(self._current))
        bar.setValue(position)
        self._nothing.setText(self.tr("Nothing found") if query else self.tr("Conversations will be listed here"))
        self._nothing.setVisible(not summaries)

    def _read_more(self, value: int) -> None:
        if not self._shown_all and value >= self.view.verticalScrollBar().maximum() - self.view.height():
            self._shown_all = True  # until the next answer says otherwise
            self._limit *= 4
            self.reload()

    def _choose(self, index: QModelIndex) -> None:
        if id_ := index.data(Role.ID):
            self._current = id_
            self.chosen.emit(id_)

    def _show_menu(self, position: QPoint) -> None:
        if not self.view.indexAt(position).data(Role.ID):
            return
        menu = QMenu(self.view)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions(self.view.actions())
        menu.popup(self.view.viewport().mapToGlobal(position))

    def _rename_current(self) -> None:
        index = self.view.currentIndex()
        if index.data(Role.ID):
            self.view.edit(index)

    def _ask_to_delete(self) -> None:
        index = self.view.currentIndex()
        if id_ := index.data(Role.ID):
            self._delete_bar.ask(id_, index.data())

    async def _delete(self, id_: str) -> None:
        self.deleted.emit(id_)  # first: a turn that runs must not write to it any more
        await self._history.delete(id_)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._search and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() == Qt.Key.Key_Down:
                self.view.setFocus()
                first = next((row for row in range(self.model.rowCount()) if self.model.index(row).data(Role.ID)), None)
                if first is not None and not self.view.currentIndex().isValid():
                    self.view.setCurrentIndex(self.model.index(first))
                return True
            if event.key() == Qt.Key.Key_Escape and self._search.text():
                self._search.clear()
                return True
        return super().eventFilter(watched, event)


class _Delegate(QStyledItemDelegate):
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
        ground = area.adjusted(0, 1, 0, -1)
        painter.setPen(Qt.PenStyle.NoPen)
        if state & QStyle.StateFlag.State_Selected or state & QStyle.StateFlag.State_MouseOver:
            selected = bool(state & QStyle.StateFlag.State_Selected)
            painter.setBrush(QColor(colors.selected if selected else colors.hover))
            painter.drawRoundedRect(ground, 6, 6)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(palette.color(QPalette.ColorRole.Highlight))
            painter.drawRoundedRect(ground.adjusted(0, 0, -1, -1), 6, 6)
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


class _DeleteBar(Card):
    """Asks whether to delete a conversation, below the list.

    Signals:
        confirmed(str): The conversation, by its id, is to be deleted.
        ended: The question is over, whichever way.
    """

    confirmed = Signal(str)
    ended = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__("warning_background", "", parent)
        self._id = ""
        self._label = PlainLabel()
        self._delete = QPushButton(tr("Delete"))
        keep = QPushButton(tr("Keep"))
        for button in (self._delete, keep):
            button.setAutoDefault(True)
        self._delete.clicked.connect(self._confirm)
        keep.clicked.connect(self._end)
        buttons = QHBoxLayout()
        buttons.addWidget(self._delete)
        buttons.addWidget(keep)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, theme.SPACING, 12, theme.SPACING)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(self._label)
        layout.addLayout(buttons)
        self.hide()

    def ask(self, id_: str, title: str) -> None:
        self._id = id_
        self._label.setText(tr("Delete “{title}” for good?").format(title=visible_line(title, 80)))
        self.show()
        self._delete.setFocus()

    def _confirm(self) -> None:
        self.confirmed.emit(self._id)
        self._end()

    def _end(self) -> None:
        self.hide()
        self.ended.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._end()
        else:
            super().keyPressEvent(event)
