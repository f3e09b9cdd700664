"""The watches panel on a real server: watching from the catalog, changes, what is opened, seen, kept and stopped."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit

from desktop.catalog_entries import ResourceEntry
from desktop.core import Core
from desktop.ui.dialogs.changed_resource import ChangedResource
from desktop.ui.error_box import ErrorBox
from desktop.ui.main_window import MainWindow
from tests.servers.running import changing
from tests.ui.person import click, opened, seen, until, windows, write_servers

pytestmark = pytest.mark.anyio


async def window_with(core: Core, *switches: str) -> MainWindow:
    command = changing(*switches)
    write_servers(core.servers_file, state={"command": sys.executable, "args": command[1:]})
    window = MainWindow(core, core.approvals._approver)  # type: ignore[arg-type]  # the fixture's `PersonAnswers`
    window.resize(1200, 760)
    window.show()
    await core.start()
    await core.host.give_consent("state")
    await core.catalog.refresh("state")
    return window


async def touch(core: Core, uri: str) -> None:
    await core.host.connection("state").call_tool("touch", {"uri": uri})


def text(dialog: ChangedResource) -> str:
    return dialog.findChildren(QPlainTextEdit)[0].toPlainText()


async def test_a_resource_is_watched_from_the_catalog_opened_when_it_changed_and_stopped(core: Core) -> None:
    window = await window_with(core)
    window.panels.setCurrentWidget(window.watches)
    assert "Nothing is watched." in seen(window.watches)
    entry = next(each for each in core.catalog.entries() if isinstance(each, ResourceEntry) and each.uri == "state://1")
    window.catalog.watch_requested.emit(entry)
    panel = window.watches
    await until(lambda: "Watched since" in seen(panel))
    assert panel.model.index(0).data() == "1"
    await touch(core, "state://1")
    await until(lambda: "Changed last at" in seen(panel))
    await until(lambda: window.panels.tabText(2) == "Watches (1)")
    panel.view.setFocus()
    QTest.keyClick(panel.view, Qt.Key.Key_Return)
    dialog = await opened(ChangedResource)
    await until(lambda: text(dialog) == "state://1 (text/plain):\nversion 1")
    await until(lambda: window.panels.tabText(2) == "Watches")
    click(dialog, "Close")
    await until(lambda: not windows(ChangedResource))
    await touch(core, "state://1")
    await until(lambda: window.panels.tabText(2) == "Watches (1)")
    click(panel, "Open what changed")
    dialog = await opened(ChangedResource)
    await until(lambda: text(dialog).splitlines()[2:] == ["-version 1", "+version 2"])
    QTest.keyClick(dialog.difference_box, Qt.Key.Key_Space)
    await until(lambda: text(dialog).endswith("\nversion 2"))
    dialog.reject()
    await until(lambda: not windows(ChangedResource))
    QTest.keyClick(panel.keep_box, Qt.Key.Key_Space)
    await until(lambda: core.watches.all[0].kept)
    click(panel, "Stop watching")
    await until(lambda: "Nothing is watched." in seen(panel))
    assert core.watches.all == []


async def test_a_change_can_be_marked_as_seen_and_the_resource_attached(core: Core) -> None:
    window = await window_with(core, "--modern")
    window.panels.setCurrentWidget(window.watches)
    window.watches.watch(ResourceEntry("state", "state://2", "Two \u202e <b>"))
    await until(lambda: "Watched since" in seen(window.watches))
    assert window.watches.model.index(0).data() == "Two \\u202E <b>"
    await touch(core, "state://2")
    await until(lambda: window.panels.tabText(2) == "Watches (1)")
    click(window.watches, "Mark as seen")
    await until(lambda: window.panels.tabText(2) == "Watches")
    click(window.watches, "Attach")
    await until(lambda: window.chat._composer.draft.attached)


async def test_what_can_not_be_watched_says_why(core: Core) -> None:
    window = await window_with(core, "--deaf")
    window.watches.watch(ResourceEntry("state", "state://1", "One"))
    box = await opened(ErrorBox)
    assert "doesn't tell when this resource changes" in seen(box)
    box.close()
    await until(lambda: core.watches.all == [])
