"""A server's row in the servers panel, and that of an entry of the configuration that could not be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QSizePolicy,
    QWidget,
)

from desktop.errors import Diagnostic
from desktop.host.server_config import ServerDefinition
from desktop.host.server_state import ServerState
from desktop.ui import theme
from desktop.ui.chat.widgets import Card, ElidedLabel, flat_button, plain_tool_tip
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.ui.panels.server_details import Block, ConsentBlock, FailureBlock, FaultBlock, WarningBlock
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.host.connection import Connection


class ServerRow(Card):
    """One server: glyph, name, state in a word, and what it offers; below, what needs the person.

    Attributes:
        definition: What is shown.

    Signals:
        step_chosen: The name of a step whose button was pressed.
        menu_requested: Its menu is asked for, at that global position.
        neighbour_requested: The focus is to go to the next (1) or previous (-1) row.
    """

    step_chosen = Signal(str)
    menu_requested = Signal(QPoint)
    neighbour_requested = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__("card", "border")
        self.definition: ServerDefinition | None = None
        self._state: ServerState | None = None
        self._weight = 0
        self._block: Block | None = None
        self.name = name
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._glyph = PlainLabel(wrap=False)
        self._glyph.setMinimumWidth(2 * theme.SPACING)
        self._glyph.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._name = ElidedLabel(_isolated(name), bold=True)
        self._word = PlainLabel(wrap=False)
        self._word.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._summary = ElidedLabel("", tone="muted")
        self._origin = PlainLabel(self.tr("This folder"), tone="muted", scale=0.9, wrap=False)
        self._origin.hide()
        self._more = flat_button("more", self.tr("Actions for {server}").format(server=name))
        self._more.clicked.connect(self._request_menu)
        state = QHBoxLayout()
        state.setSpacing(theme.SPACING // 2)
        state.addWidget(self._word)
        state.addWidget(self._summary, 1)
        head = QHBoxLayout()
        head.setSpacing(theme.SPACING)
        head.addWidget(self._name, 1)
        head.addWidget(self._origin)
        self._layout = _row_layout(self)
        self._layout.addWidget(self._glyph, 0, 0)
        self._layout.addLayout(head, 0, 1)
        self._layout.addWidget(self._more, 0, 2, 2, 1, Qt.AlignmentFlag.AlignTop)
        self._layout.addLayout(state, 1, 1)

    def show_connection(self, connection: Connection, weight: int = 0) -> None:
        """`weight` is about how many tokens all its tools take, 0 where that is not known."""
        state, definition = connection.state, connection.definition
        if (definition, state, weight) == (self.definition, self._state, self._weight):
            return
        glyph, tone, word = state_word(state)
        self._glyph.setText(glyph)
        self._glyph.set_tone(tone)
        self._word.setText(word)
        self._word.set_tone(tone)
        summary = offer_summary(state, weight) or definition.description or definition.url or definition.command
        if definition.kind == "builtin":
            summary = self.tr("Built in: {summary}").format(summary=summary) if summary else self.tr("Built in")
        summary = visible_line(summary)
        self._summary.set_text(f"· {_isolated(summary)}" if summary else "")
        of_folder = definition.workspace is not None
        self._origin.setVisible(of_folder)
        self.setAccessibleName(f"{self.name}, {self._origin.text()}, {word}" if of_folder else f"{self.name}, {word}")
        self.setAccessibleDescription(summary)
        self._name.setToolTip(plain_tool_tip(definition.description or state.title or self.name))
        same_block = self._state is not None and _told(self._state) == _told(state) and self.definition == definition
        self.definition, self._state, self._weight = definition, state, weight
        if not same_block:
            self._show_block(connection)

    def _show_block(self, connection: Connection) -> None:
        state = connection.state
        if self._block is not None:
            if self._block.isAncestorOf(self.focusWidget() or self):
                self.setFocus()  # before Qt gives it to another row, and scrolls there
            self._layout.removeWidget(self._block)
            self._block.hide()
            self._block.deleteLater()
            self._block = None
        if state.status == "needs_consent":
            self._block = ConsentBlock(connection.definition)
        elif state.failure is not None and state.status != "disabled":
            self._block = block = FailureBlock(state, state.failure)
            block.look_for_program(connection.definition)
        elif state.warnings or state.strays:
            self._block = WarningBlock(state)
        if self._block is not None:
            self._block.step_chosen.connect(self.step_chosen)
            self._layout.addWidget(self._block, 2, 0, 1, 3)

    def _request_menu(self) -> None:
        self.menu_requested.emit(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self._request_menu()
        else:
            self.menu_requested.emit(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_Space:
                self._request_menu()
            case Qt.Key.Key_Delete:
                self.step_chosen.emit("remove")
            case Qt.Key.Key_Up | Qt.Key.Key_Down:
                self.neighbour_requested.emit(1 if event.key() == Qt.Key.Key_Down else -1)
            case _:
                super().keyPressEvent(event)


class ReplacedRow(Card):
    """One of the person's own servers in whose place there is one of the open folder now."""

    def __init__(self, name: str) -> None:
        super().__init__("card", "border")
        layout = _row_layout(self)
        glyph = PlainLabel("–", tone="muted", wrap=False)
        glyph.setMinimumWidth(2 * theme.SPACING)
        glyph.setAlignment(Qt.AlignmentFlag.AlignCenter)
        layout.addWidget(glyph, 0, 0)
        layout.addWidget(ElidedLabel(_isolated(name), tone="muted", bold=True), 0, 1)
        told = tr("Your own one is replaced by this folder's")
        layout.addWidget(PlainLabel(told, tone="muted"), 1, 1)
        self.setAccessibleName(f"{name}, {told}")


