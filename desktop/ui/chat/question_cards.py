"""Guide's questions in the conversation: options to choose from, and a form for a tool's arguments.

A question is open while `PersonAnswers` waits for it; answered, or left by Stop, it becomes a summary of the answer.
"""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from desktop.assistant.conversation import Choice, Form
from desktop.ui import theme
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.widgets import Card, ElidedLabel, button_text, clear, plain_tool_tip
from desktop.ui.dialogs.tool_form import ToolForm
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible, visible_line

#: Options that a key chooses.
_KEYS = 9
_MOST_OPTIONS = 50
_SUMMARY_LINES = 20


class ChoiceCard(Card):
    """Options as buttons; the keys 1 to 9 choose, arrows walk, Escape chooses none."""

    def __init__(self, choice: Choice, answers: PersonAnswers, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._choice = choice
        self._answers = answers
        self.part_id = choice.id
        self._shown: tuple[bool, object] | None = None
        self._options: list[OptionButton] = []
        self._body = QVBoxLayout()
        self._body.setSpacing(0)
        question = PlainLabel(visible(choice.question[:2000]), bold=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 12, 12, 12)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(question)
        layout.addLayout(self._body)
        self.setAccessibleName(self.tr("Question: {question}").format(question=visible_line(choice.question)))
        answers.waiting_changed.connect(self.refresh)
        self.refresh()

    @property
    def is_open(self) -> bool:
        return self._shown is not None and self._shown[0]

    def refresh(self) -> None:
        shown = self._answers.waits_for(self._choice.id), self._choice.answer
        if shown != self._shown:
            self._shown = shown
            clear(self._body)
            self._options = []
            (self._show_options if shown[0] else self._show_answer)()

    def focus_question(self) -> None:
        if self._options:
            self._options[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_options(self) -> None:
        for index, option in enumerate(self._choice.options[:_MOST_OPTIONS]):
            key = str(index + 1) if index < _KEYS else ""
            self._add_option(OptionButton(option.label, option.detail, key, self), index)
        self._add_option(OptionButton(self.tr("None of these"), "", "", self), None)

    def _add_option(self, button: OptionButton, index: int | None) -> None:
        button.clicked.connect(lambda: self._answers.answer_choice(self._choice.id, index))
        self._options.append(button)
        self._body.addWidget(button)

    def _show_answer(self) -> None:
        answer = self._choice.answer
        if answer is None or not 0 <= answer < len(self._choice.options):
            self._body.addWidget(PlainLabel(self.tr("None chosen"), tone="muted"))
        else:
            self._body.addWidget(PlainLabel(f"✔ {visible_line(self._choice.options[answer].label, 400)}", tone="ok"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        number = event.key() - Qt.Key.Key_1
        if not self.is_open or not plain:
            super().keyPressEvent(event)
        elif 0 <= number < min(_KEYS, len(self._choice.options)):
            self._answers.answer_choice(self._choice.id, number)
        elif event.key() == Qt.Key.Key_Escape:
            self._answers.answer_choice(self._choice.id, None)
        elif event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            step = 1 if event.key() == Qt.Key.Key_Down else -1
            at = next((index for index, each in enumerate(self._options) if each.hasFocus()), -step)
            self._options[(at + step) % len(self._options)].setFocus(Qt.FocusReason.TabFocusReason)
        else:
            super().keyPressEvent(event)


class OptionButton(QAbstractButton):
    """A row that can be chosen: its key, a label, and a line of detail."""

    def __init__(self, label: str, detail: str, key: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._label = visible_line(label, 300)
        self._detail = visible_line(detail, 600)
        self._key = key
        self.setText(button_text(self._label))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.setAccessibleName(f"{key} {self._label}".strip())
        self.setAccessibleDescription(self._detail)
        self.setToolTip(plain_tool_tip(f"{self._label}\n{self._detail}".strip()))

    def sizeHint(self) -> QSize:
        lines = 2 if self._detail else 1
        return QSize(240, lines * self.fontMetrics().lineSpacing() + 2 * theme.SPACING)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.sizeHint().height())

    def enterEvent(self, event: Any) -> None:
        self.update()
        super().enterEvent(event)

    def leaveEvent(self, event: Any) -> None:
        self.update()
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            event.ignore()  # the card walks
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colors, palette = theme.colors(), self.palette()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isDown() or self.underMouse():
            painter.setBrush(QColor(colors.selected if self.isDown() else colors.hover))
            painter.drawRoundedRect(self.rect(), 6, 6)
        if self.hasFocus():
            painter.setPen(QPen(palette.color(QPalette.ColorRole.Highlight), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 6, 6)
        metrics = self.fontMetrics()
        line = metrics.lineSpacing()
        width = self.width()
        gutter = metrics.horizontalAdvance("0") + 3 * theme.SPACING
        right_to_left = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        text = QRect(theme.SPACING if right_to_left else gutter, theme.SPACING, width - gutter - theme.SPACING, line)
        key = QRect(width - gutter if right_to_left else 0, theme.SPACING, gutter, line)
        painter.setPen(QColor(colors.muted))
        painter.drawText(key, Qt.AlignmentFlag.AlignCenter, self._key)
        alignment = Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(
            text.translated(0, line),
            alignment,
            metrics.elidedText(self._detail, Qt.TextElideMode.ElideRight, text.width()),
        )
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        painter.drawText(text, alignment, metrics.elidedText(self._label, Qt.TextElideMode.ElideRight, text.width()))


class FormCard(Card):
    """A tool's arguments; Enter sends them, Escape gives up."""

    def __init__(self, form: Form, answers: PersonAnswers, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._form = form
        self._answers = answers
        self.part_id = form.id
        self._shown: tuple[bool, object] | None = None
        self._fields: ToolForm | None = None
        self._body = QVBoxLayout()
        self._body.setSpacing(theme.SPACING // 2)
        name = f"{visible_line(form.server, 80)} · {visible_line(form.tool, 120)}"
        title = self.tr("Arguments for {tool}").format(tool=name)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 12, 12, 12)
        layout.setSpacing(12)
        layout.addWidget(ElidedLabel(title, bold=True))
        layout.addLayout(self._body)
        self.setAccessibleName(title)
        answers.waiting_changed.connect(self.refresh)
        self.refresh()

    @property
    def is_open(self) -> bool:
        return self._shown is not None and self._shown[0]

    def refresh(self) -> None:
        shown = self._answers.waits_for(self._form.id), self._form.answer
        if shown != self._shown:
            self._shown = shown
            clear(self._body)
            self._fields = None
            (self._show_form if shown[0] else self._show_answer)()

    def focus_question(self) -> None:
        if self._fields is not None:
            self._fields.focus_first()

    def _show_form(self) -> None:
        self._fields = ToolForm(
            self._form.schema,
            self._form.values,
            submit=self.tr("Continue"),
            abandon=self.tr("Give up"),
            parent=self,
        )
        self._fields.submitted.connect(lambda values: self._answers.answer_form(self._form.id, values))
        self._fields.abandoned.connect(lambda: self._answers.answer_form(self._form.id, None))
        self._body.addWidget(self._fields)

    def _show_answer(self) -> None:
        if self._form.answer is None:
            self._body.addWidget(PlainLabel(self.tr("Not filled in"), tone="muted"))
            return
        for name, value in list(self._form.answer.items())[:_SUMMARY_LINES]:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            self._body.addWidget(ElidedLabel(f"{visible_line(name, 80)}: {visible_line(shown, 400)}", tone="muted"))
        if len(self._form.answer) > _SUMMARY_LINES:
            more = self.tr("and {count} more").format(count=len(self._form.answer) - _SUMMARY_LINES)
            self._body.addWidget(PlainLabel(more, tone="muted"))
        if not self._form.answer:
            self._body.addWidget(PlainLabel(self.tr("No arguments"), tone="muted"))
