"""Labels for text that may come from servers, models and files: plain text always, in a colour that follows the theme."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from desktop.ui import theme


class PlainLabel(QLabel):
    """A label that shows its text as it is, never as HTML (Qt guesses otherwise), and wraps it.

    `tone` names a colour of `theme.Colors`; "" is the colour of text. `scale` is relative to the application's font.
    """

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        tone: str = "",
        bold: bool = False,
        scale: float = 1,
        fixed_width_font: bool = False,
        wrap: bool = True,
        selectable: bool = False,
    ) -> None:
        super().__init__(parent)
        self._tone, self._bold, self._scale, self._fixed_width_font = tone, bold, scale, fixed_width_font
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setForegroundRole(QPalette.ColorRole.WindowText)  # on the ground of a text, Qt would take another
        self.setWordWrap(wrap)
        if wrap:  # as high as its lines at the width it gets
            policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
            policy.setHeightForWidth(True)
            self.setSizePolicy(policy)
        if selectable:
            self.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
        self.setText(text)
        self._follow_theme()
        theme.theme_changed.connect(self._follow_theme)

    def set_tone(self, tone: str) -> None:
        self._tone = tone
        self._set_color()

    def _follow_theme(self) -> None:
        self._set_font()
        self._set_color()

    def _set_color(self) -> None:
        palette = QPalette()
        if self._tone:
            for role in (
                QPalette.ColorRole.WindowText,
                QPalette.ColorRole.Text,
            ):  # the latter on a background of its own
                palette.setColor(role, getattr(theme.colors(), self._tone))
        if palette != self.palette():
            self.setPalette(palette)

    def _set_font(self) -> None:
        font = QFont()
        if self._fixed_width_font:
            font.setFamilies(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).families())
        font.setBold(self._bold)
        font.setPointSizeF(font.pointSizeF() * self._scale)
        if font != self.font():
            self.setFont(font)
