"""The workspace as the person handles it: a folder is chosen, opened, trusted or not, closed, and opened again at the next start.

Used by the main window, whose menu and servers panel offer it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QMimeData, QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from desktop.errors import AssistantError
from desktop.ui import error_box, tasks
from desktop.ui.chat.widgets import button_text
from desktop.ui.dialogs.trust_dialog import TrustDialog
from desktop.ui.settings_change import change
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core

_MOST_RECENT = 8
_LONGEST_SHOWN = 70


class Folders(QObject):
    """Signals:
    changed: Which folder is open, or whether its servers count, may have changed.
    """

    changed = Signal()

    def __init__(self, core: Core, window: QWidget) -> None:
        super().__init__(window)
        self._core = core
        self._window = window
        self._opening: asyncio.Task[None] | None = None
        core.started.connect(self._started)

    def choose(self) -> None:
        """Lets the person choose a folder, and opens it."""
        dialog = QFileDialog(self._window, self.tr("Open a folder"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        if (folder := self._core.workspace.folder) is not None:
            dialog.setDirectory(str(folder.parent))
        tasks.start(self._choose(dialog), on_error=self._window)

    def open(self, folder: Path | None) -> None:
        """Opens a folder, or closes the open one; of two that are opened one after the other the later counts."""
        self._begin(self._open(folder))

    def read_again(self) -> None:
        """Reads the servers' files anew, and asks again about a folder that nothing was answered for."""
        self._begin(self._read_again())

    def ask(self) -> None:
        """Asks whether the open folder is trusted."""
        self._begin(self._ask())

    def fill(self, menu: QMenu) -> None:
        """Puts into a menu what can be done with folders now."""
        workspace, recent = self._core.workspace, self._core.settings.values.recent_folders
        menu.clear()
        menu.setToolTipsVisible(True)
        self._add(menu, self.tr("&Open a folder…") + "\tCtrl+O", self.choose)
        others = [path for path in recent if path != str(workspace.folder)]
        if others:
            menu.addSeparator()
        for path in others:
            action = self._add(menu, button_text(short_path(path)), lambda path=path: self.open(Path(path)))
            action.setToolTip(visible_line(path, 400))
        if workspace.folder is None:
            return
        menu.addSeparator()
        if workspace.file is not None:
            self._add(menu, self.tr("&Trust its servers…"), self.ask)
        self._add(menu, self.tr("&Read its servers again"), self.read_again)
        self._add(menu, self.tr("&Close the folder"), lambda: self.open(None))

    def _add(self, menu: QMenu, text: str, run: Callable[[], object]) -> QAction:
        action = QAction(text, menu)
        action.triggered.connect(lambda: run())
        menu.addAction(action)
        return action

    def _begin(self, step: Coroutine[Any, Any, None]) -> None:
        if self._opening is not None:
            self._opening.cancel()
        self._opening = tasks.start(step, on_error=self._window)

    def _started(self) -> None:
        """The folder of the last time, or of the command line, is open by now, or can't be opened."""
        self._core.host.servers_changed.connect(self.changed.emit)
        if self._core.folder_fault is not None:
            change(self._core.settings, self._window, folder="")  # told once; it is among the recent ones
            error_box.report(AssistantError.of(self._core.folder_fault), self._window)
        if self._core.workspace.folder is not None:
            self._begin(self._opened())
        self.changed.emit()

    async def _choose(self, dialog: QFileDialog) -> None:
        chosen = await tasks.opened(dialog)
        folders = dialog.selectedFiles()
        if chosen and folders:
            self.open(Path(folders[0]))

    async def _open(self, folder: Path | None) -> None:
        await self._core.open_folder(folder)
        await self._opened()

    async def _opened(self) -> None:
        """Remembers the open folder, and asks whether it is trusted where that is to be asked."""
        folder = self._core.workspace.folder
        recent = self._core.settings.values.recent_folders
        if folder is not None:
            recent = [str(folder), *(path for path in recent if path != str(folder))][:_MOST_RECENT]
        change(self._core.settings, self._window, folder=str(folder or ""), recent_folders=recent)
        if self._core.workspace.state == "undecided":
            await self._ask()

    async def _read_again(self) -> None:
        await self._core.reload_servers()
        await self._opened()

    async def _ask(self) -> None:
        folder, file = self._core.workspace.folder, self._core.workspace.file
        if folder is None or file is None:
            return
        dialog = TrustDialog(folder, file, self._window)
        await tasks.opened(dialog)
        if dialog.answer is not None:
            await self._core.decide_trust(folder, dialog.answer.trusted, until_quit=dialog.answer.until_quit)


def short_path(path: str) -> str:
    """A path as a menu shows it: its end tells most."""
    shown = visible_line(path, 400)
    return shown if len(shown) <= _LONGEST_SHOWN else f"…{shown[1 - _LONGEST_SHOWN :]}"


def dropped_folder(data: QMimeData) -> Path | None:
    """The one folder that is dragged, or None."""
    paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
    return Path(paths[0]) if len(paths) == 1 and Path(paths[0]).is_dir() else None
