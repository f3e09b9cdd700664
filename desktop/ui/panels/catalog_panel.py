"""The catalog at the side of the window: everything that the servers offer, searched while one types, with the details of each.

Used by the main window. Typing and choosing ask no server; only *Refresh* and *List all servers* do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QModelIndex, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QSizePolicy,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from desktop.catalog_entries import (
    CatalogEntry,
    KindFilter,
    PromptEntry,
    ResourceEntry,
    SearchResult,
    TemplateEntry,
    ToolDefinition,
)
from desktop.errors import AssistantError, Diagnostic
from desktop.ui import list_rows, messages, tasks, theme
from desktop.ui.chat.widgets import flat_button
from desktop.ui.dialogs.run_tool import RunToolDialog
from desktop.ui.labels import PlainLabel
from desktop.ui.panels.catalog_details import EntryDetails
from desktop.ui.panels.catalog_rows import CatalogModel, identifier, ordered
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core

#: Entries that a search ranks, the catalog's own limit.
_MOST_FOUND = 50
#: Seconds between two readings of what is known.
_COALESCED = 0.1
#: Rows that are laid out at once; the rest follow while the loop runs.
_BATCH = 1000
#: Servers that are named one by one.
_MOST_NAMED = 4
_KINDS: dict[KindFilter, tuple[str, ...]] = {
    "all": ("tool", "resource", "template", "prompt"),
    "tools": ("tool",),
    "resources": ("resource", "template"),
    "prompts": ("prompt",),
}
_MOVES = frozenset({Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown})


class CatalogPanel(QWidget):
    """Signals:
    server_requested(str): What to do about a failed run is at a server, by name.
    attach_requested(object): A resource or a template is to be attached to the message that is being written.
    prompt_requested(object): A prompt is to be used.
    watch_requested(object): A resource is to be watched.
    """

    server_requested = Signal(str)
    attach_requested = Signal(object)
    prompt_requested = Signal(object)
    watch_requested = Signal(object)

    def __init__(self, core: Core, parent: QWidget | None = None) -> None:
        """Must be made while the event loop runs; shows the catalog once `core` is ready."""
        super().__init__(parent)
        self._core = core
        self._ready = False
        self._searching: asyncio.Task[None] | None = None
        self._wanted = 0
        self._listing: asyncio.Task[None] | None = None
        self._faults: dict[str, Diagnostic] = {}
        self._reading: asyncio.Task[None] | None = None

        self._count = PlainLabel(tone="muted", wrap=False)
        self._refresh = flat_button("reconnect", self.tr("Ask the servers anew (F5)"), text=self.tr("Refresh"))
        self._refresh.clicked.connect(self.refresh)
        head = QHBoxLayout()
        head.setSpacing(theme.SPACING)
        head.addWidget(self._count, 1)
        head.addWidget(self._refresh)

        self.search_box = QLineEdit()
        self.search_box.setPlaceholderText(self.tr("Search everything"))
        self.search_box.setAccessibleName(self.tr("Search the catalog"))
        self.search_box.setClearButtonEnabled(True)
        self.search_box.setMaxLength(500)
        self.search_box.installEventFilter(self)
        self.search_box.textChanged.connect(self._search)
        self.kind_box = _filter_box(self.tr("Kind"))
        for text, kind in (
            (self.tr("All kinds"), "all"),
            (self.tr("Tools"), "tools"),
            (self.tr("Resources"), "resources"),
            (self.tr("Prompts"), "prompts"),
        ):
            self.kind_box.addItem(text, kind)
        self.server_box = _filter_box(self.tr("Server"))
        self.server_box.addItem(self.tr("All servers"), None)
        self.kind_box.currentIndexChanged.connect(self._search)
        self.server_box.currentIndexChanged.connect(self._search)
        filters = QHBoxLayout()
        filters.setSpacing(theme.SPACING)
        filters.addWidget(self.kind_box, 1)
        filters.addWidget(self.server_box, 1)

        self._state = PlainLabel(tone="muted")
        self._list_all = QPushButton(self.tr("List all servers"))
        self._list_all.setAutoDefault(False)
        self._list_all.clicked.connect(self._list_unlisted)

        self.model = CatalogModel(self)
        self.view = list_rows.list_view(self.model, list_rows.TwoLines(), self.tr("Catalog"))
        self.view.setLayoutMode(QListView.LayoutMode.Batched)  # each row laid out asks the model, in Python
        self.view.setBatchSize(_BATCH)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._open_menu)
        self.view.activated.connect(self._go_to_details)
        self.view.selectionModel().currentChanged.connect(self._show_details)
        self._nothing = PlainLabel(self.tr("Starting…"), tone="muted")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.details = EntryDetails()
        self.details.hide()
        self.details.run_requested.connect(self._run_tool)
        self.details.attach_requested.connect(self.attach_requested)
        self.details.prompt_requested.connect(self.prompt_requested)
        self.details.watch_requested.connect(self.watch_requested)
        parts = QSplitter(Qt.Orientation.Vertical)
        parts.setChildrenCollapsible(False)
        parts.addWidget(self.view)
        parts.addWidget(self.details)
        parts.setSizes([300, 300])
        self._parts = parts

        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addLayout(head)
        layout.addWidget(self.search_box)
        layout.addLayout(filters)
        layout.addWidget(self._state)
        layout.addWidget(self._list_all, 0, Qt.AlignmentFlag.AlignLeading)
        layout.addWidget(self._nothing, 1)
        layout.addWidget(parts, 1)
        for widget in (self._state, self._list_all, parts):
            widget.hide()
        self.setMinimumWidth(240)
        refresh = QAction(self.tr("Refresh"), self)
        refresh.setShortcut(QKeySequence(Qt.Key.Key_F5))
        refresh.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        refresh.triggered.connect(self.refresh)
        self.addAction(refresh)
        tasks.start(self._follow_catalog(), on_error=self)

    def focus_search(self) -> None:
        """Gives the keyboard to the search box; what is in it is selected, to be typed over."""
        self.search_box.setFocus()
        self.search_box.selectAll()

    def refresh(self) -> None:
        """Asks the server that is chosen, or all of them, what they offer now."""
        if self._ready:
            server = self._server
            self._list([server] if server is not None else self._servers())

    @property
    def _server(self) -> str | None:
        return self.server_box.currentData()

    async def _follow_catalog(self) -> None:
        await self._core.ready()
        self._ready = True
        self._core.catalog.changed.connect(self._read_soon)
        self._catalog_changed()

    def _read_soon(self, _name: str) -> None:
        if self._reading is None or self._reading.done():
            self._reading = tasks.start(self._read(), on_error=self)

    async def _read(self) -> None:
        await asyncio.sleep(_COALESCED)  # a server's lists change one after the other
        self._catalog_changed()

    def _servers(self) -> list[str]:
        return [each.name for each in self._core.catalog.servers()]

    def _catalog_changed(self) -> None:
        names = self._servers()
        shown: list[str] = [self.server_box.itemData(number) for number in range(1, self.server_box.count())]
        if names != shown:
            chosen = self._server
            self.server_box.blockSignals(True)
            while self.server_box.count() > 1:
                self.server_box.removeItem(1)
            for name in names:
                self.server_box.addItem(visible_line(name, 60), name)
            self.server_box.setCurrentIndex(names.index(chosen) + 1 if chosen in names else 0)
            self.server_box.blockSignals(False)
        self._faults = {name: fault for name, fault in self._faults.items() if name in names}
        self._search()

    # Search: one at a time; an answer to what is no longer asked is never shown.

    def _search(self) -> None:
        self._wanted += 1
        if self._ready and (self._searching is None or self._searching.done()):
            self._searching = tasks.start(self._find(), on_error=self)

    async def _find(self) -> None:
        while True:
            wanted = self._wanted
            query = self.search_box.text().strip()
            kind = cast("KindFilter", self.kind_box.currentData())
            catalog = self._core.catalog
            await catalog.load_kept()
            known = catalog.entries()
            offered = await asyncio.to_thread(_offered, known, kind, self._server)
            if query:
                found = await catalog.search_known(query, kind=kind, server=self._server, limit=_MOST_FOUND)
            else:
                found = SearchResult(tuple(await asyncio.to_thread(ordered, offered)))
            if wanted == self._wanted:
                self._show(found, query, len(offered), anything=bool(known))
                await self._scroll_to_chosen()
                return

    async def _scroll_to_chosen(self) -> None:
        """Shows the chosen entry once its row is laid out."""
        for _ in range(self.model.rowCount() // _BATCH):
            if not self.view.visualRect(self.view.currentIndex()).isEmpty():
                break
            await asyncio.sleep(0)
        self.view.scrollTo(self.view.currentIndex())

    def _show(self, result: SearchResult, query: str, offered: int, *, anything: bool) -> None:
        found = result.candidates
        chosen = self.model.entry(self.view.currentIndex())
        self.model.show_entries(found, result.reasons)
        index = self.model.index_of(chosen) if chosen is not None else QModelIndex()
        if not index.isValid() and query and found:
            index = self.model.index(0)
        if index.isValid():
            self.view.setCurrentIndex(index)
        else:
            self.details.hide()
        if query and len(found) == _MOST_FOUND:
            count = self.tr("Best {found} of {n}")
        elif query:
            count = self.tr("{found} of {n} found")
        else:
            count = self.tr("{n} entries")
        self._count.setText(count.format(found=len(found), n=QLocale().toString(offered)))
        self._parts.setVisible(bool(found))
        self._nothing.setVisible(not found)
        if query and offered:
            self._nothing.setText(self.tr("Nothing is found. Fewer or other words may help."))
        elif anything:
            self._nothing.setText(self.tr("Nothing of this kind is known here."))
        else:
            self._nothing.setText(self.tr("What servers offer shows here once they are listed."))
        self._show_state()

    # What is not listed

    def _unlisted(self) -> list[str]:
        """Servers of which nothing is known."""
        connections = self._core.host.connections
        known = {entry.server for entry in self._core.catalog.entries()}
        return [name for name in self._servers() if name not in known and not connections[name].state.counts]

    def _show_state(self) -> None:
        unlisted = self._unlisted()
        busy = self._listing is not None and not self._listing.done()
        lines: list[str] = []
        if busy:
            lines.append(self.tr("Asking the servers…"))
        elif unsaid := [name for name in unlisted if name not in self._faults]:
            lines.append(self.tr("Not listed: {servers}").format(servers=_named(unsaid)))
        reasons: dict[str, list[str]] = {}
        for name, fault in self._faults.items():
            reasons.setdefault(messages.message(fault), []).append(name)
        for reason, names in reasons.items():
            lines.append(self.tr("{servers}: {reason}").format(servers=_named(names), reason=reason))
        self._state.setText("\n".join(lines))
        self._state.set_tone("warning" if self._faults and not busy else "muted")
        self._state.setVisible(bool(lines))
        self._list_all.setVisible(bool(unlisted) and not busy)
        self._refresh.setEnabled(not busy)

    def _list_unlisted(self) -> None:
        self._list(self._unlisted())

    def _list(self, names: Sequence[str]) -> None:
        if self._listing is None or self._listing.done():
            self._listing = tasks.start(self._ask(names), on_error=self)
            self._show_state()

    async def _ask(self, names: Sequence[str]) -> None:
        """Has servers list what they offer; of those that don't, keeps why."""
        await asyncio.gather(*(self._ask_one(name) for name in names))
        self._listing = None
        self._catalog_changed()

    async def _ask_one(self, name: str) -> None:
        self._faults.pop(name, None)
        try:
            await self._core.catalog.refresh(name)
        except AssistantError as error:
            self._faults[name] = error.diagnostic

    # Details

    def _show_details(self, index: QModelIndex) -> None:
        entry = self.model.entry(index)
        if entry is not None:
            freshness = self._core.catalog.freshness(entry.server, entry.kind)
            self.details.show_entry(entry, freshness, self.model.reasons(index))
            self.details.show()
            self.view.scrollTo(index)

    def _open_menu(self, place: QPoint) -> None:
        """What can be done with an entry, as in its details."""
        entry = self.model.entry(self.view.indexAt(place))
        if entry is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        match entry:
            case ToolDefinition():
                menu.addAction(self.tr("&Run…")).triggered.connect(lambda: self._run_tool(entry))
            case ResourceEntry() | TemplateEntry():
                text = self.tr("&Attach…") if isinstance(entry, TemplateEntry) else self.tr("&Attach")
                menu.addAction(text).triggered.connect(lambda: self.attach_requested.emit(entry))
                if isinstance(entry, ResourceEntry):
                    menu.addAction(self.tr("&Watch")).triggered.connect(lambda: self.watch_requested.emit(entry))
            case PromptEntry():
                menu.addAction(self.tr("&Use…")).triggered.connect(lambda: self.prompt_requested.emit(entry))
        copy = menu.addAction(self.tr("&Copy identifier"))
        copy.triggered.connect(lambda: QGuiApplication.clipboard().setText(identifier(entry)))
        menu.popup(self.view.viewport().mapToGlobal(place))

    def _run_tool(self, tool: ToolDefinition) -> None:
        dialog = RunToolDialog(self._core, tool, self.window())
        dialog.server_requested.connect(self.server_requested)
        tasks.start(self._opened(dialog), on_error=self)

    async def _opened(self, dialog: RunToolDialog) -> None:
        await tasks.opened(dialog)
        focused = QApplication.focusWidget()
        if self.isVisible() and (focused is None or not self.isAncestorOf(focused)):
            # The list was made anew meanwhile, since the server ended, say; what had the keyboard is gone.
            (self.details if self.details.isVisible() else self.search_box).setFocus()

    def _go_to_details(self, index: QModelIndex | None = None) -> None:
        if self.details.isVisible():
            self.details.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """In the search box the arrows move in the list, and Enter goes to the details."""
        if watched is self.search_box and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in _MOVES:
                QCoreApplication.sendEvent(self.view, event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._go_to_details()
                return True
        return super().eventFilter(watched, event)


def _named(servers: Sequence[str]) -> str:
    return ", ".join(visible_line(name, 40) for name in servers[:_MOST_NAMED]) + ("…" if servers[_MOST_NAMED:] else "")


def _filter_box(name: str) -> QComboBox:
    box = QComboBox()
    box.setAccessibleName(name)
    box.setToolTip(name)
    box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(6)
    return box


def _offered(entries: Sequence[CatalogEntry], kind: KindFilter, server: str | None) -> list[CatalogEntry]:
    """The entries of a kind and a server."""
    kinds = _KINDS[kind]
    return [each for each in entries if each.kind in kinds and server in (None, each.server)]
