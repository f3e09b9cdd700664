"""What the pages of the settings have in common. Used by ``settings_dialog`` and ``models_page``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFormLayout,
    QVBoxLayout,
    QWidget,
)

from desktop.ui import theme
from desktop.ui.labels import PlainLabel

if TYPE_CHECKING:
    from desktop.core import Core


class SettingsPage(QWidget):
    """A page with its title, and room for its content."""

    def __init__(self, core: Core, title: str) -> None:
        super().__init__()
        self._core = core
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, theme.SPACING, 0)
        self._layout.setSpacing(theme.SPACING)
        self._layout.addWidget(PlainLabel(title, bold=True, scale=1.2))


def form_layout() -> QFormLayout:
    form = QFormLayout()
    form.setSpacing(theme.SPACING)
    form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
    return form
