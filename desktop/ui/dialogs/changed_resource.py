"""A watched resource as it is now: read when this opens, and what differs since it was last opened. For ``watches_panel.py``."""

from __future__ import annotations

import asyncio
import difflib
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop.errors import AssistantError
from desktop.ui import messages, tasks, theme
from desktop.ui.chat.code_block import CodeView
from desktop.ui.chat.result_view import Images, SpilledRow
from desktop.ui.chat.widgets import ElidedLabel
from desktop.ui.dialogs.prompt_preview import scrolled
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible, visible_line

if TYPE_CHECKING:
    from desktop.assistant.conversation import ToolOutput
    from desktop.core import Core

#: Whose the stored results are, in the place of a conversation's id.
_OWNER = "by-hand"
_MOST_LINES = 400


class ChangedResource(QDialog):
    """Signals:
    read(str): The resource was read and is shown; its text.
    """

    read = Signal(str)

    def __init__(self, core: Core, server: str, uri: str, title: str, before: str | None, parent: QWidget) -> None:
        """`before` is the text it had when it was last opened; None: it was not."""
        super().__init__(parent)
        self._core = core
        self._before = before
        self._place = server, uri
        self._output: ToolOutput | None = None
        self.setWindowTitle(visible_line(title or uri, 80))
        self._state = PlainLabel(self.tr("Reading…"), tone="muted")
        self.difference_box = QCheckBox(self.tr("Only what is different since it was last opened"))
        self.difference_box.setChecked(True)
        self.difference_box.toggled.connect(self._show)
        self.difference_box.hide()
        self._view = CodeView(wrap=True, prose=True, most_lines=_MOST_LINES)
        self._view.setAccessibleName(self.tr("Content"))
        self._content = QVBoxLayout()
        content = QWidget()
        content.setLayout(self._content)
        self._content.setContentsMargins(0, 0, 0, 0)
        self._content.addWidget(self._view)
        self._content.addStretch()
        close = QPushButton(self.tr("Close"))
        close.setAutoDefault(False)
        close.clicked.connect(self.accept)
        buttons = QHBoxLayout()
        buttons.addStretch()
        buttons.addWidget(close)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(ElidedLabel(visible_line(title or uri, 200), bold=True))
        layout.addWidget(ElidedLabel(f"{visible_line(server, 80)} · {visible_line(uri, 400)}", tone="muted"))
        layout.addWidget(self._state)
        layout.addWidget(self.difference_box)
        layout.addWidget(scrolled(content), 1)
        layout.addLayout(buttons)
        self.resize(640, 520)
        self._reading = tasks.start(self._read(), on_error=self)

    async def _read(self) -> None:
        server, uri = self._place
        try:
            result = await self._core.access.read(server, uri)
            output = await self._core.results.read_output(result, conversation_id=_OWNER, server=server, header="")
        except AssistantError as error:
            said = messages.words(error.diagnostic)
            self._state.setText(" ".join(each for each in (said.detail or said.title, said.remedy) if each))
            self._state.set_tone("error")
            return
        self._output = output
        self.difference_box.setVisible(self._before is not None and self._before != output.text)
        self._state.setVisible(self._before == output.text)
        self._state.setText(self.tr("Nothing is different since it was last opened."))
        if output.images:
            self._content.insertWidget(1, Images(output))
        if output.spilled is not None:
            self._content.insertWidget(1, SpilledRow(output.spilled, server))
        await self._draw()
        self.read.emit(output.text)

    def _show(self) -> None:
        tasks.start(self._draw(), on_error=self)

    async def _draw(self) -> None:
        if self._output is None:
            return
        text, before = self._output.text, self._before
        if before is not None and before != text and self.difference_box.isChecked():
            self._view.set_text(await asyncio.to_thread(_difference, before, text), language="diff")
        else:
            self._view.set_text(visible(text))

    def done(self, result: int) -> None:
        self._reading.cancel()
        super().done(result)


def _difference(before: str, after: str) -> str:
    lines = difflib.unified_diff(visible(before).splitlines(), visible(after).splitlines(), lineterm="", n=2)
    return "\n".join(list(lines)[2:])  # without the names of files
