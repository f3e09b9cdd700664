"""The bar that tells of changed resources where no notification does. Used by the main window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop.ui import tasks, theme
from desktop.ui.chat.widgets import Card
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.watches import Watch


class ChangesBar(QWidget):
    """Hidden while there is nothing to tell; what was put away once comes again only after it was seen.

    Signals:
    watch_requested(object): The watch that changed is to be shown, or None: several changed.
    """

    watch_requested = Signal(object)

    def __init__(self, core: Core, parent: QWidget | None = None) -> None:
        """Must be made while the event loop runs; begins once `core` is ready."""
        super().__init__(parent)
        self._core = core
        self._told: list[Watch] = []
        self._text = PlainLabel()
        show = QPushButton(self.tr("Show"))
        show.clicked.connect(self._show_watch)
        put_away = QPushButton(self.tr("Not now"))
        put_away.clicked.connect(self.hide)
        card = Card("info_background", "border")
        layout = QHBoxLayout(card)
        layout.setContentsMargins(12, theme.SPACING, theme.SPACING, theme.SPACING)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(self._text, 1)
        for button in (show, put_away):
            button.setAutoDefault(False)
            layout.addWidget(button)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(theme.SPACING, theme.SPACING // 2, theme.SPACING, theme.SPACING // 2)
        outer.addWidget(card)
        self.hide()
        tasks.start(self._begin(), on_error=self)

    def tell(self, watches: Sequence[Watch]) -> None:
        new = [watch for watch in watches if watch not in self._told]
        if new:
            self._told += new
            self._draw()
            self.show()

    async def _begin(self) -> None:
        await self._core.ready()
        self._core.watches.changed.connect(self._forget_seen)

    def _forget_seen(self) -> None:
        known = self._core.watches.all
        left = [watch for watch in self._told if watch.unseen and watch in known]
        if left != self._told:
            self._told = left
            self._draw()
            if not left:
                self.hide()

    def _draw(self) -> None:
        if len(self._told) == 1:
            [watch] = self._told
            resource, server = visible_line(watch.title or watch.uri, 80), visible_line(watch.server, 80)
            text = self.tr("{resource} changed on the server {server}")
            # Names must not carry what stands beside them along when they read from right to left.
            self._text.setText(text.format(resource=f"\u2068{resource}\u2069", server=f"\u2068{server}\u2069"))
        else:
            self._text.setText(self.tr("{n} watched resources changed").format(n=len(self._told)))
        self.setAccessibleName(self._text.text())

    def _show_watch(self) -> None:
        self.hide()
        self.watch_requested.emit(self._told[0] if len(self._told) == 1 else None)
