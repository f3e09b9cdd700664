"""Buttons that more than one part of the window uses."""

from __future__ import annotations

from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QPushButton, QWidget

from desktop.ui import theme

#: The style draws a button lighter than its colour, too light for white text to be read well; so this one is drawn flat.
_STYLE = """
QPushButton {{ background: {accent}; color: {text}; border: 1px solid {accent}; border-radius: 3px; padding: 3px 14px; }}
QPushButton:hover {{ border-color: {text}; }}
QPushButton:focus {{ border: 2px solid {text}; padding: 2px 13px; }}
QPushButton:pressed {{ background: {text}; color: {accent}; }}
QPushButton:disabled {{ background: {off}; color: {off_text}; border-color: {off}; }}
"""


class PrimaryButton(QPushButton):
    """The step that is suggested: in the accent colour."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._follow_theme()
        theme.theme_changed.connect(self._follow_theme)

    def _follow_theme(self) -> None:
        palette = QPalette()
        self.setStyleSheet(
            _STYLE.format(
                accent=palette.color(QPalette.ColorRole.Highlight).name(),
                text=palette.color(QPalette.ColorRole.HighlightedText).name(),
                off=palette.color(QPalette.ColorRole.Midlight).name(),
                off_text=palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText).name(),
            )
        )
