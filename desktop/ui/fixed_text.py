"""Text in a fixed-width font to read and copy: commands, output of servers, logs. Lines break anywhere, nothing is cut off."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontDatabase, QPalette, QResizeEvent, QTextOption
from PySide6.QtWidgets import QApplication, QFrame, QPlainTextEdit, QSizePolicy, QWidget

from desktop.ui import theme
from desktop.ui.chat.widgets import SlimScrollBars


class FixedText(QPlainTextEdit):
    """As high as its text, up to `most_lines`; then it scrolls. 0: it takes what height it gets.

    `name` is for screen readers; with `at_end` the last lines are seen first. The text is shown as it is: hidden characters are
    made visible before.
    """

    def __init__(
        self, text: str, name: str, *, most_lines: int = 0, at_end: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._most_lines = most_lines
        self._at_end = at_end
        self.setReadOnly(True)
        self.setAccessibleName(name)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.document().setDocumentMargin(theme.SPACING)
        self.setFrameShape(QFrame.Shape.NoFrame)
        SlimScrollBars(self)
        if most_lines:
            self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self.document().documentLayout().documentSizeChanged.connect(lambda: self.updateGeometry())
        self._follow_theme()
        theme.theme_changed.connect(self._follow_theme)
        self.setPlainText(text)

    def _follow_theme(self) -> None:
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(QApplication.font().pointSizeF() * 0.95)
        self.setFont(font)
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.Base, theme.colors().code)
        self.setPalette(palette)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        if not self._most_lines:
            return super().sizeHint()
        lines = max(1, min(self._most_lines, round(self.document().size().height())))
        # Half a margin more than the text takes, or Qt would offer to scroll by a line.
        height = lines * self.fontMetrics().lineSpacing() + 5 * theme.SPACING // 2
        return QSize(super().sizeHint().width(), height)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.sizeHint().height()) if self._most_lines else super().minimumSizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._most_lines:
            self.updateGeometry()
        if self._at_end:
            self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
