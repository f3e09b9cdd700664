"""Which folder is open, and whether its servers count. Stands above the servers in their panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QVBoxLayout, QWidget

from desktop.ui import theme
from desktop.ui.chat.widgets import button_text, flat_button, plain_tool_tip
from desktop.ui.folders import Folders
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core


class FolderBar(QWidget):
    def __init__(self, core: Core, folders: Folders, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._core = core
        self._folders = folders
        self._name = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._button = flat_button("folder", self.tr("Folder"), text=" ")
        self._button.clicked.connect(self._open_menu)
        self._told = PlainLabel(tone="muted")
        self._decide = flat_button("question", self.tr("Decide whether the folder is trusted"), text=self.tr("Decide…"))
        self._decide.clicked.connect(folders.ask)
        below = QHBoxLayout()
        below.setContentsMargins(theme.SPACING, 0, 0, 0)
        below.setSpacing(theme.SPACING)
        below.addWidget(self._told, 1)
        below.addWidget(self._decide, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addLayout(below)
        folders.changed.connect(self._draw)
        self._draw()

    def _open_menu(self) -> None:
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("Folder"))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._folders.fill(menu)
        menu.popup(self._button.mapToGlobal(self._button.rect().bottomLeft()))

    def _draw(self) -> None:
        workspace = self._core.workspace
        texts = {
            "closed": "",
            "plain": "",
            "trusted": self.tr("Trusted: its own servers are used."),
            "refused": self.tr("Not trusted: its own servers are left out."),
            "undecided": self.tr("It has servers of its own. They are left out until you decide."),
        }
        told = texts[workspace.state]
        self._told.setText(told)
        self._told.set_tone("warning" if workspace.state == "undecided" else "muted")
        self._told.setVisible(bool(told))
        self._decide.setVisible(workspace.state == "undecided")
        path = "" if workspace.folder is None else visible_line(str(workspace.folder), 400)
        self._name = visible_line(workspace.folder.name or path, 200) if workspace.folder else ""
        self._button.setToolTip(plain_tool_tip(path or self.tr("Servers run in the open folder and are told of it")))
        name = self.tr("Folder: {name}").format(name=self._name) if self._name else self.tr("No folder is open")
        self._button.setAccessibleName(name)
        self._button.setAccessibleDescription(path)
        self._fit()

    def _fit(self) -> None:
        """The folder's name as far as there is room for it."""
        text = self._name or self.tr("No folder")
        room = self.width() - self._button.iconSize().width() - 6 * theme.SPACING
        shown = self._button.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, room)
        self._button.setText(f"{button_text(shown)} ▾")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
