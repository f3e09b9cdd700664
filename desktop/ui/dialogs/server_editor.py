"""The form that adds a server, or changes one: a place to paste what the server's page tells, and a few fields.

Opened from the servers panel. What it writes is checked by ``host/server_entry.py``; secrets go to the keyring, and the file
gets references to them.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop.errors import AssistantError
from desktop.host import server_references, servers_file
from desktop.ui import error_box, messages, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.widgets import flat_button
from desktop.ui.dialogs.pasted_server import NotUnderstood, command_line, parse
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core

Entry = dict[str, Any]

#: What the form itself has fields for; everything else of an entry stays as it is written.
_FIELDS = {"command", "args", "env", "url", "httpUrl", "serverUrl", "headers", "description", "type"}
_REFERENCE = re.compile(r"\$\{keyring:([A-Za-z0-9_.-]{1,128})\}")
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|auth|credential")


class ServerEditor(QDialog):
    """Accepted when the servers have been written."""

    def __init__(self, core: Core, name: str | None, parent: QWidget) -> None:
        """`name` is the server to change; None: a new one."""
        super().__init__(parent)
        self._core = core
        self._changes = name
        self._old: Entry = {}
        self._parsed: dict[str, Entry] = {}
        self._pasted_values: Entry = {}
        self.saved = ""
        self._name_typed = self._description_typed = False
        self.setWindowTitle(self.tr("Add a server") if name is None else self.tr("Edit {server}").format(server=name))

        self._source = QPlainTextEdit()
        self._source.setAccessibleName(self.tr("Command, URL or JSON"))
        self._source.setPlaceholderText("npx -y @modelcontextprotocol/server-filesystem ~/Documents")
        self._source.setTabChangesFocus(True)
        self._source.setFixedHeight(6 * self._source.fontMetrics().lineSpacing())
        self._source.textChanged.connect(self._source_changed)
        self._meaning = PlainLabel(tone="muted")
        self._name = QLineEdit()
        self._name.setPlaceholderText(self.tr("A short name, such as files"))
        self._name.textEdited.connect(self._typed_name)
        self._name.textChanged.connect(self._show_validity)
        self._description = QLineEdit()
        self._description.setPlaceholderText(self.tr("What it is for; the assistant reads this"))
        self._description.textEdited.connect(self._typed_description)
        self._values = _Values()
        self._fault = PlainLabel(tone="error", selectable=True)
        self._fault.hide()

        self._fields = QWidget()
        fields = QFormLayout(self._fields)
        fields.setContentsMargins(0, 0, 0, 0)
        fields.setSpacing(theme.SPACING)
        fields.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        fields.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        fields.addRow(self.tr("&Name"), self._name)
        fields.addRow(self.tr("&Description"), self._description)
        fields.addRow(self._values)

        content = QWidget()
        form = QVBoxLayout(content)
        form.setContentsMargins(0, 0, 0, 0)
        form.setSpacing(theme.SPACING)
        form.addWidget(PlainLabel(self.tr("Paste the command, the URL or the JSON from the server's page.")))
        form.addWidget(self._source)
        form.addWidget(self._meaning)
        form.addSpacing(theme.SPACING)
        form.addWidget(self._fields)
        form.addStretch(1)
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # it follows the field that has the focus
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(content)

        buttons = QDialogButtonBox()
        self._save_button = PrimaryButton("")
        buttons.addButton(self._save_button, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.accepted.connect(self._save)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(area, 1)
        layout.addWidget(self._fault)
        layout.addWidget(buttons)
        self.resize(560, 460)
        self._source_changed()
        if name is not None:
            self._name.setText(name)
            self._name.setReadOnly(True)
            self._name_typed = True
            self.setEnabled(False)
            tasks.start(self._load(name), on_error=parent)

    async def _load(self, name: str) -> None:
        try:
            self._fill(await asyncio.to_thread(servers_file.read_entry, self._core.servers_file, name))
        except AssistantError:
            self.reject()
            raise
        self.setEnabled(True)
        self._source.setFocus()

    def _fill(self, entry: Any) -> None:
        """Shows an entry in the fields; one that doesn't fit them, as JSON."""
        if not _fits(entry):
            self._source.setPlainText(json.dumps(entry, indent=2, ensure_ascii=False))
            return
        self._old = entry
        url = next((entry[key] for key in ("url", "httpUrl", "serverUrl") if key in entry), None)
        self._source.setPlainText(command_line(entry) if url is None else url)
        self._description.setText(entry.get("description", ""))
        self._description_typed = True
        self._values.set_values(entry.get("headers" if url else "env", {}))

    def _typed_name(self) -> None:
        self._name_typed = True

    def _typed_description(self) -> None:
        self._description_typed = True

    def _source_changed(self) -> None:
        """Finds out what was pasted, and fills the fields that the person has not filled."""
        text = self._source.toPlainText().strip()
        self._parsed = {}
        self._meaning.set_tone("muted")
        if not text:
            self._meaning.setText(self.tr("Nothing is started before you have seen the whole command and allowed it."))
        else:
            try:
                self._parsed = parse(text)
            except NotUnderstood as reason:
                self._meaning.set_tone("warning")
                self._meaning.setText(str(reason))
            else:
                self._meaning.setText(self._meaning_of(self._parsed))
        if len(self._parsed) == 1:
            [(name, entry)] = self._parsed.items()
            if not self._name_typed:
                self._name.setText(name)
            if not self._description_typed:
                self._description.setText(str(entry.get("description", "")))
            is_program = "command" in entry
            self._values.set_kind(is_program)
            pasted = entry.get("env" if is_program else "headers")
            if isinstance(pasted, dict) and pasted and pasted != self._pasted_values:
                self._pasted_values = pasted
                self._values.set_values({str(key): str(value) for key, value in pasted.items()})
        self._fields.setVisible(len(self._parsed) <= 1)
        self._show_validity()

    def _show_validity(self) -> None:
        several = len(self._parsed) > 1
        if several:
            self._save_button.setText(self.tr("Add {n} servers").format(n=len(self._parsed)))
        else:
            self._save_button.setText(self.tr("Add server") if self._changes is None else self.tr("Save"))
        named = several or bool(self._name.text().strip())
        self._save_button.setEnabled(bool(self._parsed) and named)
        self._fault.hide()

    def _meaning_of(self, parsed: dict[str, Entry]) -> str:
        if len(parsed) > 1:
            names = ", ".join(visible_line(name, 40) for name in parsed)
            return self.tr("{n} servers: {names}").format(n=len(parsed), names=names)
        entry = next(iter(parsed.values()))
        if "command" in entry:
            program = visible_line(str(entry["command"]), 80)
            return self.tr("A program on this computer: {program}").format(program=program)
        url = visible_line(str(next((entry[key] for key in ("url", "httpUrl", "serverUrl") if key in entry), "")), 80)
        return self.tr("A server at {url}").format(url=url)

    def _save(self) -> None:
        self.setEnabled(False)
        tasks.start(self._write(), on_error=self)

    async def _write(self) -> None:
        try:
            entries = await self._entries()
            for name, entry in entries.items():
                await asyncio.to_thread(
                    servers_file.add_server, self._core.servers_file, name, entry, replace=self._changes is not None
                )
        except AssistantError as error:
            self.setEnabled(True)
            words = messages.words(error.diagnostic)
            self._fault.setText(f"{words.detail} {words.remedy}" if len(self._parsed) > 1 else words.detail)
            self._fault.show()
            return
        self.saved = next(iter(entries))
        self.accept()

    async def _entries(self) -> dict[str, Entry]:
        """What is to be written; secrets are in the keyring by then."""
        if len(self._parsed) > 1:
            return self._parsed
        name = self._name.text().strip()
        pasted = next(iter(self._parsed.values()))
        entry = {key: value for key, value in self._old.items() if key not in _FIELDS} | pasted
        is_program = "command" in entry
        if is_program == ("command" in self._old) and "type" in self._old:
            entry["type"] = self._old["type"]
        for key in ("env", "headers", "description"):
            entry.pop(key, None)
        if description := self._description.text().strip():
            entry["description"] = description
        if values := await self._values.written(name, self._core):
            entry["env" if is_program else "headers"] = values
        return {name: entry}


