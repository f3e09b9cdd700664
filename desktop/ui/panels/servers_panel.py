"""The servers at the side of the window: each with its state as it is now, and the next step when one needs the person.

Used by the main window. It follows the host's signals and draws at most some 20 times a second, only what changed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QLocale, QPoint, Qt, QTimer
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop import links
from desktop.host.config_import import find_sources
from desktop.ui import tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.widgets import ElidedLabel, SlimScrollBars, flat_button, plain_tool_tip
from desktop.ui.dialogs.import_wizard import dropped_servers
from desktop.ui.labels import PlainLabel
from desktop.ui.panels.server_menu import ServerMenu
from desktop.ui.panels.server_rows import FaultRow, ReplacedRow, ServerRow
from desktop.ui.panels.server_steps import ServerSteps
from desktop.ui.panels.tool_weights import ToolWeights

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.connection import Connection
    from desktop.host.host import Host

#: Milliseconds between two drawings.
_COALESCED = 50


class ServersPanel(QWidget):
    def __init__(self, core: Core, parent: QWidget | None = None) -> None:
        """Must be made while the event loop runs; shows the servers once `core` is ready."""
        super().__init__(parent)
        self._core = core
        self.steps = ServerSteps(core, self)
        """What the panel's buttons do; the ``/mcp`` commands do the same."""
        self._rows: dict[str, ServerRow] = {}
        self._faults: list[FaultRow] = []
        self._replaced: list[ReplacedRow] = []
        self._changed: set[str] = set()
        self._weights = ToolWeights(core, self)
        self._weights.changed.connect(self._state_changed)
        self._list_changed = False
        self._drawing = QTimer(self, singleShot=True, interval=_COALESCED)
        self._drawing.timeout.connect(self._draw)

        self._add = flat_button("add", self.tr("Add a server"), text=self.tr("Add"))
        self._add.clicked.connect(self.add_server)
        ways = QMenu(self)
        for text, step in (
            (self.tr("New server…"), self.add_server),
            (self.tr("Import servers…"), self.import_servers),
        ):
            ways.addAction(text).triggered.connect(lambda _=False, step=step: step())
        self._add.setMenu(ways)
        self._add.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        head = QHBoxLayout()
        head.setSpacing(theme.SPACING)
        self._count = ElidedLabel("", tone="muted")
        head.addWidget(PlainLabel(self.tr("Servers"), bold=True, wrap=False), 1)
        head.addWidget(self._add)

        self._list = QWidget()
        self._list_layout = QVBoxLayout(self._list)
        self._list_layout.setContentsMargins(0, 0, 0, 0)
        self._list_layout.setSpacing(theme.SPACING)
        self._list_layout.addStretch(1)
        area = QScrollArea()
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(self._list)
        area.viewport().setAutoFillBackground(False)
        self._list.setAutoFillBackground(False)
        SlimScrollBars(area)
        self._area = area

        self._pages = QStackedWidget()
        self._loading = PlainLabel(self.tr("Starting…"), tone="muted")
        self._loading.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages.addWidget(self._loading)
        self._pages.addWidget(self._empty_state())
        self._pages.addWidget(area)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addLayout(head)
        layout.addWidget(self._count)
        layout.addWidget(self._pages, 1)
        self.setMinimumWidth(240)
        self.setAcceptDrops(True)
        tasks.start(self._follow_host(), on_error=self)

    def add_server(self) -> None:
        """Opens the form for a new server."""
        tasks.start(self._focus_after(self.steps.edit(None)), on_error=self)

    def import_servers(self, file: Path | None = None) -> None:
        """Opens the import of other programs' servers, or of a file's."""
        tasks.start(self._focus_after(self.steps.import_servers(file)), on_error=self)

    def focus_server(self, name: str = "") -> None:
        """Gives the keyboard to a server, to the first where there is none of that name, or to the button that adds one."""
        row = self._rows.get(name) or next(iter(self._rows.values()), None)
        if row is not None and row.isVisible():
            row.setFocus()
            self._area.ensureWidgetVisible(row)
        else:
            self._add.setFocus()

    def _empty_state(self) -> QWidget:
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 2 * theme.SPACING, 0, 0)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(PlainLabel(self.tr("No servers yet"), bold=True))
        layout.addWidget(
            PlainLabel(
                self.tr(
                    "Servers give the assistant tools and data: your files, a calendar, a database, a web service. "
                    "They speak the Model Context Protocol (MCP)."
                )
            )
        )
        layout.addWidget(
            PlainLabel(
                self.tr("To add one, paste the command, the URL or the JSON from the server's own page."), tone="muted"
            )
        )
        button = PrimaryButton(self.tr("Add a server"))
        button.clicked.connect(self.add_server)
        layout.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self._found = PlainLabel(tone="muted")
        self._found.hide()
        layout.addWidget(self._found)
        importing = QPushButton(self.tr("Import servers…"))
        importing.clicked.connect(lambda: self.import_servers())
        layout.addWidget(importing, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addStretch(1)
        return page

    async def _look_for_others(self) -> None:
        """Tells whose servers could be taken over; none of them is started by it."""
        found = await asyncio.to_thread(find_sources)
        counts: Counter[str] = Counter()
        for source in found:
            if not source.fault:
                counts[source.program] += source.count
        listed = ", ".join(f"{program} ({count})" for program, count in counts.items())
        self._found.setText(self.tr("Other programs have servers on this computer: {listed}").format(listed=listed))
        self._found.setVisible(bool(counts))

    async def _follow_host(self) -> None:
        await self._core.ready()
        self._host.state_changed.connect(self._state_changed)
        self._host.servers_changed.connect(self._servers_changed)
        self._weights.follow()
        self._servers_changed()
        self._draw()

    @property
    def _host(self) -> Host:
        return self._core.host

    def _state_changed(self, name: str) -> None:
        self._changed.add(name)
        self._draw_soon()

    def _servers_changed(self) -> None:
        self._list_changed = True
        self._draw_soon()

    def _draw_soon(self) -> None:
        if not self._drawing.isActive():
            self._drawing.start()

    def _draw(self) -> None:
        if self._list_changed:
            self._draw_list()
        for name in self._changed:
            if name in self._rows and name in self._host.connections:
                self._rows[name].show_connection(self._host.connections[name], self._weights.of(name))
        self._changed.clear()
        self._list_changed = False
        self._draw_count()

    def _draw_count(self) -> None:
        own = [each for each in self._host.connections.values() if each.definition.kind != "builtin"]
        connected = sum(each.state.status == "connected" for each in own)
        self._count.setVisible(bool(own))
        if not own:
            return
        text = self.tr("{connected} of {n} connected").format(connected=connected, n=len(own))
        total = sum(self._weights.of(each.definition.name) for each in own)
        if total:
            weight = self.tr("≈ {count} tokens").format(count=QLocale().toString(total))
            explained = self.tr("All tools of these servers together would take about {count} tokens of each request. ")
            explained += self.tr("A conversation begins with none of them.")
            self._count.setToolTip(plain_tool_tip(explained.format(count=QLocale().toString(total))))
            text = f"{text} · {weight}"
        self._count.set_text(text)

    def _draw_list(self) -> None:
        """Makes the rows follow the host's list; rows of servers that are still there stay the same widgets."""
        for row in (*self._faults, *self._replaced):
            self._list_layout.removeWidget(row)
            row.deleteLater()
        servers = self._core.workspace.servers
        self._faults = [FaultRow(each, of_folder=each in servers.folder_faults) for each in self._host.faults]
        for row in self._faults:
            row.step_chosen.connect(lambda step, row=row: self._fault_step(row, step))
        for name in [name for name in self._rows if name not in self._host.connections]:
            row = self._rows.pop(name)
            self._list_layout.removeWidget(row)
            row.deleteLater()
        # The built-in server last: it is never what the person looks for.
        ordered = sorted(self._host.connections.items(), key=lambda each: each[1].definition.kind == "builtin")
        for name, connection in ordered:
            if name not in self._rows:
                row = self._rows[name] = ServerRow(name)
                row.step_chosen.connect(lambda step, name=name: self._server_step(name, step))
                row.menu_requested.connect(lambda point, name=name: self._open_menu(name, point))
                row.neighbour_requested.connect(lambda step, row=row: self._focus_neighbour(row, step))
            self._rows[name].show_connection(connection, self._weights.of(name))
        self._replaced = [ReplacedRow(name) for name in servers.replaced]
        for position, row in enumerate([*self._faults, *(self._rows[name] for name, _ in ordered), *self._replaced]):
            if self._list_layout.indexOf(row) != position:
                self._list_layout.removeWidget(row)
                self._list_layout.insertWidget(position, row)
        own = [name for name, connection in ordered if connection.definition.kind != "builtin"]
        empty = not own and not self._faults
        if empty and self._pages.currentIndex() != 1:
            tasks.start(self._look_for_others(), on_error=self)
        self._pages.setCurrentIndex(1 if empty else 2)

    def _focus_neighbour(self, row: ServerRow, step: int) -> None:
        item = self._list_layout.itemAt(self._list_layout.indexOf(row) + step)
        neighbour = item.widget() if item is not None else None
        if isinstance(neighbour, ServerRow):
            neighbour.setFocus()
            self._area.ensureWidgetVisible(neighbour)

    def _open_menu(self, name: str, point: QPoint) -> None:
        connection = self._host.connections.get(name)
        if connection is not None:
            menu = ServerMenu(connection, self)
            menu.step_chosen.connect(lambda step: self._server_step(name, step))
            menu.popup(point)

    def _server_step(self, name: str, step: str) -> None:
        connection = self._host.connections.get(name)
        if connection is None or (step == "remove" and connection.definition.kind == "builtin"):
            return
        does: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "allow": lambda: self._allow(connection),
            "reconnect": lambda: self.steps.reconnect(name),
            "disconnect": lambda: self.steps.disconnect(name),
            "refresh": lambda: self.steps.refresh(name),
            "edit": lambda: self._focus_after(self.steps.edit(name)),
            "duplicate": lambda: self._focus_after(self.steps.duplicate(name)),
            "file": lambda: self.steps.show_file(name),
            "install": lambda: self.steps.show_installation(name),
            "certificates": lambda: self.steps.choose_certificates(name),
            "secrets": lambda: self.steps.enter_secrets(name),
            "enable": lambda: self.steps.set_disabled(name, False),
            "disable": lambda: self.steps.set_disabled(name, True),
            "remove": lambda: self.steps.remove(name),
        }
        if step == "log":
            self.steps.show_log(name)
        else:
            tasks.start(does[step](), on_error=self)

    def _fault_step(self, row: FaultRow, step: str) -> None:
        file = (self._core.workspace.file if row.of_folder else None) or self._core.servers_file
        if step == "edit":
            tasks.start(self._focus_after(self.steps.edit(row.fault.server, file)), on_error=self)
        else:
            tasks.start(links.open_path(file), on_error=self)

    async def _allow(self, connection: Connection) -> None:
        """Allows the command that the person saw; one that has changed since is shown instead."""
        name = connection.definition.name
        if self._rows[name].definition != connection.definition:
            self._servers_changed()
        else:
            await self.steps.allow(name)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_servers(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.import_servers(dropped_servers(event.mimeData()))

    async def _focus_after(self, step: Coroutine[Any, Any, str]) -> None:
        """Gives the keyboard to the server that a step gave a definition, if it did."""
        if saved := await step:
            self._draw()
            self.focus_server(saved)
