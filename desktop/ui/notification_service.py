"""A Linux desktop's notification service (``org.freedesktop.Notifications``), over the session bus. Used by ``notifications``.

Qt can't do this: its tray icon shows no message where there is no tray, never says which message was clicked, and Qt's D-Bus
can't send ``Notify`` from Python. https://specifications.freedesktop.org/notification-spec/latest/
"""

from __future__ import annotations

import asyncio
import html
import logging
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from desktop.ui import icons, tasks

if TYPE_CHECKING:
    from jeepney import Message
    from jeepney.io.asyncio import DBusRouter

logger = logging.getLogger(__name__)

_NAME, _PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
#: Seconds for one notification; a service that is not there yet is started by the bus meanwhile.
_LIMIT = 5.0


class NotificationService(QObject):
    """Connects when there is first something to show. No bus and no service are no error.

    Signals:
    clicked(object): A notification was clicked, by its key.
    """

    clicked = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._router: DBusRouter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._takes_markup = False
        self._ids: dict[Hashable, int] = {}  # of those that are shown
        self._one_at_a_time = asyncio.Lock()

    async def show(self, key: Hashable, title: str, body: str) -> bool:
        """Shows a notification in the place of the earlier one with the same key; whether a service took it.

        `title` and `body` are plain text, shown as they are. Takes 5 seconds at most.
        """

        def arguments() -> tuple[Any, ...]:
            text = html.escape(body, quote=False) if self._takes_markup else body
            hints = {"desktop-entry": ("s", "deskhand"), "urgency": ("y", 1)}
            icon = str(icons.FOLDER / "deskhand.svg")
            return ("Deskhand", self._ids.get(key, 0), icon, title, text, ["default", self.tr("Open")], hints, -1)

        async with self._one_at_a_time:
            try:
                async with asyncio.timeout(_LIMIT):
                    await self._connect()
                    (self._ids[key],) = await self._call("Notify", "susssasa{sv}i", arguments())
            except Exception as error:  # whatever there is instead of a bus or a service
                logger.info("no notification service: %s", type(error).__name__)
                self._disconnect()
                return False
        return True

    async def withdraw(self, key: Hashable) -> None:
        """Takes a notification back, if it is still shown."""
        async with self._one_at_a_time:
            if (id_ := self._ids.pop(key, None)) is None:
                return
            try:
                async with asyncio.timeout(_LIMIT):
                    await self._call("CloseNotification", "u", (id_,))
            except Exception:  # it is gone with its service
                self._disconnect()

    async def _connect(self) -> None:
        if self._router is not None:
            return
        connected: asyncio.Future[DBusRouter] = asyncio.get_running_loop().create_future()
        self._listening = tasks.start(self._listen(connected))
        self._router = await connected
        self._takes_markup = "body-markup" in (await self._call("GetCapabilities", "", ()))[0]

    def _disconnect(self) -> None:
        """The next notification tries anew."""
        self._router = None
        self._ids.clear()
        if self._listening is not None:
            self._listening.cancel()

    async def _listen(self, connected: asyncio.Future[DBusRouter]) -> None:
        """Holds the connection, and hears what becomes of notifications."""
        from jeepney import MatchRule, message_bus
        from jeepney.io.asyncio import DBusRouter, open_dbus_connection

        try:
            async with await open_dbus_connection() as connection, DBusRouter(connection) as router:
                rule = MatchRule(type="signal", sender=_NAME, interface=_NAME, path=_PATH)
                await router.send_and_get_reply(message_bus.AddMatch(rule))
                # The bus has looked at the sender; in the message it bears another name.
                heard = MatchRule(type="signal", interface=_NAME, path=_PATH)
                queue: asyncio.Queue[Message] = asyncio.Queue(100)
                with router.filter(heard, queue=queue):
                    connected.set_result(router)
                    while True:
                        self._heard(await queue.get())
        except Exception as error:
            if not connected.done():
                connected.set_exception(error)
        finally:
            connected.cancel()

    def _heard(self, message: Message) -> None:
        from jeepney import HeaderFields

        key = next((key for key, id_ in self._ids.items() if id_ == message.body[0]), ())
        if key == ():  # another program's
            return
        if message.header.fields[HeaderFields.member] == "ActionInvoked":
            self.clicked.emit(key)
        elif message.header.fields[HeaderFields.member] == "NotificationClosed":
            del self._ids[key]

    async def _call(self, method: str, signature: str, arguments: tuple[Any, ...]) -> Any:
        from jeepney import DBusAddress, new_method_call
        from jeepney.wrappers import unwrap_msg

        assert self._router is not None
        message = new_method_call(DBusAddress(_PATH, _NAME, _NAME), method, signature, arguments)
        return unwrap_msg(await self._router.send_and_get_reply(message))
