"""The fields of a form: one widget for each kind of value that a JSON schema describes. Used by ``tool_form.py``.

Add a kind: a subclass of `Field` and a line in `make_field`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFontDatabase, QKeyEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QStyle,
    QStyleOptionFrame,
    QVBoxLayout,
    QWidget,
)

from desktop.ui import theme
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

MISSING: Final = object()
"""Instead of a value: nothing is entered, and nothing will be sent."""

#: Options of a list to choose from; more are typed.
_MOST_OPTIONS = 300
#: References followed to find what a schema says.
_MOST_REFERENCES = 16
#: Lines of a text shown at once; more scroll.
_MOST_LINES = 12
#: Digits of a number.
_LONGEST_NUMBER = 400
_INTEGER = re.compile(r"[+-]?[0-9]+")


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
        self._edit = _Lines(self)
        self._edit.submitted.connect(self.submitted)
        self._take(self._edit)

    def kind(self) -> str:
        format_ = self._schema.get("format")
        return visible_line(format_, 40) if isinstance(format_, str) else ""

    def value(self) -> Any:
        text = self._edit.toPlainText()
        if not text:
            return self._nothing()
        shortest, longest = _limit(self._schema, "minLength"), _limit(self._schema, "maxLength")
        if shortest is not None and len(text) < shortest:
            raise FieldError(tr("Enter at least {count} characters.").format(count=_shown(shortest)))
        if longest is not None and len(text) > longest:
            raise FieldError(tr("Enter at most {count} characters.").format(count=_shown(longest)))
        return text

    def set_value(self, value: Any) -> None:
        self._edit.setPlainText("" if value is MISSING else value if isinstance(value, str) else _json(value))


class NumberField(Field):
    """An integer of any size, or a number."""

    def __init__(self, name: str, schema: dict[str, Any], *, required: bool, parent: QWidget | None) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        self._edit = QLineEdit(self)
        self._edit.setMaxLength(_LONGEST_NUMBER)
        self._edit.returnPressed.connect(self.submitted)
        self._take(self._edit)

    def kind(self) -> str:
        kind = tr("whole number") if self._is_integer() else tr("number")
        low, high = _limit(self._schema, "minimum"), _limit(self._schema, "maximum")
        if low is not None and high is not None:
            return f"{kind}, {_shown(low)} – {_shown(high)}"
        if low is not None:
            return f"{kind}, ≥ {_shown(low)}"
        return f"{kind}, ≤ {_shown(high)}" if high is not None else kind

    def value(self) -> Any:
        text = self._edit.text().strip()
        if not text:
            return self._nothing()
        number = _number(text)
        if number is None or (self._is_integer() and not isinstance(number, int)):
            raise FieldError(tr("Enter a whole number.") if self._is_integer() else tr("Enter a number."))
        for keyword, breaks, said in (
            ("minimum", lambda limit: number < limit, tr("Enter {limit} or more.")),
            ("maximum", lambda limit: number > limit, tr("Enter {limit} or less.")),
            ("exclusiveMinimum", lambda limit: number <= limit, tr("Enter more than {limit}.")),
            ("exclusiveMaximum", lambda limit: number >= limit, tr("Enter less than {limit}.")),
        ):
            limit = _limit(self._schema, keyword)
            if limit is not None and breaks(limit):
                raise FieldError(said.format(limit=_shown(limit)))
        return number

    def set_value(self, value: Any) -> None:
        self._edit.setText("" if value is MISSING else _shown(value))

    def _is_integer(self) -> bool:
        return self._schema.get("type") == "integer"


class OptionField(Field):
    """One of a few values; an optional one may be left out."""

    def __init__(
        self, name: str, schema: dict[str, Any], options: list[Any], *, required: bool, parent: QWidget | None
    ) -> None:
        super().__init__(name, schema, required=required, parent=parent)
        self._options: list[Any] = [*([] if required else [MISSING]), *options]
        self._box = _Options(self)
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
        found = (index for index, option in enumerate(self._options) if option is value or _same(option, value))
        self._box.setCurrentIndex(next(found, -1))

    def _named(self, option: Any) -> str:
        if isinstance(option, bool):
            return tr("Yes") if option else tr("No")
        return visible_line(option if isinstance(option, str) else _json(option), 200)


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
        self._edit = _Lines(self, enter_submits=False)
        self._edit.submitted.connect(self.submitted)
        self._take(self._edit)

    def kind(self) -> str:
        return tr("one a line")

    def value(self) -> Any:
        lines = [line for line in self._edit.toPlainText().split("\n") if line.strip()]
        if not lines:
            if not self.required:
                return MISSING
            if _limit(self._schema, "minItems"):
                raise FieldError(tr("Enter a value."))
        return [self._item(line, number) for number, line in enumerate(lines, 1)]

    def set_value(self, value: Any) -> None:
        values = value if isinstance(value, list) else [] if value is MISSING else [value]
        self._edit.setPlainText("\n".join(each if isinstance(each, str) else _json(each) for each in values))

    def _item(self, line: str, number: int) -> Any:
        match self._items.get("type"):
            case "integer" | "number" as type_:
                value = _number(line.strip())
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
        self._edit = _Lines(self, enter_submits=False, fixed=True)
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
    said = _resolved(schema, root)
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
            items = _resolved(said.get("items"), root)
            if items.get("type") in ("string", "integer", "number", "boolean"):
                return ListField(name, said, items, required=required, parent=parent)
        case "object":
            if not nested and isinstance(said.get("properties"), dict) and 0 < len(said["properties"]) <= 20:
                return GroupField(name, said, root, required=required, parent=parent)
    return JsonField(name, said, required=required, parent=parent)


def _resolved(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """What a schema says itself: local references followed, "or null" taken for optional."""
    said: dict[str, Any] = {}
    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, dict):
            return said
        said = {**schema, **{name: said[name] for name in ("title", "description", "default") if name in said}}
        reference = said.pop("$ref", None)
        if isinstance(reference, str):
            schema = _local(reference, root)
            continue
        forms = next((said[each] for each in ("anyOf", "oneOf", "allOf") if isinstance(said.get(each), list)), [])
        forms = [form for form in forms if not (isinstance(form, dict) and form.get("type") == "null")]
        if len(forms) == 1 and "type" not in said:
            schema = forms[0]
            continue
        if forms and all(isinstance(form, dict) and "const" in form for form in forms):
            return said | {"enum": [form["const"] for form in forms]}
        if isinstance(said.get("type"), list):
            types = [each for each in said["type"] if each != "null"]
            said["type"] = types[0] if len(types) == 1 else None
        if said.get("default", MISSING) is None:
            del said["default"]
        return said
    return {}


def _local(reference: str, root: dict[str, Any]) -> Any:
    if not reference.startswith("#/"):
        return {}
    place: Any = root
    for part in reference[2:].split("/"):
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
    return place


def _limit(schema: dict[str, Any], keyword: str) -> int | float | None:
    limit = schema.get(keyword)
    return limit if isinstance(limit, int | float) and not isinstance(limit, bool) else None


def _number(text: str) -> int | float | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is not true."""
    return type(one) is type(other) and one == other


