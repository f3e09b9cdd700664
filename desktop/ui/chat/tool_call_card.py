"""A tool call in the conversation: what runs, in which state, with what, and what came of it. Used by ``message_widget.py``.

It draws the `ToolCall` that is in the message, whenever it is told to refresh; while the call waits for the person, the question
is a panel in the card (``approval_panel.py``), never a dialog.
"""

from __future__ import annotations

import time

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop.assistant.approval import ApprovalRequest
from desktop.assistant.conversation import ToolCall
from desktop.assistant.toolbox import MCP_TOOLS
from desktop.ui import icons, theme
from desktop.ui.chat import result_text
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.approval_panel import ApprovalPanel
from desktop.ui.chat.call_title import call_title
from desktop.ui.chat.code_block import CodeView
from desktop.ui.chat.result_view import Images, Outcome, Preview, Remedy, Rows, Section, SpilledRow, WholeResult
from desktop.ui.chat.widgets import Card, ElidedLabel, Glyph, ProgressLine, discard, flat_button
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible, visible_line

_ARGUMENT_LINES = 12
#: Characters of arguments that are laid out; the rest is behind Copy.
_LONGEST_ARGUMENTS = 50 * 1024


class ToolCallCard(Card):
    """`remedy` is called with the diagnostic whose button was pressed."""

    def __init__(
        self,
        call: ToolCall,
        conversation_id: str,
        answers: PersonAnswers,
        remedy: Remedy,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent=parent)
        self._call = call
        self._conversation_id = conversation_id
        self._answers = answers
        self._remedy = remedy
        self._expanded = False
        self._ended = False
        self._approval: ApprovalPanel | None = None
        self._preview: Preview | None = None
        self._details: QWidget | None = None
        self._glyph = Glyph()
        self._name = ElidedLabel(bold=True)
        self._summary = ElidedLabel(tone="muted")
        self._duration = PlainLabel(tone="muted", wrap=False)
        self._toggle = flat_button("down", self.tr("Show details"))
        self._toggle.clicked.connect(self.toggle)
        self._progress: _Progress | None = None
        self._clock = QTimer(self, interval=1000)
        self._clock.timeout.connect(self._show_duration)

        head = QHBoxLayout()
        head.setSpacing(theme.SPACING)
        head.addWidget(self._glyph)
        head.addWidget(self._name)
        head.addWidget(self._summary, 1)
        head.addWidget(self._duration)
        head.addWidget(self._toggle)
        self._body = QVBoxLayout()
        self._body.setSpacing(theme.SPACING)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 6, 6, 8)
        layout.setSpacing(theme.SPACING // 2)
        layout.addLayout(head)
        layout.addLayout(self._body)
        self._body.setContentsMargins(0, 0, 6, 0)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        answers.waiting_changed.connect(self._refresh_waiting)
        self.refresh()

    @property
    def waits(self) -> bool:
        """Whether it asks for the person's decision."""
        return self._approval is not None

    def pending_request(self) -> ApprovalRequest | None:
        """The decision that is waited for, whether the card shows it already or not."""
        request = self._answers.approval(self._conversation_id, self._call.id)
        # Another message's call may have the same id.
        return request if request is not None and request.call is self._call else None

    def refresh(self) -> None:
        """Draws the call as it is now."""
        title = call_title(self._call)
        self._name.set_text(title.name)
        self._summary.set_text(title.summary)
        self._refresh_waiting()
        running = self._call.state == "running"
        self._show_progress(running)
        if running and not self._clock.isActive():
            self._clock.start()
        elif not running:
            self._clock.stop()
        self._show_duration()
        if self._call.output is not None and not self._ended:
            self._ended = True
            self._show_end()

    def toggle(self) -> None:
        """Shows arguments and result, or hides them."""
        self._expanded = not self._expanded
        icons.set_icon(self._toggle, "up" if self._expanded else "down")
        name = self.tr("Hide details") if self._expanded else self.tr("Show details")
        self._toggle.setAccessibleName(name)
        self._toggle.setToolTip(name)
        self._show_details()

    def _refresh_waiting(self) -> None:
        request = self.pending_request()
        if self._approval is not None and self._approval.request is not request:
            discard(self._approval)
            self._approval = None
        if request is not None and self._approval is None:
            self._approval = ApprovalPanel(request, self._answers, self)
            self._body.addWidget(self._approval)
            question = self.tr("{tool} asks for your decision").format(tool=self._name.text())
            self._announce(question, QAccessible.AnnouncementPoliteness.Assertive)
        self._show_state()

    def _show_state(self) -> None:
        icon, tone, state = {
            "waiting": ("circle", "muted", self.tr("waiting")),
            "running": ("play", "running", self.tr("running")),
            "done": ("check", "ok", self.tr("done")),
            "failed": ("close", "error", self.tr("failed")),
            "stopped": ("stop", "muted", self.tr("stopped")),
            "denied": ("stop", "muted", self.tr("not allowed")),
        }[self._call.state]
        if self._call.output is not None and self._call.output.reported_error:
            tone, state = "warning", self.tr("the tool reports an error")
        if self.waits:
            icon, tone, state = "question", "warning", self.tr("waits for your decision")
        self._glyph.show_state(icon, tone, state)
        self.setAccessibleName(f"{self._name.text()}, {state}")
        self.setAccessibleDescription(self._summary.text())
        self.set_colors("card", tone if self.waits or tone in ("error", "warning") else "border")

    def _show_progress(self, running: bool) -> None:
        told = running and (self._call.progress is not None or bool(self._call.progress_message))
        if told and self._progress is None:
            self._progress = _Progress(self)
            self._body.insertWidget(0, self._progress)
        if self._progress is not None:
            self._progress.setVisible(told)
            self._progress.show_progress(self._call)

    def _show_duration(self) -> None:
        if self._call.started is None:
            self._duration.setText("")
            return
        seconds = max(0.0, (self._call.finished or time.time()) - self._call.started)
        self._duration.setText(_duration(seconds, exact=self._call.finished is not None))

    def _show_end(self) -> None:
        output = self._call.output
        assert output is not None, "called when the call has ended"
        if self._call.details:
            self._body.addWidget(Rows(self._call, self))
        if output.diagnostic is not None or output.reported_error or output.warning:
            self._body.addWidget(Outcome(output, ran=self._call.started is not None, remedy=self._remedy, parent=self))
        # What the tools of mcp_tools say is in the rows, and a failure's text repeats what Outcome says.
        if output.text and output.diagnostic is None and (self._call.name != MCP_TOOLS or _is_read(self._call)):
            self._preview = Preview(output, self)
            self._body.addWidget(self._preview)
        if output.images:
            self._body.addWidget(Images(output, self))
        if output.spilled is not None:
            self._body.addWidget(SpilledRow(output.spilled, f"{self._call.server}-{self._call.tool}", self))
        self._announce(self.accessibleName(), QAccessible.AnnouncementPoliteness.Polite)
        self._show_details()

    def _show_details(self) -> None:
        if self._details is not None:
            discard(self._details)
            self._details = None
        if self._preview is not None:
            self._preview.setVisible(not self._expanded)
        if not self._expanded:
            return
        self._details = QWidget(self)
        layout = QVBoxLayout(self._details)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING)
        call = self._call
        arguments = call.arguments[:_LONGEST_ARGUMENTS]
        laid_out = result_text.pretty(arguments) if len(arguments) == len(call.arguments) else None
        view = CodeView(wrap=True, most_lines=_ARGUMENT_LINES)
        view.setAccessibleName(self.tr("Arguments"))
        view.set_text(visible(laid_out or arguments), language="json" if laid_out else "")
        layout.addWidget(Section(self.tr("Arguments"), self.tr("Copy arguments"), lambda: call.arguments, view))
        output = call.output
        if output is not None and output.text:
            copy = self.tr("Copy result")
            layout.addWidget(Section(self.tr("Result"), copy, lambda: output.text, WholeResult(output)))
        self._body.addWidget(self._details)

    def _announce(self, text: str, politeness: QAccessible.AnnouncementPoliteness) -> None:
        if QAccessible.isActive():
            event = QAccessibleAnnouncementEvent(self, text)
            event.setPoliteness(politeness)
            QAccessible.updateAccessibility(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._approval is not None and self._approval.key_pressed(event):
            return
        if self.hasFocus() and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.toggle()
            return
        super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and event.position().y() < self._toggle.geometry().bottom():
            self.toggle()  # the whole head line is a button
        else:
            super().mouseReleaseEvent(event)


class _Progress(QWidget):
    """How far a call is, and what the server says about it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._line = ProgressLine()
        self._line.setAccessibleName(self.tr("Progress"))
        self._message = ElidedLabel(tone="muted")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING // 2)
        layout.addWidget(self._line)
        layout.addWidget(self._message)

    def show_progress(self, call: ToolCall) -> None:
        self._line.setVisible(call.progress is not None)
        self._line.setValue(round(1000 * (call.progress or 0)))
        self._message.set_text(visible_line(call.progress_message))
        self._message.setVisible(bool(call.progress_message))


def _is_read(call: ToolCall) -> bool:
    return call.details.get("operation") == "read"


def _duration(seconds: float, *, exact: bool) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if exact else f"{seconds:.0f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"
