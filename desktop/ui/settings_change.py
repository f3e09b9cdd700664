"""Changing a setting from the window. A file that can't be written is told; the change holds for this run all the same."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QWidget

from desktop.errors import AssistantError, os_reason
from desktop.settings import Settings
from desktop.ui import error_box


def change(settings: Settings, parent: QWidget, **changes: Any) -> None:
    try:
        settings.change(**changes)
    except OSError as error:
        error_box.report(AssistantError("storage_failed", operation="storage", reason=os_reason(error)), parent)
