"""Asks before a link opens: which host, the whole address, Open or Copy. Used by every text that may hold links."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QCursor, QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QPushButton, QVBoxLayout, QWidget

from desktop import links
from desktop.ui import tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.widgets import Card
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible

_WIDTH = 420
_LONGEST_SHOWN = 1200


class LinkPrompt(Card):
    """A popup beside the pointer; it closes with Escape or a click elsewhere. Nothing is opened unless Open is pressed."""

    def __init__(self, url: str, parent: QWidget) -> None:
        super().__init__(parent=parent)
        self.setWindowFlags(Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(self.tr("Open a link"))
        self._url = url
        self._link = links.check(url)
        shown = visible(url[:_LONGEST_SHOWN]) + ("…" if len(url) > _LONGEST_SHOWN else "")
        breakable = "\u2009".join(shown[start : start + 40] for start in range(0, len(shown), 40))
        self._message = PlainLabel(tone="error")
        self._message.hide()
        buttons = QDialogButtonBox()
        self._open = PrimaryButton(self.tr("Open in browser"))
        copy = QPushButton(self.tr("Copy address"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        if self._link is None:
            layout.addWidget(PlainLabel(self.tr("This link is not opened"), bold=True))
            layout.addWidget(PlainLabel(self.tr("Deskhand opens web addresses (http, https) only.")))
        else:
            layout.addWidget(PlainLabel(self.tr("Open this page on {host}?").format(host=self._link.host), bold=True))
            if "xn--" in self._link.host:
                warning = self.tr("The name has letters that can look like others. Check that it is the one you mean.")
                layout.addWidget(PlainLabel(warning, tone="warning"))
            buttons.addButton(self._open, QDialogButtonBox.ButtonRole.AcceptRole)
            self._open.setDefault(True)
        layout.addWidget(PlainLabel(breakable, tone="muted"))
        layout.addWidget(self._message)
        buttons.addButton(copy, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        buttons.rejected.connect(self.close)
        self._open.clicked.connect(lambda: tasks.start(self._open_link(), on_error=self.parentWidget()))
        copy.clicked.connect(self._copy)
        layout.addWidget(buttons)
        self.setFixedWidth(_WIDTH)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._url)
        self.close()

    async def _open_link(self) -> None:
        assert self._link is not None, "there is no Open button without a link"
        self.hide()  # from here on nobody can close it before the browser has answered
        if await links.open_in_browser(self._link):
            self.close()
            return
        self._message.setText(self.tr("The browser could not be started. Copy the address instead."))
        self._message.show()
        self.adjustSize()
        self.show()


def ask(url: str, parent: QWidget) -> LinkPrompt:
    """Shows the prompt near the pointer, inside the screen."""
    prompt = LinkPrompt(url, parent.window())
    prompt.adjustSize()
    screen = parent.screen().availableGeometry()
    position = QCursor.pos() + QPoint(0, theme.SPACING)
    position.setX(max(screen.left(), min(position.x(), screen.right() - prompt.width())))
    position.setY(max(screen.top(), min(position.y(), screen.bottom() - prompt.height())))
    prompt.move(position)
    prompt.show()
    return prompt
