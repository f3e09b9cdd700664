"""The fields of a form: one widget for each kind of value that a JSON schema describes. Used by ``tool_form.py``.

Add a kind: a subclass of `Field` and a line in `make_field`.
"""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from desktop.ui import theme
from desktop.ui.dialogs.form_controls import Lines, Options
from desktop.ui.dialogs.form_schema import LONGEST_NUMBER, MISSING, as_json, limit_of, number_in, resolved, same, shown
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

#: Options of a list to choose from; more are typed.
_MOST_OPTIONS = 300


class FieldError(Exception):
    """What is entered can't be taken; says why, in the person's language."""


class Field(QWidget):
    """A label, a control, what the server says of it, and what is wrong with what is entered.

    Attributes:
        required: A value must be entered.

    Signals:
        submitted: Enter was pressed.
    """

    submitted = Signal()

    def __init__(self, name: str, schema: dict[str, Any], *, required: bool, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.required = required
        self._schema = schema
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.SPACING // 2)
        title = schema.get("title")
        self.label = visible_line(title if isinstance(title, str) and title.strip() else name, 80)
        if name:
            head = QHBoxLayout()
            head.setSpacing(theme.SPACING // 2)
            head.addWidget(PlainLabel(self.label, bold=True, wrap=False))
            if required:
                head.addWidget(PlainLabel("*", tone="error", wrap=False))
            head.addWidget(PlainLabel(self.kind(), tone="muted", wrap=False))
            head.addStretch()
            self._column.addLayout(head)
        description = schema.get("description")
        if isinstance(description, str) and description.strip():
            self._column.addWidget(PlainLabel(visible_line(description, 400), tone="muted"))
        self._fault = PlainLabel(tone="error")
        self._fault.hide()

    def kind(self) -> str:
        """What is to be entered, in a few words."""
        return ""

    def value(self) -> Any:
        """What is entered, or `MISSING`. Raises FieldError."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Shows a value, or nothing for `MISSING`."""
        raise NotImplementedError

    def is_empty(self) -> bool:
        try:
            return self.value() is MISSING
        except FieldError:
            return True

    def say(self, fault: str) -> None:
        self._fault.setText(fault)
        self._fault.setVisible(bool(fault))

    def _take(self, control: QWidget) -> None:
        """Puts the control in its place, names it for screen readers, and shows the schema's default."""
        control.setAccessibleName(f"{self.label}{', ' + tr('required') if self.required else ''}")
        control.setAccessibleDescription(visible_line(str(self._schema.get("description") or ""), 400))
        self.setFocusProxy(control)
        self._column.addWidget(control)
        self._column.addWidget(self._fault)
        if "default" in self._schema:
            self.set_value(self._schema["default"])

    def _nothing(self) -> Any:
        if self.required:
            raise FieldError(tr("Enter a value."))
        return MISSING


class TextField(Field):
    """Text of one or several lines."""

    def __init__(self, name: str, schema: dict[str, Any], *, required: bool, parent: QWidget | None) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        self._edit = Lines(self)
        self._edit.submitted.connect(self.submitted)
        self._take(self._edit)

    def kind(self) -> str:
        format_ = self._schema.get("format")
        return visible_line(format_, 40) if isinstance(format_, str) else ""

    def value(self) -> Any:
        text = self._edit.toPlainText()
        if not text:
            return self._nothing()
        shortest, longest = limit_of(self._schema, "minLength"), limit_of(self._schema, "maxLength")
        if shortest is not None and len(text) < shortest:
            raise FieldError(tr("Enter at least {count} characters.").format(count=shown(shortest)))
        if longest is not None and len(text) > longest:
            raise FieldError(tr("Enter at most {count} characters.").format(count=shown(longest)))
        return text

    def set_value(self, value: Any) -> None:
        self._edit.setPlainText("" if value is MISSING else value if isinstance(value, str) else as_json(value))


class NumberField(Field):
    """An integer of any size, or a number."""

    def __init__(self, name: str, schema: dict[str, Any], *, required: bool, parent: QWidget | None) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        self._edit = QLineEdit(self)
        self._edit.setMaxLength(LONGEST_NUMBER)
        self._edit.returnPressed.connect(self.submitted)
        self._take(self._edit)

    def kind(self) -> str:
        kind = tr("whole number") if self._is_integer() else tr("number")
        low, high = limit_of(self._schema, "minimum"), limit_of(self._schema, "maximum")
        if low is not None and high is not None:
            return f"{kind}, {shown(low)} – {shown(high)}"
        if low is not None:
            return f"{kind}, ≥ {shown(low)}"
        return f"{kind}, ≤ {shown(high)}" if high is not None else kind

    def value(self) -> Any:
        text = self._edit.text().strip()
        if not text:
            return self._nothing()
        number = number_in(text)
        if number is None or (self._is_integer() and not isinstance(number, int)):
            raise FieldError(tr("Enter a whole number.") if self._is_integer() else tr("Enter a number."))
        for keyword, breaks, said in (
            ("minimum", lambda limit: number < limit, tr("Enter {limit} or more.")),
            ("maximum", lambda limit: number > limit, tr("Enter {limit} or less.")),
            ("exclusiveMinimum", lambda limit: number <= limit, tr("Enter more than {limit}.")),
            ("exclusiveMaximum", lambda limit: number >= limit, tr("Enter less than {limit}.")),
        ):
            limit = limit_of(self._schema, keyword)
            if limit is not None and breaks(limit):
                raise FieldError(said.format(limit=shown(limit)))
        return number

    def set_value(self, value: Any) -> None:
        self._edit.setText("" if value is MISSING else shown(value))

    def _is_integer(self) -> bool:
        return self._schema.get("type") == "integer"


class OptionField(Field):
    """One of a few values; an optional one may be left out."""

    def __init__(
        self, name: str, schema: dict[str, Any], options: list[Any], *, required: bool, parent: QWidget | None
    ) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        self._options: list[Any] = [*([] if required else [MISSING]), *options]
        self._box = Options(self)
        for option in self._options:
            self._box.addItem(tr("(not set)") if option is MISSING else self._named(option))
        if required and len(options) != 1:
            self._box.setCurrentIndex(-1)
        self._take(self._box)

    def value(self) -> Any:
        index = self._box.currentIndex()
        if index < 0:
            raise FieldError(tr("Choose a value."))
        return self._options[index]

    def set_value(self, value: Any) -> None:
        found = (index for index, option in enumerate(self._options) if option is value or same(option, value))
        self._box.setCurrentIndex(next(found, -1))

    def _named(self, option: Any) -> str:
        if isinstance(option, bool):
            return tr("Yes") if option else tr("No")
        return visible_line(option if isinstance(option, str) else as_json(option), 200)


class BooleanField(Field):
    """Yes or no, where one of them is needed or the default."""

    def __init__(self, name: str, schema: dict[str, Any], *, required: bool, parent: QWidget | None) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        self._box = QCheckBox(tr("Yes"), self)
        self._take(self._box)

    def value(self) -> Any:
        return self._box.isChecked()

    def set_value(self, value: Any) -> None:
        self._box.setChecked(value is True)


class ListField(Field):
    """Simple values, one a line."""

    def __init__(
        self, name: str, schema: dict[str, Any], items: dict[str, Any], *, required: bool, parent: QWidget | None
    ) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        self._items = items
        self._edit = Lines(self, enter_submits=False)
        self._edit.submitted.connect(self.submitted)
        self._take(self._edit)

    def kind(self) -> str:
        return tr("one a line")

    def value(self) -> Any:
        lines = [line for line in self._edit.toPlainText().split("\n") if line.strip()]
        if not lines:
            if not self.required:
                return MISSING
            if limit_of(self._schema, "minItems"):
                raise FieldError(tr("Enter a value."))
        return [self._item(line, number) for number, line in enumerate(lines, 1)]

    def set_value(self, value: Any) -> None:
        values = value if isinstance(value, list) else [] if value is MISSING else [value]
        self._edit.setPlainText("\n".join(each if isinstance(each, str) else as_json(each) for each in values))

    def _item(self, line: str, number: int) -> Any:
        match self._items.get("type"):
            case "integer" | "number" as type_:
                value = number_in(line.strip())
                if value is None or (type_ == "integer" and not isinstance(value, int)):
                    raise FieldError(tr("Line {number} is no number.").format(number=number))
            case "boolean":
                value = {"true": True, "false": False}.get(line.strip().lower())
                if value is None:
                    raise FieldError(tr("Line {number} is neither true nor false.").format(number=number))
            case _:
                value = line
        options = self._items.get("enum")
        if isinstance(options, list) and value not in options:
            raise FieldError(tr("Line {number} is none of the values that can be chosen.").format(number=number))
        return value


class GroupField(Field):
    """An object of simple fields."""

    def __init__(
        self, name: str, schema: dict[str, Any], root: dict[str, Any], *, required: bool, parent: QWidget | None
    ) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        listed = schema.get("required")
        needed = listed if isinstance(listed, list) else []
        group = QWidget(self)
        column = QVBoxLayout(group)
        column.setContentsMargins(2 * theme.SPACING, 0, 0, 0)
        column.setSpacing(theme.SPACING)
        self._fields: dict[str, Field] = {}
        for each, sub in schema["properties"].items():
            self._fields[each] = make_field(each, sub, root, required=each in needed, parent=group, nested=True)
            self._fields[each].submitted.connect(self.submitted)
            column.addWidget(self._fields[each])
        self._others: dict[str, Any] = {}
        self._take(group)
        if self._fields:
            self.setFocusProxy(next(iter(self._fields.values())))

    def value(self) -> Any:
        values = dict(self._others)
        wrong = ""
        left_out = not self.required and all(field.is_empty() for field in self._fields.values())
        for name, field in self._fields.items():
            field.say("")
            try:
                value = field.value()
            except FieldError as error:
                if not left_out:
                    field.say(str(error))
                    wrong = wrong or tr("Something is missing above.")
                continue
            if value is not MISSING:
                values[name] = value
        if wrong:
            raise FieldError(wrong)
        return values if values or self.required else MISSING

    def set_value(self, value: Any) -> None:
        values = value if isinstance(value, dict) else {}
        self._others = {name: each for name, each in values.items() if name not in self._fields}
        for name, field in self._fields.items():
            field.set_value(values.get(name, MISSING))


class JsonField(Field):
    """Whatever has no field of its own, as JSON."""

    def __init__(self, name: str, schema: dict[str, Any], *, required: bool, parent: QWidget | None) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        self._edit = Lines(self, enter_submits=False, fixed=True)
        self._edit.submitted.connect(self.submitted)
        self._take(self._edit)

    def kind(self) -> str:
        return "JSON"

    def value(self) -> Any:
        text = self._edit.toPlainText()
        if not text.strip():
            return self._nothing()
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            said = tr("This is no valid JSON: look at line {line}, column {column}.")
            raise FieldError(said.format(line=error.lineno, column=error.colno)) from error
        except (ValueError, RecursionError) as error:
            raise FieldError(tr("This is no valid JSON.")) from error
        if self._schema.get("type") == "object" and not isinstance(value, dict):
            raise FieldError(tr("An object in braces is needed here."))
        return value

    def set_value(self, value: Any) -> None:
        self._edit.setPlainText("" if value is MISSING else json.dumps(value, indent=2, ensure_ascii=False))


def make_field(
    name: str, schema: Any, root: dict[str, Any], *, required: bool, parent: QWidget, nested: bool = False
) -> Field:
    """The field for a property; `root` is the schema that its references lead into."""
    said = resolved(schema, root)
    options = said.get("enum") if "const" not in said else [said["const"]]
    if isinstance(options, list) and 0 < len(options) <= _MOST_OPTIONS:
        return OptionField(name, said, options, required=required, parent=parent)
    match said.get("type"):
        case "string":
            return TextField(name, said, required=required, parent=parent)
        case "integer" | "number":
            return NumberField(name, said, required=required, parent=parent)
        case "boolean" if required or isinstance(said.get("default"), bool):
            return BooleanField(name, said, required=required, parent=parent)
        case "boolean":
            return OptionField(name, said, [True, False], required=required, parent=parent)
        case "array":
            items = resolved(said.get("items"), root)
            if items.get("type") in ("string", "integer", "number", "boolean"):
                return ListField(name, said, items, required=required, parent=parent)
        case "object":
            if not nested and isinstance(said.get("properties"), dict) and 0 < len(said["properties"]) <= 20:
                return GroupField(name, said, root, required=required, parent=parent)
    return JsonField(name, said, required=required, parent=parent)
