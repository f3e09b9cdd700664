"""Asks for the secrets that a server's definition refers to and the keyring doesn't have. Used by the steps of servers."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QVBoxLayout, QWidget

from desktop.host.servers_file import Input
from desktop.ui import theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line


class SecretPrompt(QDialog):
    """Accepted when there is a value for each."""

    def __init__(self, server: str, asked: Mapping[str, Input], parent: QWidget) -> None:
        """`asked` are the secrets' names, with what the file says of each, which is untrusted text."""
        super().__init__(parent)
        self.setWindowTitle(self.tr("Secrets of {server}").format(server=server))
        told = self.tr(
            "The server {server} needs what is asked for here. It is kept in the system's keyring, for this server alone."
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(PlainLabel(told.format(server=visible_line(server, 80))))
        self._fields: dict[str, QLineEdit] = {}
        for name, described in asked.items():
            field = self._fields[name] = QLineEdit(described.default)
            if described.hidden:
                field.setEchoMode(QLineEdit.EchoMode.Password)
                field.setInputMethodHints(Qt.InputMethodHint.ImhSensitiveData)
            field.setAccessibleName(name)
            field.textChanged.connect(self._show_validity)
            layout.addWidget(PlainLabel(name, bold=True))
            if described.description:
                said = visible_line(described.description, 300)
                field.setAccessibleDescription(said)
                layout.addWidget(PlainLabel(said, tone="muted"))
            layout.addWidget(field)
        layout.addStretch(1)
        buttons = QDialogButtonBox()
        self._keep = PrimaryButton(self.tr("Keep and connect"))
        buttons.addButton(self._keep, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout.addWidget(buttons)
        self.resize(440, self.sizeHint().height())
        self._show_validity()

    def values(self) -> dict[str, str]:
        return {name: field.text() for name, field in self._fields.items()}

    def _show_validity(self) -> None:
        self._keep.setEnabled(all(self.values().values()))