def _fits(entry: Any) -> bool:
    """Whether the form's fields can hold an entry: it has the types that a valid one has."""
    if not isinstance(entry, dict) or ("command" in entry) == bool({"url", "httpUrl", "serverUrl"} & entry.keys()):
        return False
    arguments, values = entry.get("args", []), entry.get("env", entry.get("headers", {}))
    texts = [entry.get(key, "") for key in ("command", "url", "httpUrl", "serverUrl", "description")]
    return (
        isinstance(arguments, list)
        and isinstance(values, dict)
        and all(isinstance(text, str) for text in (*texts, *arguments, *values.values()))
    )


class _Values(QWidget):
    """Environment variables or headers: a row each, and whether its value is a secret."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[_ValueRow] = []
        self._title = PlainLabel(wrap=False)
        self._add = flat_button("add", "", text="")
        self._add.clicked.connect(lambda: self._add_row("", "").name.setFocus())
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.SPACING // 2)
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(self._add)
        self._layout.addLayout(head)
        self.set_kind(is_program=True)

    def set_kind(self, is_program: bool) -> None:
        self._title.setText(self.tr("Environment variables") if is_program else self.tr("HTTP headers"))
        self._add.setToolTip(self.tr("Add a variable") if is_program else self.tr("Add a header"))
        self._add.setAccessibleName(self._add.toolTip())

    def set_values(self, values: dict[str, str]) -> None:
        for row in list(self._rows):
            self._remove(row)
        for name, value in values.items():
            self._add_row(name, value)

    async def written(self, server: str, core: Core) -> dict[str, str]:
        """The values as the file is to have them. Secrets are put into the keyring; told once when there is none."""
        result: dict[str, str] = {}
        lost = False
        for row in self._rows:
            name = row.name.text().strip()
            if not name:
                continue
            if not row.secret.isChecked():
                result[name] = row.value.text()
                continue
            reference = row.reference or re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:128]
            if row.value.text():
                kept = await core.credentials.set(server_references.keyring_name(server, reference), row.value.text())
                lost = lost or not kept
            result[name] = f"${{keyring:{reference}}}"
        if lost:
            error_box.report(
                AssistantError("credential_store_unavailable", operation="storage"), self.window().parentWidget()
            )
        return result

    def _add_row(self, name: str, value: str) -> _ValueRow:
        row = _ValueRow(name, value)
        row.removed.connect(lambda: self._remove(row))
        self._rows.append(row)
        self._layout.addWidget(row)
        return row

    def _remove(self, row: _ValueRow) -> None:
        self._rows.remove(row)
        self._layout.removeWidget(row)
        row.hide()
        row.deleteLater()


class _ValueRow(QWidget):
    removed = Signal()

    def __init__(self, name: str, value: str) -> None:
        super().__init__()
        kept = _REFERENCE.fullmatch(value)
        self.reference = kept[1] if kept else ""
        """Under which name the keyring has the value already."""
        self.name = QLineEdit(name)
        self.name.setPlaceholderText(self.tr("Name"))
        self.name.setAccessibleName(self.tr("Name"))
        self.value = QLineEdit("" if kept else value)
        self.value.setAccessibleName(self.tr("Value of {name}").format(name=name) if name else self.tr("Value"))
        self.secret = QCheckBox(self.tr("Secret"))
        self.secret.setToolTip(self.tr("Keep the value in the system's keyring, not in the file"))
        self.secret.toggled.connect(self._show_secrecy)
        remove = flat_button("close", self.tr("Remove {name}").format(name=name) if name else self.tr("Remove"))
        remove.clicked.connect(self.removed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING // 2)
        for widget, stretch in ((self.name, 2), (self.value, 3), (self.secret, 0), (remove, 0)):
            layout.addWidget(widget, stretch)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.secret.setChecked(bool(kept) or ("${" not in value and _SECRET_NAME.search(name) is not None))
        self.name.textEdited.connect(self._suggest_secrecy)
        self._show_secrecy()

    def _suggest_secrecy(self, name: str) -> None:
        if _SECRET_NAME.search(name):
            self.secret.setChecked(True)

    def _show_secrecy(self) -> None:
        secret = self.secret.isChecked()
        self.value.setEchoMode(QLineEdit.EchoMode.Password if secret else QLineEdit.EchoMode.Normal)
        self.value.setPlaceholderText(self.tr("Kept in the keyring") if secret and self.reference else self.tr("Value"))
        self.value.setInputMethodHints(Qt.InputMethodHint.ImhSensitiveData if secret else Qt.InputMethodHint.ImhNone)
