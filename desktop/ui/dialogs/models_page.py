"""The settings' page of models: which one answers, and its key. Used by ``settings_dialog``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
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
from desktop.ui import messages, model_menu, tasks
from desktop.ui.buttons import PrimaryButton
from desktop.ui.dialogs.settings_page import SettingsPage, form_layout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core


#: Milliseconds after the last key stroke before the keyring is asked about a model's key.
_PAUSE = 300


class ModelsPage(SettingsPage):
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

        self._fields = form_layout()
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
