"""What a server's menu in the servers panel offers, for the state it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from desktop.ui import icons

if TYPE_CHECKING:
    from desktop.host.connection import Connection


class ServerMenu(QMenu):
    """Deleted when it closes.

    Signals:
        step_chosen: The name of a step.
    """

    step_chosen = Signal(str)

    def __init__(self, connection: Connection, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(self.tr("Actions for {server}").format(server=connection.definition.name))
        status = connection.state.status
        if status == "needs_consent":
            self._add("allow", self.tr("Allow to start"), "check")
        elif status == "connected":
            self._add("reconnect", self.tr("Reconnect"), "reconnect")
            self._add("disconnect", self.tr("Disconnect"), "stop")
            self._add("refresh", self.tr("Refresh lists"), "search")
        elif status != "disabled":
            if status != "connecting":
                self._add("reconnect", self.tr("Connect"), "play")
            if status == "connecting" or connection.state.retry_in is not None:
                self._add("disconnect", self.tr("Stop connecting"), "stop")
        self._add("log", self.tr("Show log"), "log")
        if connection.definition.kind == "builtin":
            return
        self._add("edit", self.tr("Edit…"), "edit")
        self._add("duplicate", self.tr("Duplicate"), "copy")
        self._add("file", self.tr("Show file in editor"), "file")
        if status == "disabled":
            self._add("enable", self.tr("Enable"), "power")
        else:
            self._add("disable", self.tr("Disable"), "power")
        self.addSeparator()
        self._add("remove", self.tr("Remove…"), "remove")

    def _add(self, step: str, text: str, icon: str) -> None:
        action = QAction(text, self)
        icons.set_icon(action, icon)
        action.triggered.connect(lambda: self.step_chosen.emit(step))
        self.addAction(action)
