"""Running a tool by hand: a form made from its schema, Run and Stop, progress, and the result. Opened by the catalog panel.

Running it is the person's own decision, so nothing asks again; what a server claims of a tool only changes the button's words.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from desktop.catalog_entries import ToolDefinition
from desktop.errors import AssistantError, Diagnostic
from desktop.ui import tasks, theme
from desktop.ui.chat.approval_panel import claims
from desktop.ui.chat.result_view import Images, Outcome, SpilledRow, WholeResult
from desktop.ui.chat.widgets import ElidedLabel, ProgressLine, SlimScrollBars, clear
from desktop.ui.dialogs.tool_form import ToolForm
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.assistant.conversation import ToolOutput
    from desktop.core import Core

#: Whose the stored results are, in the place of a conversation's id.
_OWNER = "by-hand"


class RunToolDialog(QDialog):
    """Signals:
    server_requested(str): What to do about a failure is at the server, by name; the dialog has closed.
    """

    server_requested = Signal(str)

    def __init__(self, core: Core, tool: ToolDefinition, parent: QWidget) -> None:
        super().__init__(parent)
        self._core = core
        self._tool = tool
        self._running: asyncio.Task[None] | None = None
        self.setWindowTitle(self.tr("Run {tool}").format(tool=visible_line(tool.identifier, 80)))
        destructive = (
            tool.annotations.get("destructiveHint") is True and tool.annotations.get("readOnlyHint") is not True
        )
        submit = self.tr("Run, though it may delete") if destructive else self.tr("Run")
        self.form = ToolForm(tool.input_schema, {}, submit=submit, abandon=self.tr("Close"))
        self.form.submitted.connect(self._run)
        self.form.abandoned.connect(self.reject)
        self._progress = ProgressLine()
        self._progress.setAccessibleName(self.tr("Progress"))
        self._message = ElidedLabel(tone="muted")
        self._stop = QPushButton(self.tr("Stop"))
        self._stop.setAutoDefault(False)
        self._stop.clicked.connect(self._stop_running)
        state = QHBoxLayout()
        state.addWidget(self._message, 1)
        state.addWidget(self._stop)
        self._result = QVBoxLayout()
        self._result.setSpacing(theme.SPACING)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(*[2 * theme.SPACING] * 4)
        column.setSpacing(theme.SPACING)
        column.addWidget(ElidedLabel(visible_line(tool.identifier, 600), bold=True))
        if tool.description:
            column.addWidget(PlainLabel(visible_line(tool.description, 600), tone="muted"))
        if said := claims(tool):
            text = self.tr("The server says: {claims}. Deskhand can't check that.").format(claims=", ".join(said))
            column.addWidget(PlainLabel(text, tone="muted"))
        column.addWidget(self.form)
        column.addLayout(state)
        column.addWidget(self._progress)
        column.addLayout(self._result)
        column.addStretch(1)
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(page)
        SlimScrollBars(area)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(area)
        self._show_running(False)
        self.resize(560, 560)
        self.form.focus_first()

    def _run(self, arguments: dict[str, Any]) -> None:
        if self._running is None:
            clear(self._result)
            self._message.set_text(self.tr("Running…"))
            self._progress.setValue(0)
            self._show_running(True)
            self._running = tasks.start(self._call(arguments), on_error=self)

    async def _call(self, arguments: dict[str, Any]) -> None:
        from desktop.assistant.tool_calls import failure

        server = self._tool.server
        try:
            result = await self._core.access.call_tool(self._tool, arguments, self._show_progress)
            output = await self._core.results.output(result, conversation_id=_OWNER, server=server)
        except AssistantError as error:
            output = failure(error.diagnostic)
        except asyncio.CancelledError:
            self._show_output(failure(Diagnostic("cancelled", "call", server)))
            raise
        finally:
            self._running = None
            self._show_running(False)
        self._show_output(output)

    def _show_progress(self, progress: float, total: float | None, message: str | None) -> None:
        if total is not None and math.isfinite(progress) and math.isfinite(total) and total > 0:
            self._progress.setValue(round(1000 * min(1.0, max(0.0, progress / total))))
        if message:
            self._message.set_text(visible_line(message))

    def _show_running(self, running: bool) -> None:
        self.form.setEnabled(not running)
        for widget in (self._message, self._stop, self._progress):
            widget.setVisible(running)

    def _show_output(self, output: ToolOutput) -> None:
        if output.diagnostic is not None or output.reported_error or output.warning:
            self._result.addWidget(Outcome(output, ran=True, remedy=self._show_server))
        if output.text and output.diagnostic is None:
            self._result.addWidget(WholeResult(output))
        if output.images:
            self._result.addWidget(Images(output))
        if output.spilled is not None:
            self._result.addWidget(SpilledRow(output.spilled, f"{self._tool.server}-{self._tool.name}"))

    def _show_server(self, diagnostic: Diagnostic) -> None:
        self.reject()
        self.server_requested.emit(diagnostic.server)

    def _stop_running(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def done(self, result: int) -> None:
        self._stop_running()
        super().done(result)
