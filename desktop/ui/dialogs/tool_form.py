"""A form from a tool's JSON schema: Guide's question card asks with it, the catalog runs a tool with it.

What has no control of its own (deep objects, mixed types) is edited as JSON; so can the whole form be. The schema is a server's:
its texts are shown as plain text, the form is bounded, and what is entered is checked by ``tool_arguments``, which bounds the
cost of that.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop.assistant import tool_arguments
from desktop.errors import AssistantError
from desktop.ui import messages, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.dialogs.form_fields import Field, FieldError, JsonField, make_field
from desktop.ui.dialogs.form_schema import MISSING
from desktop.ui.labels import PlainLabel

#: Fields; a schema with more is edited as JSON.
_MOST_FIELDS = 100


class ToolForm(QWidget):
    """Signals:
    submitted(object): The arguments, a dictionary that fits the schema. The form stays as it is.
    abandoned: The person gives up.
    """

    submitted = Signal(object)
    abandoned = Signal()

    def __init__(
        self,
        schema: dict[str, Any],
        values: dict[str, Any],
        *,
        submit: str,
        abandon: str,
        parent: QWidget | None = None,
    ) -> None:
        """`values` are what is known already; `submit` and `abandon` are the texts of the buttons."""
        super().__init__(parent)
        self._schema = schema
        self._others: dict[str, Any] = {}  # known values that the schema does not list
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else None
        self._in_fields = properties is not None and len(properties) <= _MOST_FIELDS
        self._fields = self._make_fields(properties or {}) if self._in_fields else {}
        self._json = JsonField("", {"type": "object"}, required=True, parent=self)
        self._json.submitted.connect(self.submit)
        self._fault = PlainLabel(tone="error")
        self._fault.hide()
        self._submit = PrimaryButton(submit)
        self._submit.setDefault(True)
        self._submit.clicked.connect(self.submit)
        cancel = QPushButton(abandon)
        cancel.clicked.connect(self.abandoned)
        self._other_way = QPushButton(self.tr("Edit as JSON"))
        self._other_way.clicked.connect(self._edit_the_other_way)

        buttons = QHBoxLayout()
        buttons.setSpacing(theme.SPACING)
        buttons.addWidget(self._submit)
        buttons.addWidget(cancel)
        buttons.addStretch()
        buttons.addWidget(self._other_way)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2 * theme.SPACING)
        for field in self._fields.values():
            layout.addWidget(field)
        if self._in_fields and not self._fields:
            layout.addWidget(PlainLabel(self.tr("The tool takes no arguments."), tone="muted"))
        layout.addWidget(self._json)
        layout.addWidget(self._fault)
        layout.addLayout(buttons)
        self._json.setVisible(not self._in_fields)  # now that it has a parent: before, it would be a window of its own
        self._other_way.setVisible(bool(self._fields))
        self._show_values(values)

    def submit(self) -> None:
        """Checks what is entered; emits `submitted`, or says at the field what is wrong."""
        values = self._entered(complain=True)
        if values is not None and self._submit.isEnabled():
            self._submit.setEnabled(False)
            tasks.start(self._check(values), on_error=self)

    def focus_first(self) -> None:
        """Puts the cursor where the first thing is to be entered."""
        fields = list(self._shown_fields().values())
        empty = [field for field in fields if field.required and field.is_empty()]
        (*empty, *fields, self._submit)[0].setFocus()

    def _make_fields(self, properties: dict[str, Any]) -> dict[str, Field]:
        """Required ones first, else in the schema's order."""
        listed = self._schema.get("required")
        required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        fields: dict[str, Field] = {}
        for name in sorted(properties, key=lambda name: name not in required):
            fields[name] = make_field(name, properties[name], self._schema, required=name in required, parent=self)
            fields[name].submitted.connect(self.submit)
        return fields

    def _shown_fields(self) -> dict[str, Field]:
        return self._fields if self._in_fields else {"": self._json}

    def _show_values(self, values: dict[str, Any]) -> None:
        """Shows what is known; a field that nothing is known of keeps its default."""
        if self._in_fields:
            self._others = {name: value for name, value in values.items() if name not in self._fields}
            for name in values.keys() & self._fields.keys():
                self._fields[name].set_value(values[name])
        else:
            self._json.set_value(values)

    def _entered(self, *, complain: bool) -> dict[str, Any] | None:
        """What is entered; None where something is not right: then its field says so. Not complaining leaves that out."""
        self._say("")
        values: dict[str, Any] = dict(self._others) if self._in_fields else {}
        wrong: list[Field] = []
        for name, field in self._shown_fields().items():
            try:
                value = field.value()
            except FieldError as error:
                if complain:
                    field.say(str(error))
                    wrong.append(field)
                continue
            field.say("")
            if value is not MISSING:
                values |= {name: value} if self._in_fields else value
        if wrong:
            wrong[0].setFocus()
            return None
        return values

    async def _check(self, values: dict[str, Any]) -> None:
        try:
            await tool_arguments.check(values, self._schema)
        except AssistantError as error:
            place = str(error.diagnostic.values.get("where", ""))
            said = messages.message(error.diagnostic)
            field = next((field for name, field in self._fields.items() if f"`{name}" in place), None)
            if field is not None and self._in_fields:
                field.say(said)
                field.setFocus()
            else:
                self._say(said)
        else:
            self.submitted.emit(values)
        finally:
            self._submit.setEnabled(True)

    def _edit_the_other_way(self) -> None:
        """Takes what is entered along; JSON that is not right has to be mended first."""
        values = self._entered(complain=not self._in_fields)
        if values is None:
            return
        self._in_fields = not self._in_fields
        self._other_way.setText(self.tr("Edit as JSON") if self._in_fields else self.tr("Edit in fields"))
        for name, field in self._fields.items():
            field.setVisible(self._in_fields)
            field.set_value(values.get(name, MISSING))
        self._json.setVisible(not self._in_fields)  # now that it has a parent: before, it would be a window of its own
        self._other_way.setVisible(bool(self._fields))
        self._show_values(values)
        self.focus_first()

    def _say(self, fault: str) -> None:
        self._fault.setText(fault)
        self._fault.setVisible(bool(fault))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.abandoned.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.submit()
        else:
            super().keyPressEvent(event)
