"""A server that may be taken over, as the import shows it: what it is, what is against it, and what the person decides.

Values are hidden; the command shows when it is asked for. Part of the import wizard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from desktop.host.command_risks import risks
from desktop.host.foreign_entry import Candidate, Entry
from desktop.host.secret_values import reference_name, secrets_of, with_references
from desktop.host.server_entry import definition_of
from desktop.host.server_references import Invalid
from desktop.ui import theme
from desktop.ui.chat.widgets import Card, ElidedLabel, button_text, flat_button
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.ui.panels.server_details import command_lines, risk_text
from desktop.visible_text import visible_line


@dataclass(frozen=True)
class Chosen:
    """What is to be saved of a server: its entry, and the secrets for the keyring by the names they have there."""

    name: str
    entry: Entry
    secrets: Mapping[str, str]
    replaces: bool


class ImportRow(Card):
    """Signals:
    changed: The person decided otherwise.
    """

    changed = Signal()

    def __init__(self, candidate: Candidate, existing: Mapping[str, Any]) -> None:
        """`existing` are the entries of Deskhand's own file."""
        super().__init__()
        self._candidate = candidate
        self._existing = existing
        self._secrets = secrets_of(candidate.entry) if not candidate.problem else {}
        named = visible_line(candidate.name, 80)
        self.taken = QCheckBox()
        self.taken.setAccessibleName(self.tr("Take over {server}").format(server=named))
        self.name = QLineEdit(candidate.name if _is_valid(candidate.name) else "")
        self.name.setAccessibleName(self.tr("Name of {server}").format(server=named))
        self.name.setPlaceholderText(self.tr("A name of letters, digits, _ and -"))
        head = QHBoxLayout()
        head.setSpacing(theme.SPACING)
        head.addWidget(self.taken)
        if candidate.problem:
            head.addWidget(ElidedLabel(named, bold=True), 1)
        else:
            head.addWidget(self.name, 1)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(*[theme.SPACING] * 4)
        self._column.setSpacing(theme.SPACING // 2)
        self._column.addLayout(head)
        self._fault = PlainLabel(tone="warning")
        self._replace = QCheckBox(self.tr("Replace it"))
        self._keep = QCheckBox()
        self._asked: dict[str, QLineEdit] = {}
        if candidate.problem:
            self.taken.setEnabled(False)
            problem = self.tr("It can't be taken over: {problem}.").format(problem=candidate.problem)
            self._column.addWidget(PlainLabel(problem, tone="warning", selectable=True))
        else:
            self._add_details(named)
        free = _is_valid(candidate.name) and candidate.name not in existing
        self.taken.setChecked(free and not candidate.problem)
        for signal in (self.taken.toggled, self.name.textChanged, self._replace.toggled):
            signal.connect(self._show_state)
        self._show_state()

    def _add_details(self, named: str) -> None:
        candidate = self._candidate
        if not self.name.text():
            there = self.tr("Its name there: {name}").format(name=f"\u2068{visible_line(candidate.name, 40)}\u2069")
            self._column.addWidget(PlainLabel(there, tone="muted"))
        line = QHBoxLayout()
        line.addWidget(PlainLabel(_summary(candidate.entry), tone="muted"), 1)
        show = flat_button("eye", self.tr("Show the whole of {server}").format(server=named))
        show.setCheckable(True)
        line.addWidget(show)
        self._column.addLayout(line)
        whole = _Whole(candidate.entry)
        whole.hide()
        show.toggled.connect(whole.setVisible)
        self._column.addWidget(whole)
        self._column.addWidget(self._fault)
        self._column.addWidget(self._replace)
        if candidate.left_out:
            fields = self.tr("Left out, of no use here: {fields}").format(fields=", ".join(candidate.left_out))
            self._column.addWidget(PlainLabel(fields, tone="muted"))
        if candidate.missing:
            names = self.tr("Not set at present: {names}").format(names=", ".join(candidate.missing))
            self._column.addWidget(PlainLabel(names, tone="muted"))
        if self._secrets:
            names = visible_line(", ".join(self._secrets), 50)
            self._keep.setText(button_text(self.tr("Keep in the keyring: {names}").format(names=names)))
            self._keep.setToolTip(self.tr("Otherwise the values stand in Deskhand's file as they are"))
            self._keep.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            self._keep.setChecked(True)
            self._column.addWidget(self._keep)
        for reference, description in candidate.asked.items():
            field = QLineEdit()
            field.setEchoMode(QLineEdit.EchoMode.Password)
            said = visible_line(description or reference, 80)
            field.setPlaceholderText(self.tr("{name}, for the keyring").format(name=said))
            field.setAccessibleName(said)
            self._asked[reference] = field
            self._column.addWidget(field)

    def chosen(self) -> Chosen | None:
        """What is to be saved; None when it is skipped."""
        if not self.taken.isChecked():
            return None
        entry, secrets = self._candidate.entry, {}
        if self._secrets and self._keep.isChecked():
            entry = with_references(entry, self._secrets)
            secrets = {reference_name(name): value for name, value in self._secrets.items()}
        secrets |= {reference: field.text() for reference, field in self._asked.items() if field.text()}
        name = self.name.text().strip()
        return Chosen(name, entry, secrets, name in self._existing and self._replace.isChecked())

    def fault(self) -> str:
        """Why it can't be saved as it is; "" where it can, or is skipped."""
        if not self.taken.isChecked():
            return ""
        name = self.name.text().strip()
        if not _is_valid(name):
            return self.tr("It needs a name of letters, digits, _ and -.")
        if name in self._existing and not self._replace.isChecked():
            return self.tr("There is a server of that name. Replace it, or give this one another name.")
        return ""

    def _show_state(self) -> None:
        exists = self.name.text().strip() in self._existing
        shown = self.fault() or (self.tr("There is a server of that name.") if exists else "")
        self._fault.setText(shown)
        self._fault.setVisible(bool(shown) and not self._candidate.problem)
        self._replace.setVisible(exists and self.taken.isChecked())
        self.changed.emit()


class _Whole(QWidget):
    """The whole command or address, and the names of what else there is."""

    def __init__(self, entry: Entry) -> None:
        super().__init__()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING // 2)
        definition = definition_of("shown", entry, None)
        text = command_lines(definition) if definition.kind == "stdio" else visible_line(definition.url, 4096)
        layout.addWidget(FixedText(text, self.tr("Command or address"), most_lines=8))
        for risk in risks(definition):
            layout.addWidget(PlainLabel(risk_text(risk), tone="warning"))
        if definition.cwd:
            layout.addWidget(PlainLabel(self.tr("Folder: {folder}").format(folder=visible_line(definition.cwd, 4000))))
        for said, names in (
            (self.tr("Environment: {names}"), definition.env),
            (self.tr("Headers: {names}"), definition.headers),
        ):
            if names:
                listed = ", ".join(visible_line(name, 40) for name in names)
                layout.addWidget(PlainLabel(said.format(names=listed), tone="muted"))


def _is_valid(name: str) -> bool:
    try:
        definition_of(name, {"command": "x"}, None)
    except Invalid:
        return False
    return True


def _summary(entry: Entry) -> str:
    """What a server is, in numbers; no value of it."""
    if "command" in entry:
        parts = [tr("Program on this computer")]
        if entry.get("args"):
            parts.append(tr("arguments: {n}").format(n=len(entry["args"])))
        if entry.get("env"):
            parts.append(tr("variables: {n}").format(n=len(entry["env"])))
    else:
        parts = [tr("Server at an address")]
        if entry.get("headers"):
            parts.append(tr("headers: {n}").format(n=len(entry["headers"])))
    if entry.get("disabled") or entry.get("enabled") is False:
        parts.append(tr("disabled"))
    return " · ".join(parts)
