"""Notifications of changed resources on a real session bus: what they say, how many, what a click does, the tray's menu."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from desktop.core import Core
from desktop.host.watches import Watch
from desktop.ui import notifications
from desktop.ui.main_window import MainWindow
from tests.desktop_session import end, session_bus
from tests.servers.running import changing
from tests.ui.person import click, seen, until, write_servers

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the tray's icon tells"),
]

DAEMON = Path(__file__).parents[1] / "fakes" / "notification_daemon.py"


class Daemon:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    def texts(self) -> list[tuple[str, str]]:
        return [(each["title"], each["body"]) for each in self.of("notify")]

    def type(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.terminate()
        self._reader.join(5)
        end(self._process)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))


@contextmanager
def daemon(*switches: str) -> Iterator[Daemon]:
    process = subprocess.Popen(
        [sys.executable, str(DAEMON), *switches], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    running = Daemon(process)
    try:
        yield running
    finally:
        running.end()


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with session_bus() as address:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        yield


async def window_in_background(core: Core, monkeypatch: pytest.MonkeyPatch, count: int = 1) -> MainWindow:
    """A window behind others, and so many resources watched: the first has a name that is no markup."""
    write_servers(core.servers_file, state={"command": sys.executable, "args": changing()[1:]})
    window = MainWindow(core, core.approvals._approver)  # type: ignore[arg-type]  # the fixture's `PersonAnswers`
    window.resize(1200, 760)
    window.show()
    await core.start()
    await core.host.give_consent("state")
    await core.catalog.refresh("state")
    for number in range(1, count + 1):
        await core.watches.add("state", f"state://{number}", f"<b>{number}</b>\u202e & more")
    monkeypatch.setattr(QApplication, "activeWindow", staticmethod(lambda: None))
    return window


async def touch(core: Core, *numbers: int) -> None:
    for number in numbers:
        await core.host.connection("state").call_tool("touch", {"uri": f"state://{number}"})


async def test_a_change_is_told_once_in_a_period_and_a_click_opens_the_watch(
    core: Core, bus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "_PERIOD", 2.0)
    with daemon() as service:
        await until(lambda: service.of("ready"))
        window = await window_in_background(core, monkeypatch, 2)
        window.hide()
        await touch(core, 2)
        await until(lambda: service.of("notify"))
        told = service.of("notify")[0]
        assert told["title"] == "<b>2</b>\\u202E & more changed"
        assert told["body"] == "Watched on the server state"
        assert (told["actions"], told["entry"]) == (["default", "Open"], "deskhand")
        await touch(core, 2)
        await touch(core, 2)
        await until(lambda: len(service.of("notify")) == 2)
        again = service.of("notify")[1]
        assert again["replaces"] == told["id"]
        assert again["time"] - told["time"] >= 2.0
        service.type(f"click {told['id']}")
        await until(lambda: window.watches.isVisible())
        assert window.watches.model.watch(window.watches.view.currentIndex()) is core.watches.all[1]


async def test_many_changes_are_one_notification_whose_body_is_no_markup(
    core: Core, bus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon() as service:
        await until(lambda: service.of("ready"))
        await window_in_background(core, monkeypatch, 4)
        await touch(core, 1, 2, 3, 4)
        await until(lambda: service.of("notify"))
        [(title, body)] = service.texts()
        *names, last = body.splitlines()
        assert (title, last) == ("4 watched resources changed", "and 1 more")
        name = "&lt;b&gt;{}&lt;/b&gt;\\u202E &amp; more · state"
        assert len(names) == 3 and set(names) < {name.format(number) for number in (1, 2, 3, 4)}
        for watch in core.watches.all:
            core.watches.mark_seen(watch)
        await until(lambda: service.of("withdrawn"))


async def test_nothing_is_told_while_notifications_are_paused(
    core: Core, bus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon() as service:
        await until(lambda: service.of("ready"))
        window = await window_in_background(core, monkeypatch, 2)
        monkeypatch.setattr(notifications, "_PERIOD", 0.1)
        core.settings.change(notifications_paused=True)
        await touch(core, 1)
        await until(lambda: not window.notifications._pending and core.watches.all[0].unseen)
        await until(lambda: window.notifications._telling is not None and window.notifications._telling.done())
        core.settings.change(notifications_paused=False)
        await touch(core, 2)
        await until(lambda: service.of("notify"))
        assert [title for title, _ in service.texts()] == ["<b>2</b>\\u202E & more changed"]


async def test_the_window_tells_itself_where_nothing_else_does(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=" + os.devnull)
    window = await window_in_background(core, monkeypatch)
    await touch(core, 1)
    await until(lambda: window._changes_bar.isVisible())
    assert "\u2068<b>1</b>\\u202E & more\u2069 changed on the server \u2068state\u2069" in seen(window._changes_bar)
    click(window._changes_bar, "Show")
    await until(lambda: window.watches.isVisible())
    assert not window._changes_bar.isVisible()


async def test_the_trays_menu_names_what_changed_and_pauses_and_quits(
    core: Core, bus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.settings.change(notifications_paused=True)
    window = await window_in_background(core, monkeypatch, 11)

    def entries() -> list[str]:
        return [action.text() for action in window.tray.menu.actions() if not action.isSeparator()]

    def choose(text: str) -> None:
        next(action for action in window.tray.menu.actions() if action.text() == text).trigger()

    assert entries() == ["Show", "New conversation", "Pause notifications", "Quit"]
    await touch(core, *range(1, 12))
    await until(lambda: all(watch.unseen for watch in core.watches.all))
    latest: Watch = max(core.watches.all, key=lambda watch: watch.changed_at or 0)
    name = f"<b>{latest.uri.removeprefix('state://')}</b>\\u202E && more · state"
    await until(lambda: entries()[2] == name)
    assert len(entries()) == 14
    choose(entries()[2])
    assert window.watches.model.watch(window.watches.view.currentIndex()) is latest
    choose("Pause notifications")
    assert not core.settings.values.notifications_paused
    closed: list[bool] = []
    window.closed.connect(lambda: closed.append(True))
    monkeypatch.setattr(type(window.tray), "available", True)
    core.settings.change(told_of_tray=True)
    window.close()
    assert (window.isVisible(), closed) == (False, [])
    choose("Show")
    assert window.isVisible()
    choose("Quit")
    assert (window.isVisible(), closed) == (False, [True])
