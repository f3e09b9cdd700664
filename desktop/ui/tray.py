"""The icon in the desktop's tray: its menu, and a dot while something changed unseen. Used by the main window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPointF, QTimer, Signal
from PySide6.QtGui import QAction, QColor, QIcon, QPainter, Qt
from PySide6.QtWidgets import QMenu, QSystemTrayIcon, QWidget

from desktop.ui import icons, tasks, theme
from desktop.ui.chat.widgets import button_text
from desktop.ui.settings_change import change
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.watches import Watch

_MOST_WATCHES = 10
#: Milliseconds between two drawings of what changes.
_DRAWN_EVERY = 100
#: Pixels: what trays ask for, on screens of every scale.
_SIZES = (16, 22, 24, 32, 48, 64, 128)


class Tray(QObject):
    """Signals:
    show_requested: The icon was clicked, or Show was chosen.
    new_requested: New conversation was chosen.
    watch_requested(object): A watch with changes was chosen.
    quit_requested: Quit was chosen.
    message_clicked: The message that was shown last was clicked.
    """

    show_requested = Signal()
    new_requested = Signal()
    watch_requested = Signal(object)
    quit_requested = Signal()
    message_clicked = Signal()

    def __init__(self, core: Core, window: QWidget) -> None:
        """Must be made while the event loop runs; watches show once `core` is ready."""
        super().__init__(window)
        self._core = core
        self._window = window
        self._unseen: list[Watch] = []  # latest first
        self.menu = QMenu(window)
        self._add(self.tr("Show"), self.show_requested.emit)
        self._add(self.tr("New conversation"), self.new_requested.emit)
        self._end_of_watches = self.menu.addSeparator()
        self._watches: list[QAction] = []
        self._pause = self._add(self.tr("Pause notifications"), self._toggle_pause)
        self._pause.setCheckable(True)
        self.menu.addSeparator()
        self._add(self.tr("Quit"), self.quit_requested.emit)
        self.icon = QSystemTrayIcon(self)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._activated)
        self.icon.messageClicked.connect(self.message_clicked)
        self._soon = QTimer(self, singleShot=True, interval=_DRAWN_EVERY)
        self._soon.timeout.connect(self._show_watches)
        theme.theme_changed.connect(self._draw)
        core.settings.changed.connect(self._settings_changed)
        self._settings_changed()
        self._draw()
        self.icon.show()
        tasks.start(self._begin(), on_error=window)

    @property
    def available(self) -> bool:
        """Whether the desktop has a tray that shows the icon now."""
        return QSystemTrayIcon.isSystemTrayAvailable() and self.icon.isVisible()

    def show_message(self, title: str, body: str) -> bool:
        """Shows a message (plain text) at the icon; False where there is no tray."""
        if not self.available:
            return False
        self.icon.showMessage(title, body, icons.application_icon())
        return True

    async def _begin(self) -> None:
        await self._core.ready()
        self._core.watches.changed.connect(self._show_watches_soon)
        self._show_watches()

    def _show_watches_soon(self) -> None:
        if not self._soon.isActive():
            self._soon.start()

    def _show_watches(self) -> None:
        unseen = sorted(
            (watch for watch in self._core.watches.all if watch.unseen),
            key=lambda watch: watch.changed_at or 0,
            reverse=True,
        )
        if unseen == self._unseen:
            return
        self._unseen = unseen
        for action in self._watches:
            self.menu.removeAction(action)
            action.deleteLater()
        self._watches = []
        for watch in unseen[:_MOST_WATCHES]:
            action = QAction(button_text(_name(watch)), self.menu)
            action.triggered.connect(lambda _=False, watch=watch: self.watch_requested.emit(watch))
            self._watches.append(action)
        if self._watches:
            separator = QAction(self.menu)
            separator.setSeparator(True)
            self._watches.insert(0, separator)
        self.menu.insertActions(self._end_of_watches, self._watches)
        self._draw()

    def _draw(self) -> None:
        icon = _icon(marked=bool(self._unseen))
        self.icon.setIcon(icon)
        if self._unseen:
            self.icon.setToolTip(self.tr("Deskhand: {n} unseen changes").format(n=len(self._unseen)))
        else:
            self.icon.setToolTip("Deskhand")

    def _activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self.show_requested.emit()

    def _toggle_pause(self) -> None:
        change(self._core.settings, self._window, notifications_paused=self._pause.isChecked())

    def _settings_changed(self, _: frozenset[str] = frozenset()) -> None:
        self._pause.setChecked(self._core.settings.values.notifications_paused)

    def _add(self, text: str, run: Callable[[], object]) -> QAction:
        action = self.menu.addAction(text)
        action.triggered.connect(lambda: run())
        return action


def _name(watch: Watch) -> str:
    return f"{visible_line(watch.title or watch.uri, 60)} · {visible_line(watch.server, 40)}"


def _icon(*, marked: bool) -> QIcon:
    """The application's icon; the dot is cut out of it, so that it shows on light trays and dark ones."""
    if not marked:
        return icons.application_icon()
    result = QIcon()
    for pixels in _SIZES:
        image = icons.application_icon().pixmap(pixels, pixels)
        image = image.copy() if image.width() == pixels else image.scaled(pixels, pixels)
        painter = QPainter(image)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(Qt.GlobalColor.black))
        radius = pixels * 0.26
        middle = QPointF(pixels - radius, radius)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Clear)
        painter.drawEllipse(middle, radius, radius)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
        painter.setBrush(QColor(theme.colors().error))
        painter.drawEllipse(middle, radius * 0.75, radius * 0.75)
        painter.end()
        result.addPixmap(image)
    return result
