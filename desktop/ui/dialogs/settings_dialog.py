"""The settings: models and keys, approvals, appearance, stored files. Opened from the main window.

What is changed holds at once. To add a setting: a field in ``desktop/settings.py`` and a control on one of these pages.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QSize, Qt, QTimer
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from desktop import links
from desktop.assistant.model_list import (
    OPENAI_COMPATIBLE,
    PROVIDERS,
    LocalModel,
    Provider,
    credential_name,
    find_local_models,
    needs_key,
    provider_of,
)
from desktop.errors import AssistantError
from desktop.ui import messages, model_menu, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.widgets import Card, ElidedLabel
from desktop.ui.dialogs.confirmation import confirmed
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.ui.settings_change import change
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.assistant.approval import Rule
    from desktop.core import Core

_FONT_SIZES = (0, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24)
#: Milliseconds after the last key stroke before the keyring is asked about a model's key.
_PAUSE = 300


class SettingsDialog(QDialog):
    def __init__(self, core: Core, parent: QWidget, *, page: int = 0) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Settings"))
        self._names = QListWidget()
        self._names.setAccessibleName(self.tr("Pages"))
        self._names.setFrameShape(QListWidget.Shape.NoFrame)
        self._names.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._pages = QStackedWidget()
        for name, widget in (
            (self.tr("Models"), ModelsPage(core)),
            (self.tr("Approvals"), ApprovalsPage(core)),
            (self.tr("Appearance"), AppearancePage(core)),
            (self.tr("Stored files"), StoredFilesPage(core)),
        ):
            item = QListWidgetItem(name)
            item.setSizeHint(QSize(0, self.fontMetrics().height() + 2 * theme.SPACING))
            self._names.addItem(item)
            area = QScrollArea()
            area.setAccessibleName(name)
            area.setFrameShape(QScrollArea.Shape.NoFrame)
            area.setWidgetResizable(True)
            area.setWidget(widget)
            self._pages.addWidget(area)
        longest = max(
            self.fontMetrics().horizontalAdvance(self._names.item(row).text()) for row in range(self._names.count())
        )
        self._names.setFixedWidth(longest + 4 * theme.SPACING)
        self._names.currentRowChanged.connect(self._pages.setCurrentIndex)
        self._names.setCurrentRow(page)
        buttons = QDialogButtonBox()
        close = buttons.addButton(self.tr("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        close.setAutoDefault(False)  # Enter in a field is no reason to close
        buttons.rejected.connect(self.reject)
        content = QHBoxLayout()
        content.setSpacing(2 * theme.SPACING)
        content.addWidget(self._names)
        content.addWidget(self._pages, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addLayout(content, 1)
        layout.addWidget(buttons)
        self.resize(640, 440)


class _Page(QWidget):
    """A page with its title, and room for its content."""

    def __init__(self, core: Core, title: str) -> None:
        super().__init__()
        self._core = core
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, theme.SPACING, 0)
        self._layout.setSpacing(theme.SPACING)
        self._layout.addWidget(PlainLabel(title, bold=True, scale=1.2))


def _form() -> QFormLayout:
    form = QFormLayout()
    form.setSpacing(theme.SPACING)
    form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
    return form


class ModelsPage(_Page):
    """Which model answers, and its key."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Models"))
        self._in_use = PlainLabel(tone="muted")
        self._provider = QComboBox()
        self._provider.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._provider.addItem(tr("None: Guide finds and runs tools"), None)
        for provider in PROVIDERS:
            self._provider.addItem(provider.title, provider)
        self._model = QComboBox()
        self._model.setEditable(True)
        self._model.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._model.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self._address = QLineEdit()
        self._address.setPlaceholderText("http://127.0.0.1:8080/v1")
        self._key = QLineEdit()
        self._key.setEchoMode(QLineEdit.EchoMode.Password)
        self._key.setInputMethodHints(Qt.InputMethodHint.ImhSensitiveData | Qt.InputMethodHint.ImhNoPredictiveText)
        self._key_state = PlainLabel(tone="muted")
        self._forget = QPushButton(tr("Forget key"))
        self._forget.hide()
        self._use = PrimaryButton(tr("Use this model"))
        self._fault = PlainLabel(tone="error", selectable=True)
        self._fault.hide()

        self._fields = _form()
        self._fields.addRow(tr("&Provider"), self._provider)
        self._fields.addRow(tr("&Address"), self._address)
        self._fields.addRow(tr("&Model"), self._model)
        self._fields.addRow(tr("&Key"), self._key)
        self._fields.addRow("", self._key_state)
        buttons = QHBoxLayout()
        buttons.addWidget(self._use)
        buttons.addWidget(self._forget)
        buttons.addStretch(1)
        self._layout.addWidget(self._in_use)
        self._layout.addLayout(self._fields)
        self._layout.addWidget(self._fault)
        self._layout.addLayout(buttons)
        self._layout.addStretch(1)

        self._pause = QTimer(self, singleShot=True, interval=_PAUSE)
        self._pause.timeout.connect(lambda: tasks.start(self._look_for_key(), on_error=self))
        self._provider.currentIndexChanged.connect(self._show_provider)
        for signal in (self._model.editTextChanged, self._address.textChanged, self._key.textChanged):
            signal.connect(self._changed)
        self._use.clicked.connect(lambda: tasks.start(self._use_model(), on_error=self))
        self._forget.clicked.connect(lambda: tasks.start(self._forget_key(), on_error=self))
        self._show_current()
        tasks.start(self._find_local(), on_error=self)

    def _show_current(self) -> None:
        values = self._core.settings.values
        self._show_in_use()
        provider = provider_of(values.model)
        if values.model and (values.api_base or provider is None):
            provider = OPENAI_COMPATIBLE
        self._provider.setCurrentIndex(PROVIDERS.index(provider) + 1 if values.model and provider else 0)
        self._show_provider()
        if values.model:
            self._model.setEditText(values.model)
            self._address.setText(values.api_base)

    def _show_in_use(self) -> None:
        values = self._core.settings.values
        self._in_use.setText(tr("In use: {model}").format(model=model_menu.title(values.model, values.api_base)))

    def _show_provider(self) -> None:
        chosen = self._provider.currentData()
        provider = chosen if isinstance(chosen, Provider) else None
        local = chosen if isinstance(chosen, LocalModel) else None
        self._fields.setRowVisible(self._address, provider is OPENAI_COMPATIBLE or local is not None)
        self._fields.setRowVisible(self._model, chosen is not None)
        self._fields.setRowVisible(self._key, provider is not None)
        self._fields.setRowVisible(self._key_state, provider is not None)
        self._model.clear()
        self._key.clear()
        self._address.setText(local.api_base if local else "")
        if provider:
            self._model.addItems(list(provider.suggestions))
        if local:
            self._model.setEditText(local.name)
        placeholder = tr("Optional") if provider is OPENAI_COMPATIBLE else tr("Paste the provider's key")
        self._key.setPlaceholderText(placeholder)
        self._changed()

    def _changed(self) -> None:
        chosen = self._provider.currentData()
        complete = bool(self._model.currentText().strip())
        if chosen is OPENAI_COMPATIBLE:
            complete = complete and links.check(self._address.text().strip()) is not None
        self._use.setEnabled(complete if chosen is not None else bool(self._core.settings.values.model))
        self._use.setText(tr("Use Guide") if chosen is None else tr("Use this model"))
        self._fault.hide()
        self._pause.start()

    def _entered(self) -> tuple[str, str]:
        """The model's name as litellm has it, and its address."""
        chosen = self._provider.currentData()
        if chosen is None:
            return "", ""
        name = self._model.currentText().strip()
        if isinstance(chosen, Provider) and not name.startswith(f"{chosen.prefix}/"):
            name = f"{chosen.prefix}/{name}"
        return name, self._address.text().strip().rstrip("/")

    async def _look_for_key(self) -> None:
        """Says whether a key is kept, and where."""
        self._forget.hide()
        chosen = self._provider.currentData()
        if not isinstance(chosen, Provider):
            return
        name = credential_name(*self._entered())
        try:
            kept = await self._core.credentials.get(name)
        except AssistantError as error:
            self._key_state.set_tone("warning")
            self._key_state.setText(messages.message(error.diagnostic))
            return
        store = self._core.credentials.backend
        self._key_state.set_tone("muted" if store else "warning")
        self._forget.setVisible(kept is not None)
        if kept and store:
            text = tr("A key is kept in the system's keyring ({store}).").format(store=store)
        elif kept:
            text = tr("There is no keyring on this system: the key is kept for this run only.")
        elif chosen.key_variable and os.environ.get(chosen.key_variable):
            text = tr("No key is kept; that of the environment variable {variable} is used.").format(
                variable=chosen.key_variable
            )
        elif store:
            text = tr("The key will be kept in the system's keyring ({store}).").format(store=store)
        else:
            text = tr("There is no keyring on this system: a key will be kept for this run only.")
        self._key_state.setText(text)

    async def _use_model(self) -> None:
        name, api_base = self._entered()
        key = self._key.text().strip()
        credential = credential_name(name, api_base)
        if key:
            await self._core.credentials.set(credential, key)
            self._key.clear()
        elif needs_key(name, api_base):
            provider = provider_of(name)
            in_environment = provider is not None and bool(os.environ.get(provider.key_variable))
            if not in_environment and await self._core.credentials.get(credential) is None:
                self._fault.setText(tr("This provider needs a key."))
                self._fault.show()
                self._key.setFocus()
                return
        model_menu.choose(self._core.settings, name, api_base, self)
        self._show_in_use()
        self._changed()
        await self._look_for_key()

    async def _forget_key(self) -> None:
        await self._core.credentials.delete(credential_name(*self._entered()))
        await self._look_for_key()

    async def _find_local(self) -> None:
        for model in await find_local_models():
            self._provider.addItem(tr("On this computer: {model}").format(model=visible_line(model.title, 60)), model)


