"""The bar that says that a file of servers was changed by hand, and offers to take the change over. Used by the main window.

It compares what the files hold with what was taken over, so that Deskhand's own writes are never offered. Files are looked at
every few seconds and when the person comes back to the window: notices of the system miss an editor that replaces the file.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop import links
from desktop.host.configuration_changes import ServerChange, changes
from desktop.host.server_config import Configuration
from desktop.ui import messages, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.widgets import Card
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core

#: Milliseconds between two looks, and from a first sign of a change to the next look: an editor may write in several steps.
_INTERVAL = 3000
_SETTLES_IN = 300
_MOST_LINES = 5
_MOST_FIELDS = 6

Signature = tuple[tuple[int, int, int] | None, ...]
"""Of each file when it was written, how long it is and which one it is; None: it is not there."""


class ServersFileBar(QWidget):
    """Hidden while the files hold what was taken over, or what the person said "not now" to."""

    def __init__(self, core: Core, parent: QWidget | None = None) -> None:
        """Must be made while the event loop runs; begins once `core` is ready."""
        super().__init__(parent)
        self._core = core
        self._seen: Signature | None = None
        self._judged: Signature | None = None
        self._offered: Configuration | None = None
        self._declined: Configuration | None = None
        self._looking: asyncio.Task[None] | None = None
        self._title = PlainLabel(bold=True)
        self._details = PlainLabel(selectable=True)
        self._reload = PrimaryButton(self.tr("Reload"))
        self._reload.clicked.connect(self._take_over)
        self._open = QPushButton(self.tr("Open file"))
        self._open.clicked.connect(lambda: tasks.start(links.open_path(core.servers_file), on_error=self))
        self._not_now = QPushButton(self.tr("Not now"))
        self._not_now.clicked.connect(self._decline)
        for button in (self._reload, self._open, self._not_now):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keyboard where it is; the bar goes away
        texts = QVBoxLayout()
        texts.setSpacing(theme.SPACING // 2)
        texts.addWidget(self._title)
        texts.addWidget(self._details)
        self._card = Card("info_background", "border")
        layout = QHBoxLayout(self._card)
        layout.setContentsMargins(12, theme.SPACING, theme.SPACING, theme.SPACING)
        layout.setSpacing(theme.SPACING)
        layout.addLayout(texts, 1)
        for button in (self._reload, self._open, self._not_now):
            button.setAutoDefault(False)
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(theme.SPACING, theme.SPACING // 2, theme.SPACING, theme.SPACING // 2)
        outer.addWidget(self._card)
        self.hide()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.look)
        QGuiApplication.instance().applicationStateChanged.connect(self._application_changed)  # type: ignore[union-attr]
        tasks.start(self._begin(), on_error=self)

    def look(self) -> None:
        """Looks at the files soon; one look at a time."""
        if self._looking is None or self._looking.done():
            self._looking = tasks.start(self._look(), on_error=self)

    async def _begin(self) -> None:
        await self._core.ready()
        self._core.host.servers_changed.connect(self._taken_over)
        self.look()

    def _application_changed(self, state: Qt.ApplicationState) -> None:
        if state == Qt.ApplicationState.ApplicationActive and self._timer.isActive():
            self.look()

    def _taken_over(self) -> None:
        self._judged = None
        self.look()

    async def _look(self) -> None:
        self._timer.stop()
        workspace = self._core.workspace
        files = [self._core.servers_file, *([workspace.file] if workspace.file else [])]
        signature = await asyncio.to_thread(_signature, files)
        settled, self._seen = signature == self._seen, signature
        if settled and signature != self._judged:
            found = await asyncio.to_thread(workspace.look)
            self._judged = signature
            self._show(found)
        self._timer.start(_INTERVAL if settled else _SETTLES_IN)

    def _show(self, found: Configuration) -> None:
        """Shows what would change, if anything would."""
        known = self._core.workspace.servers.configuration
        differences = changes(known, found)
        faults = [fault for fault in found.faults if fault not in known.faults]
        mended = any(fault not in found.faults for fault in known.faults)
        if found == self._declined or not (differences or faults or mended):
            self.hide()
            return
        self._offered = found
        unreadable = any(fault.code == "configuration_unreadable" for fault in faults)
        if unreadable:
            self._title.setText(self.tr("The servers' file was changed, and can't be read now"))
        else:
            self._title.setText(self.tr("The servers' file was changed outside Deskhand"))
        lines = [_line(change) for change in differences]
        for fault in faults:
            told = messages.message(fault)
            lines.append(f"✘ {_shown(fault.server, 80)}: {told}" if fault.server else f"✘ {told}")
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [self.tr("and {n} more").format(n=len(lines) - _MOST_LINES)]
        if unreadable or any(fault.code == "configuration_invalid" for fault in faults):
            lines.append(self.tr("What is not valid stays as it was."))
        direction = "\u200f" if self.isRightToLeft() else "\u200e"  # whichever way a name in it reads
        self._details.setText("\n".join(direction + line for line in lines))
        self._details.setVisible(bool(lines))
        self._card.set_colors("warning_background" if faults else "info_background", "border")
        self._reload.setVisible(not unreadable or bool(differences))
        self._open.setVisible(bool(faults))
        self.setAccessibleName(self._title.text())
        self.setAccessibleDescription(self._details.text())
        self.show()

    def _take_over(self) -> None:
        self.hide()
        self._declined = None
        tasks.start(self._core.reload_servers(), on_error=self)

    def _decline(self) -> None:
        self._declined = self._offered
        self.hide()


def _line(change: ServerChange) -> str:
    name = _shown(change.name, 80)
    match change.kind:
        case "added":
            return messages.tr("+ {server}: added").format(server=name)
        case "removed":
            return messages.tr("− {server}: removed").format(server=name)
        case "changed":
            shown = [_shown(each, 60) for each in change.fields[:_MOST_FIELDS]]
            fields = ", ".join([*shown, "…"] if len(change.fields) > _MOST_FIELDS else shown)
            if not fields:
                return messages.tr("~ {server}: runs in another folder").format(server=name)
            return messages.tr("~ {server}: {fields} changed").format(server=name, fields=fields)


def _shown(name: str, length: int) -> str:
    """A name of the file, which must not carry what stands beside it along when it reads from right to left."""
    return f"\u2068{visible_line(name, length)}\u2069"


def _signature(files: list[Path]) -> Signature:
    found: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            status = os.stat(file)
        except (OSError, ValueError):
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
