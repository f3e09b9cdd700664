"""The question whether a call may run: what would be sent, what the server claims, and the person's decision.

A part of the tool-call card while it waits. Nothing of the arguments is left out: what is long is shown page by page.
"""

from __future__ import annotations

import difflib
import json
from functools import partial
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMenu, QPushButton, QVBoxLayout, QWidget

from desktop.assistant.approval import ApprovalRequest, Decision
from desktop.catalog_entries import ToolDefinition
from desktop.ui import theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.code_block import CodeView
from desktop.ui.chat.widgets import flat_button
from desktop.ui.flow_layout import FlowLayout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible, visible_line

#: Characters of arguments that are added at a time.
_PAGE = 32_000
_MOST_LINES = 18
#: Lines of a definition that are compared.
_COMPARED_LINES = 1000


class ApprovalPanel(QWidget):
    """Keys: a allows once, s in this conversation, d denies."""

    def __init__(self, request: ApprovalRequest, answers: PersonAnswers, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.request = request
        self._answers = answers
        self._text = ""
        self._view = CodeView(wrap=True, most_lines=_MOST_LINES, parent=self)
        self._more = flat_button("down", "", text=" ")
        self._more.clicked.connect(self._show_more)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING)
        if request.previous is None:
            self._show_call(layout)
        else:
            self._show_change(layout, request.previous)
        self._show_buttons(layout)

    def decide(self, decision: Decision) -> None:
        self._answers.answer_approval(self.request, decision)

    def key_pressed(self, event: QKeyEvent) -> bool:
        """Takes a key that the card got; whether it was one of a decision."""
        if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier or event.isAutoRepeat():
            return False
        keys: dict[int, Decision] = {Qt.Key.Key_A: "once", Qt.Key.Key_S: "conversation", Qt.Key.Key_D: "deny"}
        decision = keys.get(event.key())
        if decision is None or (decision == "conversation" and self.request.previous is not None):
            return False
        self.decide(decision)
        return True

    def _show_call(self, layout: QVBoxLayout) -> None:
        tool = self.request.tool
        layout.addWidget(PlainLabel(self.tr("May this call run?"), bold=True))
        description = visible_line(tool.description, 300)
        if description:
            said = self.tr("The server describes it: “{text}”").format(text=description)
            layout.addWidget(PlainLabel(said, tone="muted"))
        said_of_it = claims(tool)
        if said_of_it:
            said = self.tr("The server says: {claims}. Deskhand can't check that.").format(claims=", ".join(said_of_it))
            layout.addWidget(PlainLabel(said, tone="muted"))
        if self.request.other_servers:
            names = ", ".join(visible_line(each, 80) for each in sorted(self.request.other_servers)[:10])
            said = self.tr("Content of {servers} is in this conversation and may have led to this call.")
            layout.addWidget(PlainLabel(said.format(servers=names), tone="warning"))
        if not self.request.arguments:
            layout.addWidget(PlainLabel(self.tr("Without arguments."), tone="muted"))
            return
        self._text = visible(json.dumps(self.request.arguments, indent=2, ensure_ascii=False))
        self._view.setAccessibleName(self.tr("Arguments"))
        layout.addWidget(self._view)
        layout.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        self._show_more()

    def _show_more(self) -> None:
        shown = len(self._view.text) + _PAGE
        left = len(self._text) - shown
        self._view.set_text(self._text[:shown], language="json" if left <= 0 else "")
        text = self.tr("Show more: {count} characters are left").format(count=f"{left:,}")
        self._more.setText(text)
        self._more.setAccessibleName(text)
        self._more.setToolTip("")
        self._more.setVisible(left > 0)

    def _show_change(self, layout: QVBoxLayout, previous: ToolDefinition) -> None:
        name = visible_line(self.request.tool.identifier)
        layout.addWidget(PlainLabel(self.tr("{tool} has changed. Accept the change?").format(tool=name), bold=True))
        self._view.setAccessibleName(self.tr("What changed"))
        self._view.set_text(_change(previous, self.request.tool), language="diff")
        layout.addWidget(self._view)

    def _show_buttons(self, layout: QVBoxLayout) -> None:
        changed = self.request.previous is not None
        row = FlowLayout()
        buttons: list[tuple[str, Decision]] = [
            (self.tr("Accept (a)") if changed else self.tr("Allow once (a)"), "once"),
            (self.tr("Allow in this conversation (s)"), "conversation"),
            (self.tr("Accept and always allow") if changed else self.tr("Always allow this tool"), "always"),
            (self.tr("Don't accept (d)") if changed else self.tr("Deny (d)"), "deny"),
        ]
        for text, decision in buttons:
            if changed and decision == "conversation":
                continue
            button = (PrimaryButton if decision == "once" else QPushButton)(text)
            button.setAutoDefault(False)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the focus where the person writes
            button.clicked.connect(partial(self._answers.answer_approval, self.request, decision))
            row.addWidget(button)
        more = flat_button("more", self.tr("More decisions"))
        menu = QMenu(more)
        if not changed:
            server = visible_line(self.request.tool.server, 40)
            allow_all = self.tr("Always allow all tools that {server} has now").format(server=server)
            menu.addAction(allow_all, lambda: self._answers.allow_server(self.request))
        menu.addAction(self.tr("Never allow this tool"), lambda: self.decide("never"))
        more.clicked.connect(lambda: menu.popup(more.mapToGlobal(more.rect().bottomLeft())))
        row.addWidget(more)
        layout.addLayout(row)


def claims(tool: ToolDefinition) -> list[str]:
    """What a server claims of a tool, in words."""
    said = {
        ("readOnlyHint", True): tr("it only reads"),
        ("readOnlyHint", False): tr("it may change things"),
        ("destructiveHint", True): tr("it may delete or overwrite"),
        ("destructiveHint", False): tr("it only adds"),
        ("idempotentHint", True): tr("repeating it changes nothing more"),
        ("openWorldHint", True): tr("it reaches out to other systems"),
        ("openWorldHint", False): tr("it reaches nothing beyond its own system"),
    }
    claims = [words for (hint, value), words in said.items() if tool.annotations.get(hint) is value]
    if tool.annotations.get("readOnlyHint") is True:  # the protocol: the others say nothing then
        claims = [words for words in claims if words not in (tr("it may delete or overwrite"), tr("it only adds"))]
    return claims


def _change(previous: ToolDefinition, now: ToolDefinition) -> str:
    """What differs in two definitions, line by line; the new one whole where they are too long to compare."""
    before, after = _definition_lines(previous), _definition_lines(now)
    if max(len(before), len(after)) > _COMPARED_LINES:
        return "\n".join(after)
    lines = list(difflib.unified_diff(before, after, n=2, lineterm=""))[2:]
    return "\n".join(line for line in lines if not line.startswith("@@"))


def _definition_lines(tool: ToolDefinition) -> list[str]:
    parts: dict[str, Any] = {
        "title": tool.title,
        "annotations": tool.annotations,
        "input": tool.input_schema,
        "output": tool.output_schema,
    }
    shown = json.dumps({name: part for name, part in parts.items() if part}, indent=2, ensure_ascii=False)
    return [*visible(tool.description).split("\n"), *visible(shown).split("\n")]