def _shown(value: Any) -> str:
    return visible_line(value if isinstance(value, str) else _json(value), _LONGEST_NUMBER)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Lines(QPlainTextEdit):
    """Text that grows with its lines, in the frame of a line edit. Enter submits and Shift+Enter begins a line, or Ctrl+Enter
    submits; Tab goes on.
    """

    submitted = Signal()

    def __init__(self, parent: QWidget, *, enter_submits: bool = True, fixed: bool = False) -> None:
        super().__init__(parent)
        self._enter_submits = enter_submits
        self._fewest = 1 if enter_submits else 3
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setViewportMargins(2, 2, 2, 2)
        self.viewport().setAutoFillBackground(False)
        if fixed:
            self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        wanted = round(self.document().size().height())
        lines = min(_MOST_LINES, max(self._fewest, wanted))
        bars = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(bars.ScrollBarAsNeeded if wanted > lines else bars.ScrollBarAlwaysOff)
        height = lines * self.fontMetrics().lineSpacing() + 2 * int(self.document().documentMargin()) + 4
        if height != self.minimumHeight():
            self.setFixedHeight(height)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:  # of the widget itself, around the viewport
            option = QStyleOptionFrame()
            option.initFrom(self)
            option.lineWidth = 1  # type: ignore[assignment]
            option.state |= QStyle.StateFlag.State_Sunken  # type: ignore[assignment, operator]
            painter = QPainter(self)
            self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
            painter.end()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            plain = modifiers == Qt.KeyboardModifier.NoModifier
            if modifiers == Qt.KeyboardModifier.ControlModifier or (plain and self._enter_submits):
                self.submitted.emit()
                return
        if event.key() == Qt.Key.Key_Escape:
            event.ignore()
            return
        super().keyPressEvent(event)


class _Options(QComboBox):
    """A list that the wheel changes only while it has the focus: a form scrolls under the pointer."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(12)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
