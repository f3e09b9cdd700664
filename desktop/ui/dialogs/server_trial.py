"""Trying a server before it is saved: the whole command to be allowed, then what the server offers or why it fails. Part of the
server editor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop.host.programs import find_program
from desktop.host.server_config import ServerDefinition
from desktop.host.server_state import Failure, ServerState
from desktop.ui import tasks, theme
from desktop.ui.chat.widgets import clear
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.ui.panels.server_details import Block, ConsentBlock, FailureBlock, show_installation
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.trial import Outcome


class ServerTrial(QWidget):
    """Shows one trial at a time; nothing is started before the person has allowed what is shown.

    Attributes:
        allowed: The definition that the person allowed to start here last.

    Signals:
        running_changed: A trial began or ended.
        edit_requested: The person goes back to the fields.
    """

    running_changed = Signal()
    edit_requested = Signal()

    def __init__(self, core: Core, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._core = core
        self._task: asyncio.Task[None] | None = None
        self.allowed: ServerDefinition | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.SPACING)

    @property
    def running(self) -> bool:
        return self._task is not None

    def offer(self, definition: ServerDefinition, secret: Callable[[str], Awaitable[str | None]]) -> None:
        """Tries a server at once, or asks first where something would be started on this computer."""
        self.stop()
        if definition.kind == "stdio" or definition.secret_commands:
            block = ConsentBlock(definition)
            block.step_chosen.connect(lambda step: self._consent_step(step, definition, secret))
            self._show(block)
            for button in block.findChildren(QPushButton):
                button.setAutoDefault(False)
            if definition.kind == "stdio":
                program = PlainLabel(tone="muted", selectable=True)
                self._layout.addWidget(program)
                tasks.start(_name_program(program, definition), on_error=program)
        else:
            self._start(definition, secret)

    def stop(self) -> None:
        """Ends a trial and takes away what it showed; the process of a server that was started ends soon."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self.running_changed.emit()
        clear(self._layout)

    def _consent_step(
        self, step: str, definition: ServerDefinition, secret: Callable[[str], Awaitable[str | None]]
    ) -> None:
        if step == "allow":
            self.allowed = definition
            self._start(definition, secret)
        else:
            self.stop()
            self.edit_requested.emit()

    def _start(self, definition: ServerDefinition, secret: Callable[[str], Awaitable[str | None]]) -> None:
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(PlainLabel(self.tr("Connecting…"), tone="running"), 1)
        stop = QPushButton(self.tr("Stop"))
        stop.setAutoDefault(False)
        stop.clicked.connect(self.stop)
        line.addWidget(stop)
        self._show(row)
        # Not ended with this widget alone: its own end waits for the server's.
        self._task = tasks.start(self._try(definition, secret))
        self.running_changed.emit()

    async def _try(self, definition: ServerDefinition, secret: Callable[[str], Awaitable[str | None]]) -> None:
        from desktop.host.trial import try_out

        results = self._core.results
        outcome = await try_out(
            definition, secret=secret, read_large=results.receive_large, spool_folder=results.spool_folder
        )
        self._task = None
        self.running_changed.emit()
        self._show(
            self._success(outcome) if outcome.failure is None else self._failed(definition, secret, outcome.failure)
        )

    def _success(self, outcome: Outcome) -> QWidget:
        kinds = {
            "tool": self.tr("{n} tools"),
            "resource": self.tr("{n} resources"),
            "template": self.tr("{n} templates"),
            "prompt": self.tr("{n} prompts"),
        }
        offers = [text.format(n=outcome.counts[kind]) for kind, text in kinds.items() if outcome.counts.get(kind)]
        parts = [
            self.tr("It works."),
            ", ".join(offers) or self.tr("It offers nothing."),
            f"MCP {visible_line(outcome.protocol_version, 40)}",
            self.tr("{seconds} s").format(seconds=f"{outcome.seconds:.1f}"),
        ]
        return PlainLabel(" · ".join(parts), tone="ok", selectable=True)

    def _failed(
        self, definition: ServerDefinition, secret: Callable[[str], Awaitable[str | None]], failure: Failure
    ) -> Block:
        block = FailureBlock(ServerState("failed", failure), failure)
        for button in block.findChildren(QPushButton):
            button.setAutoDefault(False)
            button.setVisible(button.objectName() in ("reconnect", "edit", "install"))
        block.look_for_program(definition)

        def take(step: str) -> None:
            match step:
                case "reconnect":
                    self.offer(definition, secret)
                case "install":
                    tasks.start(show_installation(definition.command), on_error=self)
                case _:
                    self.edit_requested.emit()

        block.step_chosen.connect(take)
        return block

    def _show(self, widget: QWidget) -> None:
        clear(self._layout)
        self._layout.addWidget(widget)


async def _name_program(label: PlainLabel, definition: ServerDefinition) -> None:
    """Tells which file the command's program is, as it would be found now."""
    folder = definition.cwd or definition.folder
    found = await find_program(definition.command, definition.env, folder)
    label.setText(tr("Program: {program}").format(program=found))
