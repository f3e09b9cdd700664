"""Choosing who answers: the menu below the model's name, with Guide, recent models and those found on this computer.

Used by the main window; the settings dialog has the rest (`choose`, `title`).
"""

from __future__ import annotations

import asyncio

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from desktop.assistant.model_list import find_local_models
from desktop.settings import Settings
from desktop.ui import tasks
from desktop.ui.chat.widgets import button_text
from desktop.ui.messages import tr
from desktop.ui.settings_change import change
from desktop.visible_text import visible_line

_MOST_RECENT = 8


def title(name: str, api_base: str = "") -> str:
    """A model as it is shown: its name without the provider's prefix, and where it is where that is no provider's."""
    if not name:
        return tr("Guide")
    shown = visible_line(name.partition("/")[2] or name, 60)
    return f"{shown} · {visible_line(api_base.partition('://')[2].partition('/')[0], 60)}" if api_base else shown


def choose(settings: Settings, name: str, api_base: str, parent: QWidget) -> None:
    """Makes a model ("": Guide) the one that answers from now on, and the first of the recent ones."""
    recent = settings.values.recent_models
    if name:
        model = {"name": name, "api_base": api_base}
        recent = [model, *(each for each in recent if each != model)][:_MOST_RECENT]
    change(settings, parent, model=name, api_base=api_base, recent_models=recent)


class ModelMenu(QMenu):
    """Signals:
    settings_requested: “Another model…” was chosen.
    """

    settings_requested = Signal()

    def __init__(self, settings: Settings, parent: QWidget) -> None:
        super().__init__(parent)
        self._settings = settings
        self._parent = parent
        self._offered: set[tuple[str, str]] = set()
        self._group = QActionGroup(self)
        self._search: asyncio.Task[None] | None = None
        self.setAccessibleName(tr("Model"))
        self.setToolTipsVisible(True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.aboutToHide.connect(self._stop)
        self._offer("", "", tr("Guide: finds and runs tools; no language model"))
        self.addSeparator()
        values = settings.values
        if values.model:
            self._offer(values.model, values.api_base)
        for each in values.recent_models:
            self._offer(str(each.get("name", "")), str(each.get("api_base", "")))
        self._local = self.addSeparator()
        self._another = self.addAction(tr("Another model…"))
        self._another.triggered.connect(self.settings_requested)
        self._search = tasks.start(self._find_local(), on_error=parent)

    def _offer(self, name: str, api_base: str, text: str = "", before: QAction | None = None) -> None:
        if (name, api_base) in self._offered:
            return
        self._offered.add((name, api_base))
        action = QAction(button_text(text or title(name, api_base)), self)
        action.setCheckable(True)
        action.setChecked((name, api_base) == (self._settings.values.model, self._settings.values.api_base))
        action.triggered.connect(lambda: choose(self._settings, name, api_base, self._parent))
        self._group.addAction(action)
        self.insertAction(before, action) if before else self.addAction(action)

    async def _find_local(self) -> None:
        """Adds the models of this computer, while the menu is open already."""
        for model in await find_local_models():
            self._offer(model.name, model.api_base, visible_line(model.title, 80), before=self._another)
        self.insertSeparator(self._another)

    def _stop(self) -> None:
        if self._search is not None:
            self._search.cancel()
