"""Environment variables or headers of a server, a row each, and whether the keyring keeps the value. Part of the server editor.

An open field holds what the file has, references included; a secret's field holds the value itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from desktop.host.foreign_entry import literal, value_itself
from desktop.host.secret_values import looks_secret, reference_name
from desktop.ui import theme
from desktop.ui.chat.widgets import flat_button
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

_REFERENCE = re.compile(r"\$\{(?:keyring|input):([A-Za-z0-9_.-]{1,128})\}")


class ServerValues(QWidget):
    """Signals:
    changed: Something was entered.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[_ValueRow] = []
        self._asked: dict[str, QLineEdit] = {}
        self._title = PlainLabel(wrap=False)
        self._add = flat_button("add", "", text="")
        self._add.clicked.connect(lambda: self._add_row("", "").name.setFocus())
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.SPACING // 2)
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(self._add)
        self._layout.addLayout(head)
        self.set_kind(is_program=True)

    def set_kind(self, is_program: bool) -> None:
        self._title.setText(self.tr("Environment variables") if is_program else self.tr("HTTP headers"))
        self._add.setToolTip(self.tr("Add a variable") if is_program else self.tr("Add a header"))
        self._add.setAccessibleName(self._add.toolTip())

    def set_values(self, values: Mapping[str, str], asked: Mapping[str, str] | None = None) -> None:
        """`asked` are secrets that have to be entered, with what is said of them; untrusted text."""
        for row in self._rows:
            self._discard(row)
        self._rows = []
        for field in self._asked.values():
            self._discard(field)
        self._asked = {}
        left = dict(asked or {})
        for name, value in values.items():
            reference = _REFERENCE.fullmatch(value)
            self._add_row(name, value, asked=left.pop(reference[1], None) if reference else None)
        for name, description in left.items():  # of values that are a secret in part
            field = QLineEdit()
            field.setEchoMode(QLineEdit.EchoMode.Password)
            field.setPlaceholderText(visible_line(description or name, 80))
            field.setAccessibleName(visible_line(description or name, 80))
            self._asked[name] = field
            self._layout.addWidget(field)

    def values(self) -> tuple[dict[str, str], dict[str, str]]:
        """The values as the file is to have them, and the secrets that were entered by the names the keyring has them under."""
        written: dict[str, str] = {}
        secrets = {name: field.text() for name, field in self._asked.items() if field.text()}
        for row in self._rows:
            name = row.name.text().strip()
            if not name:
                continue
            if not row.secret.isChecked():
                written[name] = row.value.text()
                continue
            reference = row.reference or reference_name(name)
            if row.value.text():
                secrets[reference] = row.value.text()
            written[name] = f"${{keyring:{reference}}}"
        return written, secrets

    def _add_row(self, name: str, value: str, asked: str | None = None) -> _ValueRow:
        row = _ValueRow(name, value, asked)
        row.removed.connect(lambda: self._remove(row))
        row.changed.connect(self.changed)
        self._rows.append(row)
        self._layout.addWidget(row)
        return row

    def _remove(self, row: _ValueRow) -> None:
        self._rows.remove(row)
        self._discard(row)
        self.changed.emit()

    def _discard(self, widget: QWidget) -> None:
        self._layout.removeWidget(widget)
        widget.hide()
        widget.deleteLater()


class _ValueRow(QWidget):
    removed = Signal()
    changed = Signal()

    def __init__(self, name: str, value: str, asked: str | None) -> None:
        super().__init__()
        kept = _REFERENCE.fullmatch(value)
        self.reference = kept[1] if kept else ""
        """Under which name the keyring has the value already."""
        self._asked = asked
        itself = value_itself(value)
        is_secret = bool(kept) or (itself is not None and looks_secret(name, itself or "?"))
        self.name = QLineEdit(name)
        self.name.setPlaceholderText(self.tr("Name"))
        self.name.setAccessibleName(self.tr("Name"))
        self.value = QLineEdit("" if kept else itself if is_secret else value)
        named = visible_line(name, 80)
        self.value.setAccessibleName(self.tr("Value of {name}").format(name=named) if name else self.tr("Value"))
        self.secret = QCheckBox(self.tr("Secret"))
        self.secret.setToolTip(self.tr("Keep the value in the system's keyring, not in the file"))
        self.secret.setChecked(is_secret)
        self.secret.toggled.connect(self._secrecy_changed)
        remove = flat_button("close", self.tr("Remove {name}").format(name=named) if name else self.tr("Remove"))
        remove.clicked.connect(self.removed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING // 2)
        for widget, stretch in ((self.name, 2), (self.value, 3), (self.secret, 0), (remove, 0)):
            layout.addWidget(widget, stretch)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.name.textEdited.connect(self._suggest_secrecy)
        self.name.textEdited.connect(self.changed)
        self.value.textEdited.connect(self.changed)
        self._show_secrecy()

    def _suggest_secrecy(self, name: str) -> None:
        if looks_secret(name, "?"):
            self.secret.setChecked(True)

    def _secrecy_changed(self, secret: bool) -> None:
        text = self.value.text()
        if secret and (itself := value_itself(text)) is not None:
            self.value.setText(itself)
        elif not secret:
            self.value.setText(literal(text))
        self._show_secrecy()
        self.changed.emit()

    def _show_secrecy(self) -> None:
        secret = self.secret.isChecked()
        self.value.setEchoMode(QLineEdit.EchoMode.Password if secret else QLineEdit.EchoMode.Normal)
        kept = self.tr("Kept in the keyring") if self._asked is None else visible_line(self._asked, 80)
        to_enter = self.tr("Value")
        self.value.setPlaceholderText((kept or to_enter) if secret and self.reference else to_enter)
        self.value.setInputMethodHints(Qt.InputMethodHint.ImhSensitiveData if secret else Qt.InputMethodHint.ImhNone)
