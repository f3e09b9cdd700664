"""A prompt's arguments as a form: a line each, for which the server suggests values. Used by ``prompt_picker.py``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop.catalog_entries import PromptArgument
from desktop.ui import theme
from desktop.ui.dialogs.suggested_line import SuggestedLine
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

#: Gives suggestions for an argument: its name, what is entered, and what is entered for the others.
Suggest = Callable[[str, str, Mapping[str, str]], Awaitable[Sequence[str]]]


class ArgumentForm(QWidget):
    """Attributes:
    lines: By the argument's name.

    Signals:
        submitted: Enter was pressed in the last line.
    """

    submitted = Signal()

    def __init__(
        self,
        arguments: Sequence[PromptArgument],
        values: Mapping[str, str],
        suggest: Suggest,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._arguments = arguments
        self._suggest = suggest
        self._faults: dict[str, PlainLabel] = {}
        self._asked_for: set[str] = set()
        self.lines: dict[str, SuggestedLine] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACING)
        for argument in arguments:
            name = visible_line(argument.name, 80)
            head = QHBoxLayout()
            head.setSpacing(theme.SPACING // 2)
            head.addWidget(PlainLabel(name, bold=True))
            if argument.required:
                head.addWidget(PlainLabel("*", tone="error", wrap=False))
            head.addStretch()
            line = SuggestedLine(partial(self._suggestions, argument.name))
            line.setAccessibleName(self.tr("{name}, required").format(name=name) if argument.required else name)
            line.setAccessibleDescription(visible_line(argument.description, 400))
            line.setText(values.get(argument.name, ""))
            line.returnPressed.connect(partial(self._go_on, argument.name))
            fault = PlainLabel(tone="error")
            fault.hide()
            line.textChanged.connect(fault.hide)
            column.addLayout(head)
            if argument.description:
                column.addWidget(PlainLabel(visible_line(argument.description, 400), tone="muted"))
            column.addWidget(line)
            column.addWidget(fault)
            self.lines[argument.name], self._faults[argument.name] = line, fault
        if not arguments:
            column.addWidget(PlainLabel(self.tr("It takes no arguments."), tone="muted"))

    def values(self) -> dict[str, str] | None:
        """What is entered; None when something is missing, which is said at its line, which gets the keyboard.

        An optional one that is empty is left out. A required one may be empty when the person insists: the empty string is a
        value, too.
        """
        values: dict[str, str] = {}
        missing: list[str] = []
        for argument in self._arguments:
            text = self.lines[argument.name].text()
            self._faults[argument.name].hide()
            if text or (argument.required and argument.name in self._asked_for):
                values[argument.name] = text
            elif argument.required:
                missing.append(argument.name)
                self._faults[argument.name].setText(self.tr("Enter a value, or go on once more to leave it empty."))
                self._faults[argument.name].show()
        self._asked_for = set(missing)
        if missing:
            self.lines[missing[0]].setFocus()
            return None
        return values

    def go_to_first(self) -> bool:
        """Gives the keyboard to the first line, if there is one."""
        line = next(iter(self.lines.values()), None)
        if line is not None:
            line.setFocus()
        return line is not None

    async def _suggestions(self, name: str, value: str) -> Sequence[str]:
        others = {each: line.text() for each, line in self.lines.items() if each != name and line.text()}
        return await self._suggest(name, value, others)

    def _go_on(self, name: str) -> None:
        lines = list(self.lines.values())
        position = list(self.lines).index(name) + 1
        if position < len(lines):
            lines[position].setFocus()
        else:
            self.submitted.emit()
