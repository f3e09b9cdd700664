"""A server's log, followed while it is open: filtered by words and by kind, copied as a report. Opened from the servers panel and
by ``/mcp log``; one window a server, not modal.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop import links
from desktop.host.programs import find_program
from desktop.host.server_log import MOST_LINES, MOST_REQUESTS, LogLine
from desktop.host.server_report import log_line, report
from desktop.ui import tasks, theme
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr

if TYPE_CHECKING:
    from desktop.host.connection import Connection

#: Milliseconds between two drawings, however fast lines come.
_COALESCED = 100
#: Of the time, what part drawing may take at most: lines that come by the thousand are long to lay out.
_SHARE = 0.1


class LogDialog(QDialog):
    @staticmethod
    def open_for(connection: Connection, parent: QWidget) -> None:
        """Shows a server's log, or brings up the window that does already."""
        for window in QApplication.topLevelWidgets():
            if isinstance(window, LogDialog) and window.log is connection.log and window.isVisible():
                window.raise_()
                window.activateWindow()
                return
        LogDialog(connection, parent.window()).show()

    def __init__(self, connection: Connection, parent: QWidget) -> None:
        super().__init__(parent)
        self.log = connection.log
        self._connection = connection
        self._shown = 0
        """The number of the last line that was looked at."""
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Log of {server}").format(server=connection.definition.name))
        self._kinds = QComboBox()
        self._kinds.setAccessibleName(tr("Which lines"))
        for text, kinds in (
            (tr("Everything"), ()),
            (tr("Warnings and errors"), None),
            (tr("Output of the program"), ("output", "stray")),
            (tr("The server's messages"), ("message",)),
            (tr("Deskhand's notices"), ("notice",)),
            (tr("Requests"), ("request",)),
        ):
            self._kinds.addItem(text, kinds)
        self._kinds.currentIndexChanged.connect(self._draw_anew)
        self._words = QLineEdit()
        self._words.setPlaceholderText(tr("Filter"))
        self._words.setAccessibleName(tr("Show only lines with this text"))
        self._words.setClearButtonEnabled(True)
        self._words.textChanged.connect(self._draw_anew)
        self._follow = QCheckBox(tr("Follow the &end"))
        self._follow.setChecked(True)
        self._follow.toggled.connect(self._follow_end)
        self._text = FixedText("", tr("Log"))
        self._text.setMaximumBlockCount(MOST_LINES + MOST_REQUESTS)
        self._text.verticalScrollBar().valueChanged.connect(self._scrolled)
        self._empty = PlainLabel(tone="muted")
        self._said = PlainLabel(tone="muted", wrap=False)

        filters = QHBoxLayout()
        filters.setSpacing(theme.SPACING)
        filters.addWidget(self._kinds)
        filters.addWidget(self._words, 1)
        filters.addWidget(self._follow)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addLayout(filters)
        layout.addWidget(self._empty)
        layout.addWidget(self._text, 1)
        foot = QHBoxLayout()
        foot.addWidget(self._said)
        foot.addWidget(self._buttons(), 1)
        layout.addLayout(foot)
        self.resize(820, 480)
        self._drawing = QTimer(self, singleShot=True, interval=_COALESCED)
        self._drawing.timeout.connect(self._draw)
        self._draw()
        self._words.setFocus()
        self.log.appended.connect(self._appended)

    def _buttons(self) -> QDialogButtonBox:
        buttons = QDialogButtonBox()

        def add(text: str, does: object, role: QDialogButtonBox.ButtonRole) -> QPushButton:
            button = buttons.addButton(text, role)
            button.setAutoDefault(False)
            button.clicked.connect(does)
            return button

        action = QDialogButtonBox.ButtonRole.ActionRole
        copy = add(tr("&Copy as a report"), lambda: tasks.start(self._copy(), on_error=self), action)
        copy.setToolTip(tr("Versions, state and the last lines; no arguments, no secrets"))
        add(tr("C&lear"), self._clear, action)
        folder = add(tr("&Open folder"), self._open_folder, action)
        folder.setEnabled(self.log.file is not None)
        add(tr("Close"), self.close, QDialogButtonBox.ButtonRole.RejectRole)
        return buttons

    def _appended(self) -> None:
        if not self._drawing.isActive():
            self._drawing.start()

    def _draw(self) -> None:
        """Adds the new lines that the filters let through."""
        begun = time.monotonic()
        new = self.log.lines(self._shown)
        if new:
            self._shown = new[-1].number
            texts = [log_line(line) for line in new if self._lets_through(line)]
            if texts:
                self._text.appendPlainText("\n".join(texts))
                self._follow_end()
        empty = self._text.document().isEmpty()
        nothing = tr("No line fits the filter.") if self._shown else tr("Nothing has been logged yet.")
        self._empty.setText(nothing)
        self._empty.setVisible(empty)
        took = time.monotonic() - begun
        self._drawing.setInterval(max(_COALESCED, round(took / _SHARE * 1000)))

    def _draw_anew(self) -> None:
        self._text.clear()
        self._shown = 0
        self._draw()

    def _lets_through(self, line: LogLine) -> bool:
        kinds = self._kinds.currentData()
        fits = line.level in ("warning", "error") if kinds is None else not kinds or line.kind in kinds
        return fits and self._words.text().casefold() in line.text.casefold()

    def _follow_end(self) -> None:
        if self._follow.isChecked():
            bar = self._text.verticalScrollBar()
            bar.setValue(bar.maximum())

    def _scrolled(self, value: int) -> None:
        """Whoever scrolls up wants to read; whoever scrolls to the end wants to follow."""
        bar = self._text.verticalScrollBar()
        if bar.isSliderDown() or self._text.underMouse() or self._text.hasFocus():
            self._follow.setChecked(value >= bar.maximum())

    async def _copy(self) -> None:
        definition = self._connection.definition
        program = None
        if definition.kind == "stdio":
            program = await find_program(definition.command, definition.env, definition.cwd)
        QGuiApplication.clipboard().setText(report(definition, self._connection.state, self.log.lines(), program))
        self._said.setText(tr("Copied."))

    def _clear(self) -> None:
        """Empties the window; the file stays."""
        self.log.clear()
        self._draw_anew()

    def _open_folder(self) -> None:
        if self.log.file is not None:
            tasks.start(links.open_path(self.log.file.parent), on_error=self)

    def done(self, result: int) -> None:
        """Escape comes this way, the window's own button by `closeEvent`."""
        self._unfollow()
        super().done(result)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._unfollow()
        super().closeEvent(event)

    def _unfollow(self) -> None:
        try:
            self.log.appended.disconnect(self._appended)
        except ValueError:  # already
            return
