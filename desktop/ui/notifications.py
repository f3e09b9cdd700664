"""Tells the person that watched resources changed while they look elsewhere. Used by the main window.

At most one notification a resource in 5 seconds, and one for all where many change; none while a window of Deskhand is in
front, and none while the person has paused them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from desktop.ui import tasks
from desktop.ui.notification_service import NotificationService
from desktop.ui.tray import Tray
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.watches import Watch

#: Seconds.
_PERIOD = 5.0
#: Seconds from a first change to its notification: what changes together is told together.
_GATHER = 0.5
#: Resources that are told one by one.
_MOST_SINGLE = 3
_MOST_NAMED = 3


class Notifications(QObject):
    """Signals:
    clicked(object): A notification was clicked: that of a watch, or None for one that is of no single watch.
    untold(list): These watches changed, and no notification tells of it.
    """

    clicked = Signal(object)
    untold = Signal(list)

    def __init__(self, core: Core, tray: Tray, window: QWidget) -> None:
        """Must be made while the event loop runs; begins once `core` is ready."""
        super().__init__(window)
        self._core = core
        self._tray = tray
        self._window = window
        self._service = NotificationService(self) if sys.platform == "linux" else None
        self._pending: list[Watch] = []
        self._changed_at: dict[Watch, float] = {}  # on the monotonic clock; of the latest period
        self._shown: set[Watch | None] = set()
        self._shown_by_tray: Watch | None = None
        self._telling: asyncio.Task[None] | None = None
        if self._service is not None:
            self._service.clicked.connect(self.clicked)
        tray.message_clicked.connect(lambda: self.clicked.emit(self._shown_by_tray))
        tasks.start(self._begin(), on_error=window)

    async def show(self, watch: Watch | None, title: str, body: str) -> bool:
        """Shows a notification (plain text) in the place of the earlier one of that watch; whether anything shows it."""
        self._shown.add(watch)
        if self._service is not None and await self._service.show(watch, title, body):
            return True
        self._shown_by_tray = watch
        return self._tray.show_message(title, body)

    async def _begin(self) -> None:
        await self._core.ready()
        self._core.watches.noticed.connect(self._noticed)
        self._core.watches.changed.connect(self._withdraw_seen)

    def _noticed(self, watch: Watch) -> None:
        self._changed_at[watch] = time.monotonic()
        if watch not in self._pending:
            self._pending.append(watch)
        if self._telling is None or self._telling.done():
            self._telling = tasks.start(self._tell_all(), on_error=self._window)

    async def _tell_all(self) -> None:
        await asyncio.sleep(_GATHER)
        while self._pending:
            watches, self._pending = [watch for watch in self._pending if watch.unseen], []
            earliest = time.monotonic() - _PERIOD - _GATHER
            self._changed_at = {watch: at for watch, at in self._changed_at.items() if at >= earliest}
            await self._tell(watches)
            await asyncio.sleep(_PERIOD)

    async def _tell(self, watches: Sequence[Watch]) -> None:
        if not watches or self._core.settings.values.notifications_paused:
            return
        untold: list[Watch] = []
        if QApplication.activeWindow() is not None:
            untold += watches
        elif len(self._changed_at) > _MOST_SINGLE and len(watches) > 1:
            title = self.tr("{n} watched resources changed").format(n=len(watches))
            names = [_name(watch) for watch in watches[:_MOST_NAMED]]
            if len(watches) > _MOST_NAMED:
                names.append(self.tr("and {n} more").format(n=len(watches) - _MOST_NAMED))
            if not await self.show(None, title, "\n".join(names)):
                untold += watches
        else:
            for watch in watches:
                title = self.tr("{resource} changed").format(resource=visible_line(watch.title or watch.uri, 80))
                body = self.tr("Watched on the server {server}").format(server=visible_line(watch.server, 80))
                if not await self.show(watch, title, body):
                    untold.append(watch)
        if untold:
            self.untold.emit(untold)

    def _withdraw_seen(self) -> None:
        unseen = {watch for watch in self._core.watches.all if watch.unseen}
        for watch in list(self._shown):
            if (watch not in unseen) if watch is not None else not unseen:
                self._shown.discard(watch)
                if self._service is not None:
                    tasks.start(self._service.withdraw(watch), on_error=self._window)


def _name(watch: Watch) -> str:
    return f"{visible_line(watch.title or watch.uri, 60)} · {visible_line(watch.server, 40)}"
