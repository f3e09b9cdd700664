"""A server's log, followed while it is open. Opened from the servers panel; one window a server, not modal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from desktop.ui import theme
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr

if TYPE_CHECKING:
    from desktop.host.server_log import ServerLog

_LINES = 500
#: Milliseconds between two drawings, however fast lines come.
_COALESCED = 100


class LogDialog(QDialog):
    @staticmethod
    def open_for(server: str, log: ServerLog, parent: QWidget) -> None:
        """Shows a server's log, or brings up the window that does already."""
        for window in QApplication.topLevelWidgets():
            if isinstance(window, LogDialog) and window.server == server and window.isVisible():
                window.raise_()
                window.activateWindow()
                return
        LogDialog(server, log, parent.window()).show()

    def __init__(self, server: str, log: ServerLog, parent: QWidget) -> None:
        super().__init__(parent)
        self.server = server
        self._log = log
        self._new: list[str] = []
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Log of {server}").format(server=server))
        self._text = FixedText("", tr("Log"))
        self._text.setMaximumBlockCount(_LINES)
        self._empty = PlainLabel(tr("Nothing has been logged yet."), tone="muted")
        buttons = QDialogButtonBox()
        copy = buttons.addButton(tr("Copy all"), QDialogButtonBox.ButtonRole.ActionRole)
        copy.setAutoDefault(False)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._text.toPlainText()))
        close = buttons.addButton(tr("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        close.setDefault(True)
        close.clicked.connect(self.close)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(self._empty)
        layout.addWidget(self._text, 1)
        layout.addWidget(buttons)
        self.resize(720, 420)
        self._drawing = QTimer(self, singleShot=True, interval=_COALESCED)
        self._drawing.timeout.connect(self._draw)
        self._new = log.tail(_LINES)
        self._draw()
        log.appended.connect(self._appended)

    def _appended(self, line: str) -> None:
        self._new.append(line)
        if not self._drawing.isActive():
            self._drawing.start()

    def _draw(self) -> None:
        """Adds the new lines; the view follows the end only while it is there."""
        bar = self._text.verticalScrollBar()
        at_end = bar.value() >= bar.maximum()
        if self._new:
            self._text.appendPlainText("\n".join(self._new[-_LINES:]))
            self._new.clear()
        self._empty.setVisible(self._text.document().isEmpty())
        if at_end:
            bar.setValue(bar.maximum())

    def done(self, result: int) -> None:
        """Escape comes this way, the window's own button by `closeEvent`."""
        self._unfollow()
        super().done(result)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._unfollow()
        super().closeEvent(event)

    def _unfollow(self) -> None:
        try:
            self._log.appended.disconnect(self._appended)
        except ValueError:  # already
            return
