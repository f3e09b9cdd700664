"""The window: conversations at one side, the chat in the middle, panels at the other side; menus and shortcuts.

Made by ``app.py`` while the event loop runs. It joins the parts of the window; what they do is their own.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QPoint, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QColor,
    QDragEnterEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMainWindow, QMenu, QSplitter, QSplitterHandle, QTabWidget, QVBoxLayout, QWidget

from desktop.errors import AssistantError
from desktop.ui import error_box, icons, tasks, theme
from desktop.ui.chat.chat_pane import ChatPane
from desktop.ui.chat.conversation_list import ConversationList
from desktop.ui.dialogs.import_wizard import dropped_servers
from desktop.ui.dialogs.prompt_picker import PromptPicker
from desktop.ui.dialogs.settings_dialog import SettingsDialog
from desktop.ui.folders import Folders, dropped_folder
from desktop.ui.model_menu import ModelMenu
from desktop.ui.notifications import Notifications
from desktop.ui.panels.catalog_panel import CatalogPanel
from desktop.ui.panels.changes_bar import ChangesBar
from desktop.ui.panels.folder_bar import FolderBar
from desktop.ui.panels.servers_file_bar import ServersFileBar
from desktop.ui.panels.servers_panel import ServersPanel
from desktop.ui.panels.watches_panel import WatchesPanel
from desktop.ui.settings_change import change
from desktop.ui.tray import Tray
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.catalog_entries import ResourceEntry
    from desktop.core import Core
    from desktop.host.watches import Watch
    from desktop.ui.chat.answers import PersonAnswers

_DEFAULT_SIZE = (1200, 760)
#: What a window manager puts around a window, at most.
_FRAME = (16, 48)
_DEFAULT_WIDTHS = (230, 620, 320)
#: Pixels; a side pane that would leave the chat less is put away.
_NARROWEST_CHAT = 340


class MainWindow(QMainWindow):
    """Signals:
    closed: The window was closed for good: Deskhand is to quit.
    """

    closed = Signal()

    def __init__(self, core: Core, answers: PersonAnswers) -> None:
        super().__init__()
        self._core = core
        self._loading: asyncio.Task[None] | None = None
        self._quitting = False
        self.setWindowTitle("Deskhand")
        self.setWindowIcon(icons.application_icon())
        self.conversations = ConversationList(core.history)
        self.chat = ChatPane(core, answers)
        self.servers = ServersPanel(core)
        self.folders = Folders(core, self)
        self.servers.layout().insertWidget(0, FolderBar(core, self.folders))  # type: ignore[attr-defined]  # it is a box
        self.setAcceptDrops(True)
        self.catalog = CatalogPanel(core)
        self.catalog.attach_requested.connect(self.chat.attach_entry)
        self.catalog.prompt_requested.connect(lambda entry: self._pick_prompt(entry.server, entry.name))
        self.chat.prompt_requested.connect(self._pick_prompt)
        self.panels = QTabWidget()
        self.panels.setDocumentMode(True)
        self.panels.setTabBarAutoHide(True)  # a panel says itself what it is
        # Tab goes to the bar itself; one that is hidden would swallow it.
        self.panels.setFocusProxy(None)  # type: ignore[arg-type]  # Qt takes none
        self.panels.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.panels.addTab(self.servers, self.tr("Servers"))
        self.panels.addTab(self.catalog, self.tr("Catalog"))
        self.watches = WatchesPanel(core)
        self.watches.attach_requested.connect(self.chat.attach_entry)
        self.watches.unseen_changed.connect(self._show_unseen)
        self.catalog.watch_requested.connect(self._watch)
        self.panels.addTab(self.watches, self.tr("Watches"))
        self.tray = Tray(core, self)
        self.tray.show_requested.connect(self.bring_up)
        self.tray.new_requested.connect(self._new_conversation_in_front)
        self.tray.watch_requested.connect(self.show_changes)
        self.tray.quit_requested.connect(self.quit)
        self.notifications = Notifications(core, self.tray, self)
        self.notifications.clicked.connect(self.show_changes)
        self.notifications.untold.connect(self._show_untold)
        self._changes_bar = ChangesBar(core)
        self._changes_bar.watch_requested.connect(self.show_changes)
        self.panels.currentChanged.connect(lambda: self.watches.isVisible() and self._changes_bar.hide())
        self._splitter = _Splitter(Qt.Orientation.Horizontal)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setMinimumWidth(_NARROWEST_CHAT)  # not that of all panes: `_fit` puts away what has no room
        for widget in (self.conversations, self.chat, self.panels):
            self._splitter.addWidget(widget)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setSizes(list(_DEFAULT_WIDTHS))
        central = QWidget()
        column = QVBoxLayout(central)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(ServersFileBar(core))
        column.addWidget(self._changes_bar)
        column.addWidget(self._splitter, 1)
        self.setCentralWidget(central)
        self._side_panes: dict[str, QWidget] = {"panels": self.panels, "conversations": self.conversations}
        self._make_menus()
        self.conversations.chosen.connect(self._open_conversation)
        self.conversations.new_requested.connect(self._new_conversation)
        self.conversations.deleted.connect(self.chat.forget)
        self.chat.conversation_changed.connect(self._conversation_changed)
        self.chat.running_changed.connect(self.conversations.show_states)
        self.chat.model_menu_requested.connect(self._open_model_menu)
        self.chat.settings_requested.connect(self.open_settings)
        for part in (self.chat, self.catalog):
            part.server_requested.connect(self._show_server)
        core.settings.changed.connect(self._settings_changed)
        core.history.fault_changed.connect(self._history_changed)
        core.started.connect(self._history_changed)
        self._restore()
        self.chat.setFocus()

    def bring_up(self) -> None:
        """Shows the window before all others, wherever it was: in the tray, minimised, behind others."""
        self.setWindowState(self.windowState() & ~self.windowState().WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def show_changes(self, watch: Watch | None) -> None:
        """Brings the window up with a watch, or with all that changed."""
        self.bring_up()
        if watch is not None:
            self._show_watches()
            self.watches.show_watch(watch)
        elif any(each.unseen for each in self._core.watches.all):
            self._show_watches()

    def quit(self) -> None:
        """Closes the window for good, also where closing it would leave it in the tray."""
        self._quitting = True
        self.close()

    def open_settings(self, page: int = 0) -> None:
        """Opens the settings on one of their pages."""
        tasks.start(tasks.opened(SettingsDialog(self._core, self, page=page)), on_error=self)

    def _make_menus(self) -> None:
        file = self.menuBar().addMenu(self.tr("&File"))
        self._add(file, self.tr("&New conversation"), "Ctrl+N", self._new_conversation)
        self._add(file, self.tr("&Find a conversation"), "Ctrl+F", self._find_conversation)
        file.addSeparator()
        folder = file.addMenu(self.tr("F&older"))
        folder.aboutToShow.connect(lambda: self.folders.fill(folder))
        choose = QAction(self)  # the menu makes its own each time it opens
        choose.setShortcut(QKeySequence("Ctrl+O"))
        choose.triggered.connect(self.folders.choose)
        self.addAction(choose)
        self._add(file, self.tr("&Add a server…"), "", self.servers.add_server)
        self._add(file, self.tr("&Import servers…"), "", self.servers.import_servers)
        self._add(file, self.tr("&Settings…"), "Ctrl+,", self.open_settings)
        file.addSeparator()
        self._add(file, self.tr("&Quit"), "Ctrl+Q", self.quit)
        go = self.menuBar().addMenu(self.tr("&Go"))
        self._add(go, self.tr("&Write a message"), "Ctrl+L", self.chat.setFocus)
        self._add(go, self.tr("&Decide on a waiting call"), "Ctrl+J", self.chat.show_waiting_call)
        self._add(go, self.tr("Choose a &model"), "Ctrl+M", self._open_model_menu)
        self._add(go, self.tr("Choose a &prompt…"), "Ctrl+P", self._pick_prompt)
        self._add(go, self.tr("&Servers"), "Ctrl+Shift+S", self._show_server)
        self._add(go, self.tr("Search the &catalog"), "Ctrl+Shift+F", self._search_catalog)
        self._add(go, self.tr("&Watches"), "Ctrl+Shift+W", self._show_watches)
        view = self.menuBar().addMenu(self.tr("&View"))
        toggles = {
            "conversations": (self.tr("&Conversations"), "Ctrl+Shift+L"),
            "panels": (self.tr("&Side panel"), "Ctrl+Shift+P"),
        }
        self._toggles: dict[str, QAction] = {}
        for name, (text, shortcut) in toggles.items():
            self._toggles[name] = self._add(view, text, shortcut, lambda name=name: self._toggle(name))
            self._toggles[name].setCheckable(True)

    def _add(self, menu: QMenu, text: str, shortcut: str, run: Callable[[], object]) -> QAction:
        action = QAction(text, self)
        action.setShortcut(QKeySequence(shortcut))
        action.triggered.connect(lambda: run())
        menu.addAction(action)
        return action

    def _pick_prompt(self, server: str = "", name: str = "", arguments: Mapping[str, str] | None = None) -> None:
        tasks.start(
            self._use_prompt(PromptPicker(self._core, self, server=server, name=name, arguments=arguments)),
            on_error=self,
        )

    async def _use_prompt(self, picker: PromptPicker) -> None:
        if await tasks.opened(picker) and picker.prompt is not None:
            self.chat.use_prompt(picker.prompt)

    # Conversations

    def _new_conversation(self) -> None:
        self._stop_loading()
        self.chat.new_conversation()
        self.chat.setFocus()

    def _new_conversation_in_front(self) -> None:
        self.bring_up()
        self._new_conversation()

    def _open_conversation(self, id_: str) -> None:
        self._stop_loading()
        self._loading = tasks.start(self._load(id_), on_error=self)

    async def _load(self, id_: str) -> None:
        try:
            conversation = await self._core.history.load(id_)
        except KeyError:  # deleted meanwhile
            self.conversations.reload()
            return
        self.chat.open_conversation(conversation)
        self.chat.setFocus()

    def _stop_loading(self) -> None:
        """Of two conversations that are chosen one after the other, the later opens."""
        if self._loading is not None:
            self._loading.cancel()

    def _conversation_changed(self, id_: str) -> None:
        self.conversations.show_current(id_)
        title = visible_line(self.chat.conversation.title, 100)
        self.setWindowTitle(f"{title} – Deskhand" if title else "Deskhand")

    def _find_conversation(self) -> None:
        self._want("conversations")
        self.conversations.focus_search()

    # Panes

    def _show_server(self, name: str = "") -> None:
        """Gives the keyboard to a server in the panel, or to the first one."""
        self._want("panels")
        self.panels.setCurrentWidget(self.servers)
        self.servers.focus_server(name)

    def _search_catalog(self) -> None:
        self._want("panels")
        self.panels.setCurrentWidget(self.catalog)
        self.catalog.focus_search()

    def _show_watches(self) -> None:
        self._want("panels")
        self.panels.setCurrentWidget(self.watches)
        self.watches.view.setFocus()

    def _watch(self, entry: ResourceEntry) -> None:
        self._show_watches()
        self.watches.watch(entry)

    def _show_unseen(self, count: int) -> None:
        """Marks the tab: what changed is seen from the other panels, too."""
        text = self.tr("Watches ({n})").format(n=count) if count else self.tr("Watches")
        self.panels.setTabText(self.panels.indexOf(self.watches), text)

    def _show_untold(self, watches: list[Watch]) -> None:
        if not self.watches.isVisible():
            self._changes_bar.tell(watches)

    def _toggle(self, name: str) -> None:
        if self._side_panes[name].isVisible():
            wanted = [each for each in self._core.settings.values.side_panes if each != name]
            change(self._core.settings, self, side_panes=wanted)
            self._fit()
        else:
            self._want(name)

    def _want(self, name: str) -> None:
        """Shows a side pane; it goes before the other one where there is room for one only."""
        others = [each for each in self._core.settings.values.side_panes if each != name]
        change(self._core.settings, self, side_panes=[*others, name])
        self._fit()

    def _fit(self) -> None:
        """Shows the side panes that are wanted, the latest first, as long as they leave room for the chat."""
        room = self.width() - max(_NARROWEST_CHAT, self.chat.minimumSizeHint().width())
        for name in reversed(self._core.settings.values.side_panes):
            pane = self._side_panes.get(name)
            if pane is not None:
                room -= max(pane.minimumWidth(), pane.minimumSizeHint().width()) + self._splitter.handleWidth()
                pane.setVisible(room >= 0)
        for name, pane in self._side_panes.items():
            if name not in self._core.settings.values.side_panes:
                pane.hide()
            self._toggles[name].setChecked(not pane.isHidden())

    # Models, settings

    def _open_model_menu(self) -> None:
        menu = ModelMenu(self._core.settings, self)
        menu.settings_requested.connect(lambda: self.open_settings(0))
        button = self.chat.model_button
        menu.popup(button.mapToGlobal(QPoint(0, button.height())))

    def _settings_changed(self, names: frozenset[str]) -> None:
        values = self._core.settings.values
        if names & {"color_scheme", "font_size"}:
            theme.apply(values.color_scheme, font_size=values.font_size)  # type: ignore[arg-type]  # checked when read

    def _history_changed(self) -> None:
        """Tells that conversations can't be kept just now, or that a damaged file had to be set aside."""
        for diagnostic in (self._core.history.fault, self._core.history.set_aside):
            if diagnostic is not None:
                error_box.report(AssistantError.of(diagnostic), self)

    # Size and place

    def _restore(self) -> None:
        values = self._core.settings.values
        self.resize(QSize(*_DEFAULT_SIZE).boundedTo(self.screen().availableSize() - QSize(*_FRAME)))
        if values.window_geometry:
            self.restoreGeometry(_decoded(values.window_geometry))
        if values.window_state:
            self._splitter.restoreState(_decoded(values.window_state))
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if (
            event.key() == Qt.Key.Key_Escape
        ):  # Stop works wherever the keyboard is, unless something there wants the key
            self.chat.stop()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_folder(event.mimeData()) is not None or dropped_servers(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        folder = dropped_folder(event.mimeData())
        if folder is not None:
            event.acceptProposedAction()
            self.folders.open(folder)
        elif (servers := dropped_servers(event.mimeData())) is not None:
            event.acceptProposedAction()
            self.servers.import_servers(servers)

    def closeEvent(self, event: QCloseEvent) -> None:
        change(
            self._core.settings,
            self,
            window_geometry=_encoded(self.saveGeometry()),
            window_state=_encoded(self._splitter.saveState()),
        )
        if not self._quitting and self._core.settings.values.close_to_tray and self.tray.available:
            event.ignore()
            self.hide()
            tasks.start(self._tell_of_tray(), on_error=self)
            return
        event.accept()
        self.tray.icon.hide()
        self.closed.emit()

    async def _tell_of_tray(self) -> None:
        if not self._core.settings.values.told_of_tray:
            change(self._core.settings, self, told_of_tray=True)
            body = self.tr("Closing the window left Deskhand in the tray. Quit is in its menu there.")
            await self.notifications.show(None, self.tr("Deskhand goes on"), body)


class _Splitter(QSplitter):
    """Panes parted by a thin line."""

    def createHandle(self) -> QSplitterHandle:
        return _Line(self.orientation(), self)


class _Line(QSplitterHandle):
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.width() // 2, 0, 1, self.height(), QColor(theme.colors().border))
        painter.end()


def _encoded(state: QByteArray) -> str:
    return base64.b64encode(state.data()).decode()


def _decoded(text: str) -> QByteArray:
    """Whatever the settings file holds; Qt refuses what it can't use."""
    return QByteArray.fromBase64(text.encode("ascii", "replace"))