class ApprovalsPage(_Page):
    """Every standing rule, and how many calls a turn may have."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Approvals"))
        self._layout.addWidget(
            PlainLabel(
                tr(
                    "You are asked before each tool call. What you answered for good stands here, and can be taken back."
                ),
                tone="muted",
            )
        )
        self._rules = QVBoxLayout()
        self._rules.setSpacing(theme.SPACING)
        self._layout.addLayout(self._rules)
        limit = QSpinBox()
        limit.setRange(1, 1000)
        limit.setValue(core.settings.values.tool_calls_per_turn)
        limit.valueChanged.connect(lambda value: change(core.settings, self, tool_calls_per_turn=value))
        form = _form()
        form.addRow(tr("Tool calls in a &turn, at most"), limit)
        self._layout.addSpacing(theme.SPACING)
        self._layout.addLayout(form)
        self._layout.addStretch(1)
        core.approvals.changed.connect(self._draw)
        self.destroyed.connect(lambda _=None, draw=self._draw: core.approvals.changed.disconnect(draw))
        self._draw()

    def _draw(self) -> None:
        while item := self._rules.takeAt(0):
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        if self._core.approvals.fault:
            self._rules.addWidget(
                PlainLabel(tr("The file of approvals can't be read: you are asked about every call."), tone="warning")
            )
        elif not self._core.approvals.rules:
            self._rules.addWidget(PlainLabel(tr("No standing rules yet.")))
        for rule in self._core.approvals.rules:
            self._rules.addWidget(self._row(rule))

    def _row(self, rule: Rule) -> QWidget:
        row = Card("card", "border")
        what = visible_line(f"{rule.server} · {rule.tool}" if rule.tool else rule.server, 200)
        revoke = QPushButton(tr("Revoke"))
        revoke.setAccessibleName(tr("Revoke the rule for {tool}").format(tool=what))
        revoke.clicked.connect(lambda: self._core.approvals.revoke(rule))
        texts = QVBoxLayout()
        texts.setSpacing(theme.SPACING // 2)
        texts.addWidget(ElidedLabel(what, bold=True))
        if rule.allowed:
            every = tr("Always allowed: all its tools as they were") if rule.tool is None else tr("Always allowed")
            texts.addWidget(PlainLabel(every, tone="ok"))
            others = QCheckBox(tr("Also after content of other servers"))
            others.setToolTip(tr("Otherwise you are asked when another server's content may have led to the call"))
            others.setChecked(rule.also_after_others)
            others.toggled.connect(lambda on: self._core.approvals.mark(rule, also_after_others=on))
            texts.addWidget(others)
        else:
            texts.addWidget(PlainLabel(tr("Never allowed"), tone="error"))
        layout = QHBoxLayout(row)
        layout.setContentsMargins(*[theme.SPACING] * 4)
        layout.addLayout(texts, 1)
        layout.addWidget(revoke, 0, Qt.AlignmentFlag.AlignTop)
        return row


class AppearancePage(_Page):
    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Appearance"))
        values = core.settings.values
        scheme = QComboBox()
        for name, value in ((tr("As the system"), "system"), (tr("Light"), "light"), (tr("Dark"), "dark")):
            scheme.addItem(name, value)
        scheme.setCurrentIndex(scheme.findData(values.color_scheme))
        scheme.currentIndexChanged.connect(lambda: change(core.settings, self, color_scheme=scheme.currentData()))
        size = QComboBox()
        for points in sorted({*_FONT_SIZES, values.font_size}):
            size.addItem(tr("{n} points").format(n=points) if points else tr("As the system"), points)
        size.setCurrentIndex(size.findData(values.font_size))
        size.currentIndexChanged.connect(lambda: change(core.settings, self, font_size=size.currentData()))
        form = _form()
        form.addRow(tr("&Colours"), scheme)
        form.addRow(tr("&Font size"), size)
        self._layout.addLayout(form)
        self._layout.addStretch(1)


class StoredFilesPage(_Page):
    """Results that were too large for a conversation."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Stored files"))
        self._layout.addWidget(
            PlainLabel(
                tr(
                    "Results that are too large for a conversation are kept in private files. They go with their "
                    "conversation, or when you clear them here."
                ),
                tone="muted",
            )
        )
        self._size = PlainLabel(tr("Counting…"))
        self._layout.addWidget(self._size)
        self._layout.addWidget(
            ElidedLabel(visible_line(str(core.paths.results), 400), tone="muted", fixed_width_font=True)
        )
        folder = QPushButton(tr("Open folder"))
        folder.clicked.connect(lambda: tasks.start(self._open_folder(), on_error=self))
        self._clear = QPushButton(tr("Clear…"))
        self._clear.setEnabled(False)
        self._clear.clicked.connect(lambda: tasks.start(self._clear_all(), on_error=self))
        buttons = QHBoxLayout()
        buttons.addWidget(folder)
        buttons.addWidget(self._clear)
        buttons.addStretch(1)
        self._layout.addLayout(buttons)
        self._layout.addStretch(1)
        tasks.start(self._count(), on_error=self)

    async def _count(self) -> None:
        sizes = await asyncio.to_thread(self._core.results.sizes)
        total = QLocale().formattedDataSize(sum(sizes.values()))
        if not sizes:
            text = tr("Nothing is stored.")
        elif len(sizes) == 1:
            text = tr("{size} of 1 conversation").format(size=total)
        else:
            text = tr("{size} of {n} conversations").format(size=total, n=len(sizes))
        self._size.setText(text)
        self._clear.setEnabled(bool(sizes))

    async def _open_folder(self) -> None:
        await asyncio.to_thread(self._core.paths.results.mkdir, parents=True, exist_ok=True, mode=0o700)
        await links.open_path(self._core.paths.results)

    async def _clear_all(self) -> None:
        text = tr("The assistant can't read these results any more. The conversations stay.")
        if await confirmed(self, tr("Clear all stored files?"), text, tr("Clear")):
            for conversation in await asyncio.to_thread(self._core.results.sizes):
                await asyncio.to_thread(self._core.results.delete, conversation)
            await self._count()