class FaultRow(Card):
    """An entry of the configuration, or the whole file, that could not be used. Signals as of `ServerRow`.

    Attributes:
        of_folder: It is in the open folder's file.
    """

    step_chosen = Signal(str)

    def __init__(self, fault: Diagnostic, *, of_folder: bool = False) -> None:
        super().__init__("error_background", "border")
        self.fault = fault
        self.of_folder = of_folder
        file = tr("This folder's file of servers") if of_folder else tr("Configuration file")
        name = visible_line(fault.server, 80) if fault.server else file
        layout = _row_layout(self)
        layout.addWidget(PlainLabel("✘", tone="error", wrap=False), 0, 0)
        layout.addWidget(ElidedLabel(name, bold=True), 0, 1)
        state = QHBoxLayout()
        state.setSpacing(theme.SPACING // 2)
        state.addWidget(PlainLabel(tr("Not valid"), tone="error", wrap=False))
        state.addWidget(ElidedLabel(f"· {tr('This folder')}" if of_folder else "", tone="muted"), 1)
        layout.addLayout(state, 1, 1)
        block = FaultBlock(fault)
        block.step_chosen.connect(self.step_chosen)
        layout.addWidget(block, 2, 0, 1, 3)
        self.setAccessibleName(f"{name}, {tr('Not valid')}")


def _isolated(text: str) -> str:
    """Text whose numbers, paths and URLs keep their order in a window that reads from right to left."""
    return f"\u2068{text}\u2069"


def _row_layout(row: QWidget) -> QGridLayout:
    """Glyph, then name above state, then room for a button; below, over all columns, a block."""
    row.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)  # as high as its text at this width
    layout = QGridLayout(row)
    layout.setContentsMargins(*[theme.SPACING] * 4)
    layout.setHorizontalSpacing(theme.SPACING)
    layout.setVerticalSpacing(0)
    layout.setColumnStretch(1, 1)
    return layout


def state_word(state: ServerState) -> tuple[str, str, str]:
    """Glyph, colour and word of a state: none of the three alone."""
    match state.status:
        case "disabled":
            return "–", "muted", tr("Disabled")
        case "idle":
            return "○", "muted", tr("Idle")
        case "needs_consent":
            return "?", "warning", tr("Asks to start")
        case "connecting":
            return "◌", "running", tr("Connecting…")
        case "connected":
            return "●", "ok", tr("Connected")
        case "failed":
            return "✘", "error", tr("Failed")


def _told(state: ServerState) -> object:
    """What of a state the block below a row tells."""
    return state.status, state.failure, state.retry_in, state.warnings, state.strays


def offer_summary(state: ServerState, weight: int) -> str:
    """What the server offers, what its tools weigh, and by which version of the protocol."""
    texts = {
        "tool": (tr("1 tool"), tr("{n} tools")),
        "resource": (tr("1 resource"), tr("{n} resources")),
        "template": (tr("1 template"), tr("{n} templates")),
        "prompt": (tr("1 prompt"), tr("{n} prompts")),
    }
    counted = [
        (one if state.counts[kind] == 1 else several).format(n=state.counts[kind])
        for kind, (one, several) in texts.items()
        if state.counts.get(kind)
    ]
    if weight and state.counts.get("tool"):
        counted.insert(1, tr("≈ {count} tokens").format(count=QLocale().toString(weight)))
    if state.protocol_version:
        counted.append(tr("MCP {version}").format(version=state.protocol_version))
    return " · ".join(counted)
