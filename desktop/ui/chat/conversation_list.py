"""All conversations: found by words, grouped by day, renamed and deleted. At the side of the window.

Reads the history and writes to it; which one is open is the window's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPoint,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QPalette
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop.ui import list_rows, tasks, theme
from desktop.ui.chat.conversation_rows import ConversationDelegate, ConversationModel, Role
from desktop.ui.chat.widgets import Card, flat_button
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.assistant.history import History

#: Conversations that are read at first; four times as many when the end of the list is seen.
_FIRST = 500
#: Milliseconds after the last key before a search begins.
_SEARCH_DELAY = 150


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
        self.view = list_rows.list_view(self.model, ConversationDelegate(), self.tr("Conversations"))
        self.view.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        palette = self.view.palette()
        palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
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
