"""The fields of a form that a server asks the person to fill in. Used by ``question_dialogs.py``.

What fits is decided by ``host/elicitation_form.py`` alone; here is how it is entered and what is said of what doesn't fit.
"""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from desktop.host.elicitation_form import LONGEST_TEXT, Fault, FormField, Value
from desktop.ui import theme
from desktop.ui.chat.widgets import button_text
from desktop.ui.dialogs.form_controls import Options
from desktop.ui.dialogs.form_schema import LONGEST_NUMBER, number_in, shown
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line


class QuestionField(QWidget):
    """A label, a control, what the server says of it, and what is wrong with what is entered.

    Signals:
        submitted: Enter was pressed.
    """

    submitted = Signal()

    def __init__(self, field: FormField, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = field
        self.label = visible_line(field.title or field.name, 120)
        self._fault = PlainLabel(tone="error")
        self._fault.hide()
        head = QHBoxLayout()
        head.setSpacing(theme.SPACING // 2)
        head.addWidget(PlainLabel(self.label, bold=True))
        if field.required:
            head.addWidget(PlainLabel("*", tone="error", wrap=False))
        if said := _kind(field):
            head.addWidget(PlainLabel(said, tone="muted", wrap=False))
        head.addStretch()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACING // 2)
        column.addLayout(head)
        if field.description:
            column.addWidget(PlainLabel(visible_line(field.description, 400), tone="muted"))
        if field.looks_secret:
            warning = tr("This looks like a secret. A server that you trust doesn't ask for it in a form.")
            column.addWidget(PlainLabel(warning, tone="warning"))
        control = self._make_control()
        control.setAccessibleName(tr("{name}, required").format(name=self.label) if field.required else self.label)
        control.setAccessibleDescription(visible_line(field.description, 400))
        self.setFocusProxy(control)
        column.addWidget(control)
        column.addWidget(self._fault)

    def value(self) -> Value | None:
        """What is entered; None for nothing. What can't be read is given as it is: it will not fit."""
        raise NotImplementedError

    def say(self, fault: Fault | None) -> None:
        self._fault.setText(words(fault) if fault is not None else "")
        self._fault.setVisible(fault is not None)

    def _make_control(self) -> QWidget:
        raise NotImplementedError


class _Text(QuestionField):
    def _make_control(self) -> QWidget:
        self._edit = QLineEdit()
        self._edit.setMaxLength(2 * LONGEST_TEXT)
        self._edit.returnPressed.connect(self.submitted)
        if isinstance(self.field.default, str):
            self._edit.setText(self.field.default)
        return self._edit

    def value(self) -> Value | None:
        text = self._edit.text()
        # An empty text is a value where one is required and the person has emptied it; else it is none.
        return text if text or (self.field.required and self._edit.isModified()) else None


class _Number(QuestionField):
    def _make_control(self) -> QWidget:
        self._edit = QLineEdit()
        self._edit.setMaxLength(LONGEST_NUMBER)
        self._edit.returnPressed.connect(self.submitted)
        if self.field.default is not None:
            self._edit.setText(shown(self.field.default))
        return self._edit

    def value(self) -> Value | None:
        text = self._edit.text().strip()
        if not text:
            return None
        number = number_in(text)
        return text if number is None else number


class _Choice(QuestionField):
    """One of several; also yes or no."""

    def _make_control(self) -> QWidget:
        field = self.field
        if field.kind == "boolean":
            options: list[tuple[str, Value]] = [(tr("Yes"), True), (tr("No"), False)]
        else:
            options = [(visible_line(option.title, 200) or option.value, option.value) for option in field.options]
        self._values: list[Value | None] = [*([] if field.required else [None]), *(value for _, value in options)]
        self._box = Options(self)
        for text in [*([] if field.required else [tr("(not set)")]), *(text for text, _ in options)]:
            self._box.addItem(text)
        self._box.setCurrentIndex(self._values.index(field.default) if field.default in self._values else -1)
        return self._box

    def value(self) -> Value | None:
        index = self._box.currentIndex()
        return self._values[index] if index >= 0 else None


class _Choices(QuestionField):
    def _make_control(self) -> QWidget:
        group = QWidget()
        column = QVBoxLayout(group)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACING // 2)
        chosen = self.field.default if isinstance(self.field.default, list) else []
        self._boxes: list[QCheckBox] = []
        for option in self.field.options:
            box = QCheckBox(button_text(visible_line(option.title, 200) or option.value))
            box.setChecked(option.value in chosen)
            column.addWidget(box)
            self._boxes.append(box)
        group.setFocusProxy(self._boxes[0])
        return group

    def value(self) -> Value | None:
        chosen = [option.value for option, box in zip(self.field.options, self._boxes, strict=True) if box.isChecked()]
        return chosen if chosen or self.field.required else None


def make_field(field: FormField) -> QuestionField:
    kinds: dict[str, type[QuestionField]] = {"text": _Text, "number": _Number, "integer": _Number, "choices": _Choices}
    return kinds.get(field.kind, _Choice)(field)


def words(fault: Fault) -> str:
    """What to do about an answer that doesn't fit."""
    limit = shown(cast("int | float", fault.limit)) if fault.limit is not None else ""
    return {
        "missing": tr("Enter or choose a value."),
        "no_text": tr("Enter a text."),
        "no_number": tr("Enter a number."),
        "no_integer": tr("Enter a whole number."),
        "too_small": tr("Enter {limit} or more."),
        "too_large": tr("Enter {limit} or less."),
        "too_short": tr("Enter at least {limit} characters."),
        "too_long": tr("Enter at most {limit} characters."),
        "no_email": tr("Enter an e-mail address."),
        "no_uri": tr("Enter a whole address, such as https://example.org."),
        "no_date": tr("Enter a day as YYYY-MM-DD."),
        "no_date_time": tr("Enter a day and a time with its zone, such as 2027-01-31T09:30:00Z."),
        "no_choice": tr("Choose of what is offered."),
        "too_few": tr("Choose at least {limit}."),
        "too_many": tr("Choose at most {limit}."),
    }[fault.code].format(limit=limit)


def _kind(field: FormField) -> str:
    """What is to be entered, in a few words."""
    if field.kind == "text":
        return {"email": tr("e-mail"), "uri": tr("address"), "date": "YYYY-MM-DD", "date-time": tr("day and time")}.get(
            field.format, ""
        )
    if field.kind not in ("number", "integer"):
        return ""
    kind = tr("whole number") if field.kind == "integer" else tr("number")
    if field.low is not None and field.high is not None:
        return f"{kind}, {shown(field.low)} – {shown(field.high)}"
    if field.low is not None:
        return f"{kind}, ≥ {shown(field.low)}"
    return f"{kind}, ≤ {shown(field.high)}" if field.high is not None else kind
