"""Adding a server from a bundle: what it says of itself, what it asks for, and the command that it would be started with.

Opened by the import. It is unpacked only when the person adds it; nothing of it is started then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from desktop.errors import AssistantError
from desktop.host import servers_file
from desktop.host.bundle import Bundle, Option, Value
from desktop.host.pasted_text import command_line
from desktop.host.server_references import keyring_name
from desktop.ui import error_box, messages, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.dialogs.form_fields import Field, FieldError, make_field
from desktop.ui.dialogs.form_schema import MISSING
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible, visible_line

if TYPE_CHECKING:
    from desktop.core import Core


class BundleDialog(QDialog):
    """Accepted when the server has been written.

    Attributes:
        saved: Its name.
    """

    def __init__(self, core: Core, parent: QWidget, bundle: Bundle) -> None:
        super().__init__(parent)
        self._core = core
        self._bundle = bundle
        self.saved = ""
        self.setWindowTitle(self.tr("Add a server from a bundle"))
        content = QWidget()
        form = QVBoxLayout(content)
        form.setContentsMargins(0, 0, theme.SPACING, 0)
        form.setSpacing(theme.SPACING)
        form.addWidget(PlainLabel(f"\u2068{visible_line(bundle.title, 120)}\u2069", bold=True, scale=1.1))
        said = self.tr("Version {version}, by {author}").format(
            version=visible_line(bundle.version, 40) or "–", author=visible_line(bundle.author, 80) or "–"
        )
        form.addWidget(PlainLabel(said, tone="muted"))
        if bundle.description:
            form.addWidget(PlainLabel(f"\u2068{visible_line(bundle.description, 600)}\u2069"))
        warning = self.tr(
            "A bundle is a program that would run on your computer. It can do there whatever you can do. "
            "Add it only if you trust where it comes from."
        )
        form.addWidget(PlainLabel(warning, tone="warning"))
        command = command_line(dict(bundle.command))
        form.addWidget(FixedText(visible(command), self.tr("Command"), most_lines=8))
        self.name = QLineEdit(bundle.name.replace(".", "-"))
        self.name.setAccessibleName(self.tr("Name"))
        form.addWidget(PlainLabel(self.tr("Name"), bold=True))
        form.addWidget(self.name)
        self._fields: dict[str, Field | QLineEdit] = {}
        for option in bundle.options:
            self._add_field(option, content, form)
        form.addStretch(1)
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # it follows the field that has the focus
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(content)
        self._fault = PlainLabel(tone="error", selectable=True)
        self._fault.hide()
        buttons = QDialogButtonBox()
        add = PrimaryButton(self.tr("Unpack and add"))
        add.setAutoDefault(False)
        buttons.addButton(add, QDialogButtonBox.ButtonRole.AcceptRole)
        cancel = buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        cancel.setDefault(True)
        buttons.accepted.connect(self._save)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(area, 1)
        layout.addWidget(self._fault)
        layout.addWidget(buttons)
        self.resize(560, 560)
        self.name.setFocus()

    def _add_field(self, option: Option, content: QWidget, form: QVBoxLayout) -> None:
        if option.sensitive:  # goes to the keyring and is never shown
            said = visible_line(option.title, 80)
            form.addWidget(PlainLabel(f"{said} *" if option.required else said, bold=True))
            if option.description:
                form.addWidget(PlainLabel(visible_line(option.description, 400), tone="muted"))
            field = QLineEdit()
            field.setEchoMode(QLineEdit.EchoMode.Password)
            field.setPlaceholderText(self.tr("Kept in the keyring"))
            field.setAccessibleName(said)
            form.addWidget(field)
            self._fields[option.name] = field
            return
        kinds: dict[str, dict[str, Any]] = {"number": {"type": "number"}, "boolean": {"type": "boolean"}}
        schema = kinds.get(option.kind, {"type": "string"})
        if option.multiple:
            schema = {"type": "array", "items": schema}
        schema = {**schema, "title": option.title, "description": option.description}
        if option.default is not None:
            schema["default"] = option.default
        made = make_field(option.name, schema, schema, required=option.required, parent=content)
        self._fields[option.name] = made
        form.addWidget(made)

    def _values(self) -> dict[str, Value]:
        """What was entered. Raises FieldError, after it has said at the field what is wrong."""
        values: dict[str, Value] = {}
        for option in self._bundle.options:
            field = self._fields[option.name]
            if isinstance(field, QLineEdit):
                if not field.text() and option.required:
                    field.setFocus()
                    raise FieldError(self.tr("{name} is missing.").format(name=visible_line(option.title, 80)))
                values[option.name] = field.text()
                continue
            field.say("")
            try:
                value = field.value()
            except FieldError as error:
                field.say(str(error))
                field.setFocus()
                raise FieldError(self.tr("Something is missing above.")) from None
            if value is not MISSING:
                values[option.name] = value
        return values

    def _save(self) -> None:
        try:
            values = self._values()
        except FieldError as error:
            self._say(str(error))
            return
        self.setEnabled(False)
        tasks.start(self._write(values), on_error=self)

    async def _write(self, values: dict[str, Value]) -> None:
        name, file, data = self.name.text().strip(), self._core.servers_file, self._core.paths.data
        try:
            entry, secrets = self._bundle.entry(values, self._bundle.folder(data))
            await asyncio.to_thread(servers_file.check_new, file, name, entry)
            await asyncio.to_thread(self._bundle.unpack, data)
            await asyncio.to_thread(servers_file.add_server, file, name, entry)
        except AssistantError as error:
            self.setEnabled(True)
            words = messages.words(error.diagnostic)
            self._say(" ".join(filter(None, (words.detail, words.remedy))))
            return
        kept = [await self._core.credentials.set(keyring_name(name, each), value) for each, value in secrets.items()]
        if not all(kept):
            error = AssistantError("credential_store_unavailable", operation="storage")
            error_box.report(error, self.parentWidget())
        self.saved = name
        self.accept()

    def _say(self, text: str) -> None:
        self._fault.setText(text)
        self._fault.show()
