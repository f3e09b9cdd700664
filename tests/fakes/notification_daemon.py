#!/usr/bin/env python3
"""A desktop's notification service on the session bus, as a process: it prints a JSON line for whatever is asked of it.

Lines of its input: ``click ID``, ``close ID`` (the person puts it away). ``--plain``: it takes no markup. ``--tray``: it is the
host of a tray as well (StatusNotifierItem); ``menu TEXT`` chooses an entry of the first icon's menu there.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from itertools import count
from typing import Any

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.threading import DBusRouter, open_dbus_connection

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
WATCHER = "org.kde.StatusNotifierWatcher"
EMITTER = DBusAddress(PATH, interface=NAME)
ids = count(1)
items: list[tuple[str, str]] = []


def say(**line: Any) -> None:
    print(json.dumps({"time": time.monotonic(), **line}), flush=True)


def answer(message: Message) -> Message | None:
    member = message.header.fields[HeaderFields.member]
    match member:
        case "GetCapabilities":
            return new_method_return(
                message, "as", (["actions", "body", *([] if "--plain" in sys.argv else ["body-markup"])],)
            )
        case "GetServerInformation":
            return new_method_return(message, "ssss", ("recorder", "Deskhand's tests", "1", "1.2"))
        case "Notify":
            _, replaces, _, title, body, actions, hints, _ = message.body
            id_ = replaces or next(ids)
            entry = hints["desktop-entry"][1]
            say(event="notify", id=id_, replaces=replaces, title=title, body=body, actions=actions, entry=entry)
            return new_method_return(message, "u", (id_,))
        case "CloseNotification":
            say(event="withdrawn", id=message.body[0])
            return new_method_return(message)
        case "RegisterStatusNotifierItem":
            sender, given = message.header.fields[HeaderFields.sender], message.body[0]
            items.append((sender, given) if given.startswith("/") else (given, "/StatusNotifierItem"))
            say(event="icon")
            return new_method_return(message)
        case "Get":  # of the watcher: a host is there, in that version
            name = message.body[1]
            values = {
                "IsStatusNotifierHostRegistered": ("b", True),
                "ProtocolVersion": ("i", 0),
                "RegisteredStatusNotifierItems": ("as", [bus + path for bus, path in items]),
            }
            return new_method_return(message, "v", (values[name],))
    return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod")


def choose(text: str) -> None:
    """Clicks an entry of the icon's menu."""
    with open_dbus_connection() as connection:
        router = DBusRouter(connection)

        def call(path: str, interface: str, method: str, signature: str, *arguments: Any) -> tuple[Any, ...]:
            address = DBusAddress(path, items[0][0], interface)
            return router.send_and_get_reply(new_method_call(address, method, signature, arguments), timeout=10).body

        menu = "com.canonical.dbusmenu"
        path = call(items[0][1], "org.freedesktop.DBus.Properties", "Get", "ss", "org.kde.StatusNotifierItem", "Menu")
        (_, (_, _, entries)) = call(path[0][1], menu, "GetLayout", "iias", 0, -1, [])
        names = {entry[1]["label"][1]: entry[0] for _, entry in entries if "label" in entry[1]}
        say(event="menu", entries=list(names))
        if text in names:
            call(path[0][1], menu, "Event", "isvu", names[text], "clicked", ("s", ""), 0)
        router.close()


def main() -> None:
    with open_dbus_connection() as connection:

        def emit(member: str, signature: str, *arguments: Any) -> None:
            connection.send(new_signal(EMITTER, member, signature, arguments))

        def read() -> None:
            for line in sys.stdin:
                word, _, rest = line.strip().partition(" ")
                if word == "click":
                    emit("ActionInvoked", "us", int(rest), "default")
                if word in ("click", "close"):
                    emit("NotificationClosed", "uu", int(rest), 2)
                if word == "menu":
                    choose(rest)

        names = [NAME, *([WATCHER] if "--tray" in sys.argv else [])]
        for name in names:
            connection.send(message_bus.RequestName(name))
        owned = 0
        while True:
            message = connection.receive()
            if message.header.message_type is MessageType.method_return and message.body == (1,):
                owned += 1
                if owned == len(names):
                    say(event="ready")
                    threading.Thread(target=read, daemon=True).start()
            elif message.header.message_type is MessageType.method_call:
                connection.send(answer(message) or new_method_return(message))


if __name__ == "__main__":
    main()
