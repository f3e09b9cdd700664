"""Choosing a server's prompt: search, arguments, a preview of exactly what will be sent, Use. Opened by the main window.

Nothing is fetched before *Preview*, and what was previewed is what is used: it is not fetched again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QModelIndex, QObject, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from desktop.catalog_entries import CatalogEntry, PromptEntry
from desktop.errors import AssistantError, Diagnostic
from desktop.ui import list_rows, messages, tasks, theme
from desktop.ui.chat.widgets import ElidedLabel, clear, order_tab_stops
from desktop.ui.dialogs.argument_form import ArgumentForm
from desktop.ui.dialogs.prompt_preview import PromptPreview, scrolled
from desktop.ui.labels import PlainLabel
from desktop.ui.panels.catalog_rows import CatalogModel, label, ordered
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.assistant.conversation import Prompt
    from desktop.core import Core

_MOST_FOUND = 50
_MOST_NAMED = 4
_MOVES = frozenset({Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown})


class PromptPicker(QDialog):
    """Attributes:
    prompt: What was previewed last; what is to be sent when the dialog was accepted.
    """

    def __init__(
        self,
        core: Core,
        parent: QWidget,
        *,
        server: str = "",
        name: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        """`server` and `name` choose a prompt to begin with, once it is listed; `arguments` fill its form."""
        super().__init__(parent)
        self._core = core
        self._wanted = (server, name)
        self._given = dict(arguments or {})
        self._entry: PromptEntry | None = None
        self._arguments: ArgumentForm | None = None
        self._asking = True
        self._unlisted: dict[str, Diagnostic] = {}
        self._searching: asyncio.Task[None] | None = None
        self._fetching: asyncio.Task[None] | None = None
        self.prompt: Prompt | None = None
        self.setWindowTitle(self.tr("Choose a prompt"))
        self._pages = QStackedLayout(self)
        self._pages.addWidget(self._make_choice())
        self.preview = PromptPreview()
        self.preview.back.connect(self._go_back)
        self.preview.cancelled.connect(self.reject)
        self.preview.used.connect(self.accept)
        self._pages.addWidget(self.preview)
        self._pages.setCurrentIndex(0)
        back = QShortcut(QKeySequence(QKeySequence.StandardKey.Back), self)
        back.activated.connect(self._go_back)
        self.resize(760, 560)
        self.search_box.setFocus()
        tasks.start(self._list(), on_error=self)

    # The page of choice

    def _make_choice(self) -> QWidget:
        page = QWidget()
        self.search_box = QLineEdit()
        self.search_box.setPlaceholderText(self.tr("Search prompts"))
        self.search_box.setAccessibleName(self.tr("Search prompts"))
        self.search_box.setClearButtonEnabled(True)
        self.search_box.setMaxLength(500)
        self.search_box.installEventFilter(self)
        self.search_box.textChanged.connect(self._search)
        self.model = CatalogModel(self)
        self.view = list_rows.list_view(self.model, list_rows.TwoLines(), self.tr("Prompts"))
        self.view.selectionModel().currentChanged.connect(self._show_entry)
        self.view.activated.connect(lambda _: self._go_on())
        self._state = PlainLabel(self.tr("Asking the servers…"), tone="muted")
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACING)
        column.addWidget(self.search_box)
        column.addWidget(self.view, 1)
        column.addWidget(self._state)

        about = QWidget()
        self._about_entry = QVBoxLayout(about)
        self._about_entry.setContentsMargins(theme.SPACING, 0, theme.SPACING, 0)
        self._about_entry.setSpacing(theme.SPACING)
        self._area = scrolled(about)
        parts = QSplitter(Qt.Orientation.Horizontal)
        parts.setChildrenCollapsible(False)
        parts.addWidget(left)
        parts.addWidget(self._area)
        self._area.setMinimumWidth(240)
        parts.setSizes([320, 400])

        self._fault = PlainLabel(tone="error")
        self._fault.hide()
        self.preview_button = self._button(self.tr("Preview"), self._preview)
        self._stop = self._button(self.tr("Stop"), self._stop_fetching)
        self._stop.hide()
        cancel = self._button(self.tr("Cancel"), self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch()
        for button in (self._stop, cancel, self.preview_button):
            buttons.addWidget(button)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(parts, 1)
        layout.addWidget(self._fault)
        layout.addLayout(buttons)
        self._show_form(None)
        return page

    async def _list(self) -> None:
        """Has every server list its prompts; shows what is there meanwhile."""
        await self._core.ready()
        self._search()
        pending = [asyncio.ensure_future(self._ask(each.name)) for each in self._core.catalog.servers()]
        try:
            for answered in asyncio.as_completed(pending):
                await answered
                self._search()
        finally:
            for each in pending:
                each.cancel()
        self._asking = False
        self._search()

    async def _ask(self, server: str) -> None:
        try:
            await self._core.catalog.listed(server, "prompt")
        except AssistantError as error:
            self._unlisted[server] = error.diagnostic

    def _search(self) -> None:
        if self._searching is not None:
            self._searching.cancel()
        self._searching = tasks.start(self._find(), on_error=self)

    async def _find(self) -> None:
        await self._core.ready()
        query = self.search_box.text().strip()
        catalog = self._core.catalog
        known = [each for each in catalog.entries() if isinstance(each, PromptEntry)]
        found: list[CatalogEntry]
        if query:
            found = list((await catalog.search_known(query, kind="prompts", limit=_MOST_FOUND)).candidates)
        else:
            found = await asyncio.to_thread(ordered, known)
        chosen = self.model.entry(self.view.currentIndex())
        self.model.show_entries(found)
        index = self.model.index_of(chosen) if chosen is not None else QModelIndex()
        if any(self._wanted):
            wanted = [each for each in known if (each.server, each.name) == self._wanted]
            if wanted:
                index, self._wanted = self.model.index_of(wanted[0]), ("", "")
        if not index.isValid() and query and found:
            index = self.model.index(0)
        if index.isValid():
            self.view.setCurrentIndex(index)
        elif self._entry is not None:
            self._show_form(None)
        self._show_state(bool(known), bool(found))

    def _show_state(self, known: bool, found: bool) -> None:
        reasons: dict[str, list[str]] = {}
        for server, fault in sorted(self._unlisted.items()):
            reasons.setdefault(messages.message(fault), []).append(visible_line(server, 40))
        lines = [
            self.tr("{servers}: {reason}").format(
                servers=", ".join(names[:_MOST_NAMED]) + ("…" if names[_MOST_NAMED:] else ""), reason=reason
            )
            for reason, names in reasons.items()
        ]
        if self._asking:
            lines.insert(0, self.tr("Asking the servers…"))
        elif not found:
            lines.insert(0, self.tr("Nothing is found.") if known else self.tr("No server offers a prompt."))
        self._state.setText("\n".join(lines))
        self._state.setVisible(bool(lines))
        self._state.set_tone("warning" if reasons else "muted")

    def _show_entry(self, index: QModelIndex) -> None:
        entry = self.model.entry(index)
        self.view.scrollTo(index)
        if isinstance(entry, PromptEntry) and entry != self._entry:
            self._show_form(entry)

    def _show_form(self, entry: PromptEntry | None) -> None:
        self._entry = entry
        self._fault.hide()
        clear(self._about_entry)
        self._arguments = None
        self.preview_button.setEnabled(entry is not None)
        if entry is None:
            self._about_entry.addWidget(PlainLabel(self.tr("Choose a prompt in the list."), tone="muted"))
            self._about_entry.addStretch()
            return
        given, self._given = self._given, {}
        self._arguments = ArgumentForm(entry.arguments, given, partial(self._suggest, entry))
        self._arguments.submitted.connect(self._preview)
        self._about_entry.addWidget(ElidedLabel(label(entry), bold=True))
        self._about_entry.addWidget(ElidedLabel(visible_line(entry.server, 80), tone="muted"))
        if entry.description:
            self._about_entry.addWidget(PlainLabel(visible_line(entry.description, 600), tone="muted"))
        self._about_entry.addWidget(self._arguments)
        self._about_entry.addStretch()
        order_tab_stops([self.search_box, self.view, self._arguments, self.preview_button])

    async def _suggest(self, entry: PromptEntry, name: str, value: str, others: Mapping[str, str]) -> Sequence[str]:
        return (await self._core.access.complete_prompt(entry.server, entry.name, name, value, others)).values

    def _go_on(self) -> None:
        """To the arguments; to the preview where there are none."""
        if self._arguments is not None and not self._arguments.go_to_first():
            self._preview()

    def _preview(self) -> None:
        if self._entry is None or self._arguments is None or self._fetching is not None:
            return
        if (values := self._arguments.values()) is not None:
            self._fault.hide()
            self._show_fetching(True)
            self._fetching = tasks.start(self._fetch(self._entry, values), on_error=self)

    async def _fetch(self, entry: PromptEntry, arguments: dict[str, str]) -> None:
        from desktop.assistant import prompts

        try:
            result = await self._core.access.prompt(entry.server, entry.name, arguments)
            prompt = await asyncio.to_thread(prompts.snapshot, entry.server, entry.name, entry.title, arguments, result)
        except AssistantError as error:
            said = messages.words(error.diagnostic)
            self._fault.setText(" ".join(each for each in (said.detail or said.title, said.remedy) if each))
            self._fault.show()
        else:
            self.prompt = prompt
            self._pages.setCurrentIndex(1)
            self.preview.show_prompt(prompt, prompts.is_usable(prompt))
        finally:
            self._fetching = None
            self._show_fetching(False)

    def _show_fetching(self, fetching: bool) -> None:
        self._stop.setVisible(fetching)
        self.preview_button.setEnabled(not fetching)
        self.preview_button.setText(self.tr("Fetching…") if fetching else self.tr("Preview"))
        self.search_box.setEnabled(not fetching)
        self.view.setEnabled(not fetching)
        self._area.setEnabled(not fetching)

    def _stop_fetching(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()

    def _go_back(self) -> None:
        """Drops the preview: another one is fetched anew."""
        if self._pages.currentWidget() is self.preview:
            self.prompt = None
            self.preview.clear()
            self._pages.setCurrentIndex(0)
            if self._arguments is None or not self._arguments.go_to_first():
                self.preview_button.setFocus()

    def _button(self, text: str, press: Callable[[], None]) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)  # Enter in a line goes on to the next
        button.clicked.connect(lambda: press())
        return button

    def done(self, result: int) -> None:
        self._stop_fetching()
        super().done(result)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """In the search box the arrows move in the list, and Enter goes on to the arguments."""
        if watched is self.search_box and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in _MOVES:
                QCoreApplication.sendEvent(self.view, event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                if self._entry is not None:
                    self._go_on()
                return True
        return super().eventFilter(watched, event)
