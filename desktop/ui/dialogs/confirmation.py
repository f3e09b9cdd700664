"""The question before something is lost. Used wherever something is removed, cleared or taken back."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from desktop.ui import tasks, theme
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr


async def confirmed(parent: QWidget, title: str, text: str, action: str) -> bool:
    """Asks whether to go on; `action` names what is done, such as “Remove”. Enter and Escape both say no."""
    return await tasks.opened(_Confirmation(parent.window(), title, text, action)) == QDialog.DialogCode.Accepted


class _Confirmation(QDialog):
    def __init__(self, parent: QWidget, title: str, text: str, action: str) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Deskhand"))
        buttons = QDialogButtonBox()
        cancel = buttons.addButton(tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        go_on = buttons.addButton(action, QDialogButtonBox.ButtonRole.AcceptRole)
        go_on.setAutoDefault(False)
        cancel.setDefault(True)
        cancel.setFocus()
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(PlainLabel(title, bold=True, scale=1.1))
        layout.addWidget(PlainLabel(text))
        layout.addSpacing(theme.SPACING)
        layout.addWidget(buttons)
        self.setMinimumWidth(400)
