"""What a server asks the person while a tool runs: a form, or a page to visit. Shown by ``server_questions.py``, one at a time.

The dialogs are not modal: the conversation stays readable. Esc closes one, which is told from declining.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop import links
from desktop.ui import tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.dialogs.prompt_preview import scrolled
from desktop.ui.dialogs.question_fields import QuestionField, make_field
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible, visible_line

if TYPE_CHECKING:
    from desktop.host.elicitation_form import Value
    from desktop.host.server_questions import FormQuestion, PageQuestion

DECLINED = 2
"""A dialog's result beside accepted (1) and closed (0)."""
#: Milliseconds in which nothing is sent: the dialog comes unasked, and a key may be on its way.
_NOT_YET = 500
_WIDTH = 480


class _Question(QDialog):
    """Names the server that asks; a column for the rest, and a row of buttons."""

    def __init__(self, server: str, message: str, parent: QWidget) -> None:
        super().__init__(parent)
        name = visible_line(server, 80)
        self.setWindowTitle(self.tr("{server} asks").format(server=name))
        self.setModal(False)
        self._column = QVBoxLayout()
        self._column.setSpacing(theme.SPACING)
        self._column.addWidget(PlainLabel(self.tr("The server {server} asks").format(server=name), bold=True))
        if message:
            self._column.addWidget(PlainLabel(visible(message)))
        self._buttons = QHBoxLayout()
        self._buttons.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(2 * theme.SPACING)
        layout.addLayout(self._column, 1)
        layout.addLayout(self._buttons)

    def _add_button(self, button: QPushButton, press: object) -> None:
        button.setAutoDefault(False)
        button.clicked.connect(press)
        self._buttons.addWidget(button)

    def _wake_later(self, button: QPushButton) -> None:
        button.setEnabled(False)
        QTimer.singleShot(_NOT_YET, button, lambda: button.setEnabled(True))


class FormDialog(_Question):
    """Attributes:
    content: What was entered, when the dialog was accepted.
    """

    def __init__(self, question: FormQuestion, parent: QWidget) -> None:
        super().__init__(question.server, question.message, parent)
        self.content: dict[str, Value] = {}
        self.fields: list[QuestionField] = []
        form = QWidget()
        column = QVBoxLayout(form)
        column.setContentsMargins(0, 0, theme.SPACING, 0)
        column.setSpacing(2 * theme.SPACING)
        for each in question.fields:
            field = make_field(each)
            field.submitted.connect(self._submit)
            column.addWidget(field)
            self.fields.append(field)
        column.addStretch()
        self._area = scrolled(form)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        warning = self.tr("The server gets what you enter. Never enter passwords, keys or payment data here.")
        self._fault = PlainLabel(tone="error")
        self._fault.hide()
        self._column.addWidget(self._area, 1)
        self._column.addWidget(PlainLabel(warning, tone="muted"))
        self._column.addWidget(self._fault)
        self.submit_button = PrimaryButton(self.tr("Submit"))
        self._add_button(QPushButton(self.tr("Cancel")), self.reject)
        self._add_button(QPushButton(self.tr("Decline")), lambda: self.done(DECLINED))
        self._add_button(self.submit_button, self._submit)
        self._wake_later(self.submit_button)
        self.resize(_WIDTH, min(640, form.sizeHint().height() + 220))
        if self.fields:
            self.fields[0].setFocus()

    def _submit(self) -> None:
        from desktop.host.elicitation_form import is_too_large

        if not self.submit_button.isEnabled():
            return
        content: dict[str, Value] = {}
        first: QuestionField | None = None
        for field in self.fields:
            value = field.value()
            fault = field.field.fault(value)
            field.say(fault)
            if fault is not None:
                first = first or field
            elif value is not None:
                content[field.field.name] = value
        too_large = first is None and is_too_large(content)
        self._fault.setText(self.tr("All together this is more than 64 KiB.") if too_large else "")
        self._fault.setVisible(too_large)
        if first is not None:
            first.setFocus()
            self._area.ensureWidgetVisible(first)
        elif not too_large:
            self.content = content
            self.accept()


class PageDialog(_Question):
    """A page to visit; nothing is opened or fetched before *Open in browser*."""

    def __init__(self, question: PageQuestion, parent: QWidget) -> None:
        super().__init__(question.server, question.message, parent)
        self._link = question.link
        host = PlainLabel(self.tr("The page is on {host}").format(host=self._link.host), bold=True)
        self._column.addWidget(host)
        if "xn--" in self._link.host:
            warning = self.tr("The name has letters that can look like others. Check that it is the one you mean.")
            self._column.addWidget(PlainLabel(warning, tone="warning"))
        if self._link.url.startswith("http:"):
            warning = self.tr("It is a page of a program on this computer, and is not encrypted.")
            self._column.addWidget(PlainLabel(warning, tone="warning"))
        shown = visible(self._link.url)
        breakable = "\u2009".join(shown[start : start + 60] for start in range(0, len(shown), 60))
        address = PlainLabel(breakable, tone="muted")
        area = scrolled(address)
        area.setMaximumHeight(160)
        area.setAccessibleName(self.tr("Address"))
        self._column.addWidget(area)
        self._column.addWidget(
            PlainLabel(self.tr("What you enter there goes to the page, not through Deskhand."), tone="muted")
        )
        self._fault = PlainLabel(tone="error")
        self._fault.hide()
        self._column.addWidget(self._fault)
        self._column.addStretch()
        self.open_button = PrimaryButton(self.tr("Open in browser"))
        self.decline_button = QPushButton(self.tr("Decline"))
        self._add_button(QPushButton(self.tr("Copy address")), self._copy)
        self._add_button(QPushButton(self.tr("I open it myself")), self.accept)
        self._add_button(self.decline_button, lambda: self.done(DECLINED))
        self._add_button(self.open_button, lambda: tasks.start(self._open(), on_error=self))
        self._wake_later(self.open_button)
        self.decline_button.setDefault(True)
        self.decline_button.setFocus()
        self.resize(_WIDTH, self.sizeHint().height())

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._link.url)

    async def _open(self) -> None:
        if await links.open_in_browser(self._link):
            self.accept()
            return
        self._fault.setText(self.tr("The browser could not be started. Copy the address and open it yourself."))
        self._fault.show()


class WaitDialog(_Question):
    """Until the person is done with the pages; it closes by itself when the server says so."""

    def __init__(self, server: str, parent: QWidget) -> None:
        super().__init__(server, "", parent)
        self._column.addWidget(PlainLabel(self.tr("Finish on the page that was opened, then press Done.")))
        done = PrimaryButton(self.tr("Done"))
        self._add_button(QPushButton(self.tr("Cancel")), self.reject)
        self._add_button(done, self.accept)
        self._wake_later(done)
        self.resize(_WIDTH, self.sizeHint().height())


def action(result: int) -> str:
    """A dialog's result in the protocol's words."""
    return {QDialog.DialogCode.Accepted: "accept", DECLINED: "decline"}.get(result, "cancel")


def content_of(dialog: FormDialog, result: int) -> Mapping[str, Value] | str:
    said = action(result)
    return dialog.content if said == "accept" else said
