"""The one hook for errors that nobody else shows: a box with what happened, what to do, and details to copy; and the log.

Used by ``tasks.start`` for every task, and by ``app.py`` for Qt's slots, the event loop and threads. The box is no modal one: the
person can go on.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from desktop.errors import AssistantError, Diagnostic
from desktop.ui import icons, messages, theme
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible, visible_line

#: Pixels.
_WIDTH = 440

logger = logging.getLogger(__name__)


def report(error: BaseException, parent: QWidget | None = None) -> None:
    """Shows an error, once while its box is open. One that is no `AssistantError` is a fault of Deskhand's own: logged as well.

    `parent` is any widget of the window that the error belongs to. Being cancelled is no error.
    """
    for each in _single(error):
        if isinstance(each, AssistantError):
            box = ErrorBox(each.diagnostic, str(each.diagnostic), _window(parent))
        else:
            logger.error("an unexpected error", exc_info=each)
            details = "".join(traceback.format_exception(each))
            box = ErrorBox(Diagnostic("operation_failed"), details, _window(parent))
        box.show_once()


class ErrorBox(QDialog):
    """Title, detail and remedy of a diagnostic; `details` are what a bug report needs."""

    def __init__(self, diagnostic: Diagnostic, details: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self.setWindowTitle(self.tr("Deskhand"))
        self.details = details
        words = messages.words(diagnostic)
        server = visible_line(diagnostic.server or "", 80)
        title = f"{server}: {words.title}" if server else words.title
        glyph = QLabel()
        glyph.setPixmap(icons.pixmap("error", 32, "error", scale=self.devicePixelRatioF()))
        glyph.setAlignment(Qt.AlignmentFlag.AlignTop)
        texts = QVBoxLayout()
        texts.setSpacing(theme.SPACING)
        texts.addWidget(PlainLabel(title, bold=True, scale=1.1, selectable=True))
        texts.addWidget(PlainLabel(words.detail, selectable=True))
        if words.remedy:
            texts.addWidget(PlainLabel(words.remedy, tone="muted", selectable=True))
        texts.addStretch(1)
        head = QHBoxLayout()
        head.setSpacing(2 * theme.SPACING)
        head.addWidget(glyph)
        head.addLayout(texts, 1)

        self._shown_details = FixedText(visible(details), self.tr("Details"), most_lines=16)
        self._shown_details.hide()
        buttons = QDialogButtonBox()
        self._toggle = buttons.addButton(self.tr("Show details"), QDialogButtonBox.ButtonRole.ActionRole)
        copy = buttons.addButton(self.tr("Copy details"), QDialogButtonBox.ButtonRole.ActionRole)
        close = buttons.addButton(self.tr("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        for button in (self._toggle, copy):
            button.setAutoDefault(False)
        close.setDefault(True)
        close.setFocus()
        self._toggle.clicked.connect(self._toggle_details)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.details))
        close.clicked.connect(self.close)

        layout = QVBoxLayout(self)
        layout.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)  # `_fit` knows better
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(2 * theme.SPACING)
        layout.addLayout(head)
        layout.addWidget(self._shown_details)
        layout.addWidget(buttons)
        self.setMinimumWidth(_WIDTH)
        self._fit()

    def show_once(self) -> None:
        """Shows the box, or brings up the one that already says the same."""
        for window in QApplication.topLevelWidgets():
            if (
                isinstance(window, ErrorBox)
                and window is not self
                and window.isVisible()
                and window.details == self.details
            ):
                window.raise_()
                self.deleteLater()
                return
        self.show()

    def _toggle_details(self) -> None:
        shown = not self._shown_details.isVisible()
        self._shown_details.setVisible(shown)
        self._toggle.setText(self.tr("Hide details") if shown else self.tr("Show details"))
        self._fit()

    def _fit(self) -> None:
        """As high as its texts at its width; Qt's own guess is for a narrower one."""
        width = max(self.width() if self.isVisible() else 0, _WIDTH)
        self.resize(width, self.layout().totalHeightForWidth(width))  # type: ignore[union-attr]  # it has a layout


def _single(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, one by one, each once."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _single(each)
    elif not isinstance(error, asyncio.CancelledError):
        yield error


def _window(widget: QWidget | None) -> QWidget | None:
    return widget.window() if widget is not None else QApplication.activeWindow()
