"""The form that adds a server, or changes one: a place to paste what the server's page tells, a few fields, and a trial.

Opened from the servers panel. What it writes is checked by ``host/server_entry.py``; secrets go to the keyring, and the file
gets references to them. Several servers at once go on to the import.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from desktop.errors import AssistantError
from desktop.host import servers_file
from desktop.host.config_import import Source
from desktop.host.foreign_document import Group, NotUnderstood
from desktop.host.foreign_entry import Candidate, Entry
from desktop.host.pasted_text import command_line, parse, parse_own
from desktop.host.server_config import ServerDefinition
from desktop.host.server_references import Invalid, keyring_name
from desktop.host.workspace import secret_name
from desktop.ui import error_box, messages, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.dialogs.import_wizard import ImportWizard
from desktop.ui.dialogs.server_trial import ServerTrial
from desktop.ui.dialogs.server_values import ServerValues
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core

#: What the form itself has fields for; everything else of an entry stays as it is written.
_FIELDS = {"command", "args", "env", "url", "httpUrl", "serverUrl", "headers", "description", "type"}


class ServerEditor(QDialog):
    """Accepted when the servers have been written."""

    def __init__(self, core: Core, name: str | None, parent: QWidget, file: Path | None = None) -> None:
        """`name` is the server to change; None: a new one. `file` is the one it stands in; None: the person's own."""
        super().__init__(parent)
        self._core = core
        self._changes = name
        self._file = file or core.servers_file
        self._old: Entry = {}
        self._parsed: list[Candidate] = []
        self._pasted_values: dict[str, str] = {}
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
        self._values = ServerValues()
        self._trial = ServerTrial(core)
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
        form.setContentsMargins(0, 0, theme.SPACING, 0)
        form.setSpacing(theme.SPACING)
        form.addWidget(PlainLabel(self.tr("Paste the command, the URL or the JSON from the server's page.")))
        form.addWidget(self._source)
        form.addWidget(self._meaning)
        form.addSpacing(theme.SPACING)
        form.addWidget(self._fields)
        form.addWidget(self._trial)
        form.addStretch(1)
        area = self._area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # it follows the field that has the focus
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(content)

        buttons = QDialogButtonBox()
        self._try_button = buttons.addButton(self.tr("Try the connection"), QDialogButtonBox.ButtonRole.ActionRole)
        self._try_button.setAutoDefault(False)
        self._try_button.clicked.connect(self._try)
        self._save_button = PrimaryButton("")
        buttons.addButton(self._save_button, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.accepted.connect(self._save)
        buttons.rejected.connect(self.reject)
        self._trial.running_changed.connect(self._show_validity)
        self._trial.edit_requested.connect(self._source.setFocus)
        self._values.changed.connect(self._trial.stop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(area, 1)
        layout.addWidget(self._fault)
        layout.addWidget(buttons)
        self.resize(600, 520)
        self._source_changed()
        if name is not None:
            self._name.setText(name)
            self._name.setReadOnly(True)
            self._name_typed = True
            self.setEnabled(False)
            tasks.start(self._load(name), on_error=parent)

    async def _load(self, name: str) -> None:
        try:
            self._fill(await asyncio.to_thread(servers_file.read_entry, self._file, name))
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
        self._parsed = []
        self._trial.stop()
        if text:
            try:
                self._parsed = parse(text) if self._changes is None else parse_own(text)
            except NotUnderstood as reason:
                said = str(reason)
                self._say("warning", f"{said[:1].upper()}{said[1:]}.")
            else:
                self._say_meaning()
        else:
            self._say("muted", self.tr("Nothing is started before you have seen the whole command and allowed it."))
        if len(self._parsed) == 1:
            self._show_parsed(self._parsed[0])
        self._fields.setVisible(len(self._parsed) <= 1)
        self._show_validity()

    def _show_parsed(self, found: Candidate) -> None:
        if not self._name_typed:
            self._name.setText(found.name)
        if not self._description_typed:
            self._description.setText(str(found.entry.get("description", "")))
        is_program = "command" in found.entry
        self._values.set_kind(is_program)
        pasted = found.entry.get("env" if is_program else "headers")
        values = {str(key): str(value) for key, value in pasted.items()} if isinstance(pasted, dict) else {}
        if values != self._pasted_values:
            self._pasted_values = values
            self._values.set_values(values, found.asked)

    def _say(self, tone: str, text: str) -> None:
        self._meaning.set_tone(tone)
        self._meaning.setText(text)

    def _show_validity(self) -> None:
        several = len(self._parsed) > 1
        if several:
            self._save_button.setText(self.tr("Review {n} servers…").format(n=len(self._parsed)))
        else:
            self._save_button.setText(self.tr("Add server") if self._changes is None else self.tr("Save"))
        complete = several or (bool(self._name.text().strip()) and bool(self._parsed))
        self._save_button.setEnabled(complete)
        self._try_button.setVisible(not several)
        self._try_button.setEnabled(complete and not self._trial.running)
        self._fault.hide()

    def _say_meaning(self) -> None:
        if len(self._parsed) > 1:
            names = ", ".join(visible_line(each.name, 40) for each in self._parsed[:10])
            self._say("muted", self.tr("{n} servers: {names}").format(n=len(self._parsed), names=names))
            return
        [found] = self._parsed
        lines: list[str] = []
        if "command" in found.entry:
            program = visible_line(str(found.entry["command"]), 80)
            lines.append(self.tr("A program on this computer: {program}").format(program=program))
        else:
            keys = ("url", "httpUrl", "serverUrl")
            url = visible_line(str(next((found.entry[key] for key in keys if key in found.entry), "")), 80)
            lines.append(self.tr("A server at {url}").format(url=url))
        if found.left_out:
            lines.append(self.tr("Of no use here: {fields}").format(fields=", ".join(found.left_out)))
        if found.missing:
            lines.append(self.tr("Not set at present: {names}").format(names=", ".join(found.missing)))
        self._say("muted", "\n".join(lines))
        if found.problem and self._changes is None:
            self._say("warning", self.tr("It can't be taken over as it is: {problem}.").format(problem=found.problem))

    # The trial

    def _try(self) -> None:
        try:
            name, entry, secrets = self._entered()
            definition = self._definition(name, entry)
        except AssistantError as error:
            self._tell(error)
            return
        entered = {keyring_name(name, reference): value for reference, value in secrets.items()}

        async def secret(kept: str) -> str | None:
            return entered[kept] if kept in entered else await self._core.credentials.get(self._kept_as(kept))

        self._fault.hide()
        self._trial.offer(definition, secret)
        tasks.start(self._show_trial(), on_error=self)

    async def _show_trial(self) -> None:
        await asyncio.sleep(0)  # Qt lays out what is new in its next pass
        self._area.ensureWidgetVisible(self._trial)

    def _definition(self, name: str, entry: Entry) -> ServerDefinition:
        """What would be connected to. Raises AssistantError."""
        return self._core.workspace.checked(name, entry, self._file)

    def _kept_as(self, secret: str) -> str:
        """Where the keyring has a secret of this server: each file's servers have their own."""
        return secret_name(self._core.workspace.owner_of(self._file), secret)

    # Saving

    def _save(self) -> None:
        if len(self._parsed) > 1:
            tasks.start(self._review(), on_error=self)
            return
        self.setEnabled(False)
        tasks.start(self._write(), on_error=self)

    async def _review(self) -> None:
        source = Source(None, "", (Group("", tuple(self._parsed)),))
        wizard = ImportWizard(self._core, self, source)
        if await tasks.opened(wizard):
            self.saved = wizard.saved
            self.accept()

    async def _write(self) -> None:
        try:
            name, entry, secrets = self._entered()
            replace = self._changes is not None
            await asyncio.to_thread(servers_file.add_server, self._file, name, entry, replace=replace)
        except AssistantError as error:
            self.setEnabled(True)
            self._tell(error)
            return
        # Only now: what could not be written leaves no secret behind.
        kept = [
            await self._core.credentials.set(self._kept_as(keyring_name(name, reference)), value)
            for reference, value in secrets.items()
        ]
        if not all(kept):
            error = AssistantError("credential_store_unavailable", operation="storage")
            error_box.report(error, self.parentWidget())
        try:
            await self._keep_consent(name, entry)
        except AssistantError as error:
            error_box.report(error, self.parentWidget())
        self._trial.stop()
        self.saved = name
        self.accept()

    async def _keep_consent(self, name: str, entry: Entry) -> None:
        """What was allowed for a trial is allowed from now on, as long as it is the same to the last character."""
        tried = self._trial.allowed
        if tried is not None and tried == self._definition(name, entry):
            await self._core.reload_servers()
            await self._core.host.give_consent(name)

    def _tell(self, error: AssistantError) -> None:
        words = messages.words(error.diagnostic)
        self._fault.setText(words.detail)
        self._fault.show()

    def _entered(self) -> tuple[str, Entry, dict[str, str]]:
        """Name and entry as they are to be written, and the secrets that are to be kept for them."""
        name = self._name.text().strip()
        [found] = self._parsed
        entry = {key: value for key, value in self._old.items() if key not in _FIELDS} | found.entry
        if found.problem and self._changes is None:
            raise AssistantError.of(Invalid(found.problem).diagnostic(name))
        is_program = "command" in entry
        if is_program == ("command" in self._old) and "type" in self._old:
            entry["type"] = self._old["type"]
        for key in ("env", "headers", "description"):
            entry.pop(key, None)
        if description := self._description.text().strip():
            entry["description"] = description
        values, secrets = self._values.values()
        if values:
            entry["env" if is_program else "headers"] = values
        return name, entry, secrets

    def done(self, result: int) -> None:
        self._trial.stop()
        super().done(result)


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
