"""Filling in a server's resource template: a line a variable, with the server's suggestions, and the URI that comes of it.

Opened where a template is attached to a message: by ``@`` in the composer and from the catalog panel.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop.catalog_entries import PromptArgument, TemplateEntry
from desktop.errors import AssistantError, Diagnostic
from desktop.ui import messages, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.widgets import ElidedLabel
from desktop.ui.dialogs.argument_form import ArgumentForm
from desktop.ui.dialogs.prompt_preview import scrolled
from desktop.ui.labels import PlainLabel
from desktop.ui.panels.catalog_rows import label
from desktop.uris import template_variables
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core

#: Milliseconds without a key before the URI is made anew.
_DELAY = 150
#: What a template may well be used without; of the rest the person is asked whether they mean to leave it empty.
_QUERY = re.compile(r"\{[?&][^}]*\}")


class TemplateForm(QDialog):
    """Attributes:
    uri: What the template gives with what is entered; "" where that is no URI.
    """

    def __init__(self, core: Core, entry: TemplateEntry, parent: QWidget) -> None:
        super().__init__(parent)
        self._core = core
        self._entry = entry
        self._expanding: asyncio.Task[None] | None = None
        self.uri = ""
        name = label(entry)
        self.setWindowTitle(self.tr("Attach {name}").format(name=visible_line(name, 80)))
        optional = template_variables("".join(_QUERY.findall(entry.template)))
        arguments = [PromptArgument(each, required=each not in optional) for each in entry.variables]
        self.form = ArgumentForm(arguments, {}, self._suggest)
        self.form.submitted.connect(self._attach)
        self._uri_label = PlainLabel(fixed_width_font=True, selectable=True)
        self._uri_label.setAccessibleName(self.tr("Address of the resource"))
        self._fault = PlainLabel(tone="error")
        self._fault.hide()
        self.attach_button = PrimaryButton(self.tr("Attach"))
        self.attach_button.setAutoDefault(False)  # Enter in a line goes on to the next
        self.attach_button.clicked.connect(self._attach)
        cancel = QPushButton(self.tr("Cancel"))
        cancel.setAutoDefault(False)
        cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch()
        buttons.addWidget(cancel)
        buttons.addWidget(self.attach_button)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, theme.SPACING, 0)
        column.setSpacing(theme.SPACING)
        column.addWidget(ElidedLabel(name, bold=True))
        column.addWidget(ElidedLabel(visible_line(entry.server, 80), tone="muted"))
        if entry.description:
            column.addWidget(PlainLabel(visible_line(entry.description, 600), tone="muted"))
        column.addWidget(self.form)
        column.addSpacing(theme.SPACING)
        column.addWidget(PlainLabel(self.tr("What will be read:"), tone="muted"))
        column.addWidget(self._uri_label)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(scrolled(page), 1)
        layout.addWidget(self._fault)
        layout.addLayout(buttons)
        self._later = QTimer(self, singleShot=True, interval=_DELAY)
        self._later.timeout.connect(self._show_uri)
        for line in self.form.lines.values():
            line.textChanged.connect(self._changed)
        self.resize(520, 420)
        if not self.form.go_to_first():
            self.attach_button.setFocus()
        self._show_uri()

    async def _suggest(self, name: str, value: str, others: Mapping[str, str]) -> Sequence[str]:
        entry = self._entry
        return (await self._core.access.complete(entry.server, entry.template, name, value, others)).values

    def _changed(self) -> None:
        self._fault.hide()
        self._later.start()

    def _show_uri(self) -> None:
        self._expand({name: line.text() for name, line in self.form.lines.items() if line.text()}, then_attach=False)

    def _attach(self) -> None:
        self._later.stop()
        values = self.form.values()
        if values is not None:
            self._expand(values, then_attach=True)

    def _expand(self, values: Mapping[str, str], *, then_attach: bool) -> None:
        if self._expanding is not None:
            self._expanding.cancel()
        self._expanding = tasks.start(self._expanded(values, then_attach=then_attach), on_error=self)

    async def _expanded(self, values: Mapping[str, str], *, then_attach: bool) -> None:
        entry = self._entry
        try:
            self.uri = await self._core.access.expand(entry.server, entry.template, values)
        except AssistantError as error:
            self.uri = ""
            self._uri_label.setText(visible_line(entry.template, 500))
            self._uri_label.set_tone("muted")
            self._show_fault(error.diagnostic, then_attach)
            return
        self._uri_label.set_tone("")
        self._uri_label.setText(visible_line(self.uri, 4096))
        if then_attach:
            self.accept()

    def _show_fault(self, diagnostic: Diagnostic, insists: bool) -> None:
        said = messages.words(diagnostic)
        text = " ".join(filter(None, (said.detail or said.title, said.remedy)))
        if diagnostic.code == "resource_invalid":
            if not insists:
                return  # something is still to be entered
            text = self.tr("With these values it is no valid address.")
        self._fault.setText(text)
        self._fault.show()
