"""The servers panel on the real host and real servers: live state, what failed and the next step, consent, changes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psutil
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QPushButton, QWidget

from desktop.core import Core
from desktop.errors import AssistantError
from desktop.host.server_config import ServerDefinition
from desktop.host.servers_file import read_configuration
from desktop.ui.dialogs.confirmation import _Confirmation
from desktop.ui.dialogs.server_editor import ServerEditor
from desktop.ui.panels.server_details import command_lines
from desktop.ui.panels.server_rows import FaultRow, ServerRow
from desktop.ui.panels.servers_panel import ServersPanel
from tests.servers.running import friendly, hostile, http_server
from tests.ui.person import button, click, entries, opened, seen, until, windows, write_servers

pytestmark = pytest.mark.anyio


def stdio(command: list[str], **more: Any) -> Mapping[str, Any]:
    return {"command": command[0], "args": command[1:], **more}


def program(code: str, **more: Any) -> Mapping[str, Any]:
    return stdio([sys.executable, "-c", code], **more)


async def panel_with(core: Core, *, width: int = 320, **servers: Mapping[str, Any]) -> ServersPanel:
    """The panel, shown, with servers that all may be started."""
    write_servers(core.servers_file, **servers)
    panel = ServersPanel(core)
    panel.resize(width, 700)
    panel.show()
    await core.start()
    await until(lambda: "Starting" not in seen(panel))
    return panel


def row(panel: ServersPanel, name: str) -> ServerRow:
    return panel._rows[name]


async def failed(panel: ServersPanel, name: str) -> None:
    """Waits until a server's row says that it failed, and shows what to do: Qt shows what is new in its next pass."""
    await until(lambda: "Failed" in seen(row(panel, name)) and "Log" in seen(row(panel, name)))


def allow(panel: ServersPanel, name: str) -> None:
    click(row(panel, name), "Allow to start")


async def choose(panel: ServersPanel, name: str, action: str) -> None:
    """Opens a server's menu with its button and chooses an action with the mouse."""
    click(row(panel, name), f"Actions for {name}")
    menu = await opened(QMenu)
    [entry] = [each for each in menu.actions() if each.text() == action]
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(entry).center())


# States


async def test_without_servers_it_says_what_they_are_and_how_to_add_one(core: Core) -> None:
    panel = await panel_with(core)
    assert "No servers yet" in seen(panel)
    assert "paste the command, the URL or the JSON" in seen(panel)
    [add] = [each for each in panel.findChildren(QPushButton) if each.text() == "Add a server"]
    QTest.mouseClick(add, Qt.MouseButton.LeftButton)
    editor = await opened(ServerEditor)
    assert editor.windowTitle() == "Add a server"


async def test_before_the_core_has_started_it_says_so(core: Core) -> None:
    panel = ServersPanel(core)
    panel.show()
    assert "Starting…" in seen(panel)


async def test_a_connected_server_shows_its_state_in_a_word_a_glyph_and_its_offer(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url, "description": "Notes"})
        assert "Idle\n· \u2068Notes\u2069" in seen(row(panel, "docs"))
        await core.catalog.refresh("docs")
        await until(lambda: "9 tools" in seen(row(panel, "docs")))
        text = seen(row(panel, "docs"))
        assert "●" in text
        assert "Connected" in text
        assert "MCP 20" in text
        assert row(panel, "docs").accessibleName() == "docs, Connected"
        assert "1 of 1 connected" in seen(panel)


async def test_the_built_in_server_stands_last_and_cannot_be_removed(core: Core) -> None:
    panel = await panel_with(core, zebra={"url": "http://127.0.0.1:9/"})
    QTest.keyClick(row(panel, "deskhand"), Qt.Key.Key_Delete)
    await asyncio.sleep(0.02)
    assert windows(_Confirmation) == []
    assert list(panel._rows) == ["zebra", "deskhand"]
    click(row(panel, "deskhand"), "Actions for deskhand")
    menu = await opened(QMenu)
    assert [each.text() for each in menu.actions()] == ["Connect", "Show log"]


# Consent


async def test_consent_shows_the_whole_command_an_argument_a_line_with_nothing_hidden(core: Core) -> None:
    long = "x" * 4000
    panel = await panel_with(
        core,
        mailer={
            "command": "mail-server",
            "args": ["--root", "/home/me/My Mail", "sneaky\u202etxt.exe", "two\nlines", "", long],
            "env": {"MAIL_TOKEN": "canary-secret", "HOST": "h"},
            "cwd": "/srv",
        },
    )
    text = seen(row(panel, "mailer"))
    shown = ["mail-server", "--root", '"/home/me/My Mail"', '"sneaky\\u202Etxt.exe"', '"two\\nlines"', '""', long]
    assert "\n".join(shown) in text
    assert "Folder: /srv" in text
    assert "Environment: HOST, MAIL_TOKEN" in text
    assert "canary" not in text
    assert "Asks to start" in text
    assert button(row(panel, "mailer"), "Allow to start").isEnabled()


def test_no_two_commands_look_alike() -> None:
    arguments = [
        ("a\nb",),
        ("a", "b"),
        ("a\\nb",),
        ('"a\\nb"',),
        ("a\u202eb",),
        ("a\\u202Eb",),
        ("a b",),
        ('"a b"',),
        ("",),
        ('""',),
    ]
    arguments += [("a\tb",), ("a\r\nb",), ("a\rb",), (" ",), ("\u00a0",)]
    shown = [command_lines(ServerDefinition("s", "stdio", "run", each)) for each in arguments]
    assert len(set(shown)) == len(arguments)
    assert [len(each.split("\n")) - 1 for each in shown] == [len(each) for each in arguments]


async def test_the_keyboard_and_the_view_stay_with_a_server_that_was_allowed(core: Core) -> None:
    commands = {f"server-{number}": stdio(friendly("--name", str(number))) for number in range(8)}
    panel = await panel_with(core, **commands)
    panel.activateWindow()
    button_ = button(row(panel, "server-0"), "Allow to start")
    button_.setFocus()
    QTest.keyClick(button_, Qt.Key.Key_Space)
    await until(lambda: "Connected" in seen(row(panel, "server-0")))
    assert QApplication.focusWidget() is row(panel, "server-0")
    assert panel._area.verticalScrollBar().value() == 0


async def test_nothing_starts_before_consent_and_the_server_connects_after_it(core: Core) -> None:
    panel = await panel_with(core, friend=stdio(friendly(), start="launch"))
    assert core.host.connections["friend"].state.status == "needs_consent"
    allow(panel, "friend")
    await until(lambda: "Connected" in seen(row(panel, "friend")))
    assert "Allow to start" not in seen(row(panel, "friend"))
    await until(lambda: "9 tools · 2 resources" in seen(row(panel, "friend")))


async def test_consent_is_never_given_to_a_command_that_was_not_shown(core: Core) -> None:
    panel = await panel_with(core, friend=stdio(friendly()))
    # The file changes, and the panel has not drawn it yet when the button is pressed.
    write_servers(core.servers_file, friend=program("print('another command')"))
    await core.host.reload(read_configuration(core.servers_file))
    allow(panel, "friend")
    await until(lambda: "another command" in seen(row(panel, "friend")))
    assert core.host.connections["friend"].state.status == "needs_consent"
    assert friendly()[1] not in seen(row(panel, "friend"))


# Failures


async def test_a_server_that_ends_shows_stage_status_last_lines_and_the_next_step(core: Core) -> None:
    code = "import sys; sys.stderr.write('loading\\nboom: no <b>token</b>\\n'); sys.exit(3)"
    panel = await panel_with(core, broken=program(code))
    allow(panel, "broken")
    await failed(panel, "broken")
    text = seen(row(panel, "broken"))
    assert "No connection came about. The server's process ended with status 3." in text
    assert "loading\nboom: no <b>token</b>" in text
    steps = [each.text() for each in row(panel, "broken").findChildren(QPushButton) if each.isVisible()]
    assert steps == ["Reconnect", "Log", "Edit"]


async def test_a_command_that_is_not_there_asks_for_an_edit_first(core: Core) -> None:
    panel = await panel_with(core, gone={"command": "no-such-program-anywhere"})
    allow(panel, "gone")
    await failed(panel, "gone")
    assert "It did not start. The server's command was not found on this computer." in seen(row(panel, "gone"))
    steps = [each for each in row(panel, "gone").findChildren(QPushButton) if each.isVisible()]
    assert steps[0].text() == "Edit"
    QTest.keyClick(steps[0], Qt.Key.Key_Space)
    assert (await opened(ServerEditor)).windowTitle() == "Edit gone"


async def test_reconnect_tries_again(core: Core, tmp_path: Any) -> None:
    flag = tmp_path / "flag"
    code = (
        f"import os, sys\nif not os.path.exists({str(flag)!r}): sys.exit(1)\n"
        f"os.execv({sys.executable!r}, {friendly()!r})"
    )
    panel = await panel_with(core, late=program(code))
    allow(panel, "late")
    await failed(panel, "late")
    flag.touch()
    click(row(panel, "late"), "Reconnect")
    await until(lambda: "Connected" in seen(row(panel, "late")))


async def test_a_server_that_dies_turns_red_at_once_and_says_when_it_is_tried_again(core: Core) -> None:
    panel = await panel_with(core, friend=stdio(friendly()))
    allow(panel, "friend")
    await until(lambda: "Connected" in seen(row(panel, "friend")))
    connection = core.host.connections["friend"]
    died = asyncio.Event()
    connection.state_changed.connect(lambda: died.set() if connection.state.status == "failed" else None)
    [child] = [each for each in psutil.Process().children() if "friendly.py" in " ".join(each.cmdline())]
    child.kill()
    await asyncio.wait_for(died.wait(), 5)
    started = time.monotonic()
    await until(lambda: "It was connected and stopped working." in seen(row(panel, "friend")))
    assert time.monotonic() - started < 0.5
    assert "Next attempt in 1 s." in seen(row(panel, "friend"))


async def test_what_is_wrong_with_a_list_is_told_although_the_server_is_connected(core: Core) -> None:
    panel = await panel_with(core, hostile=stdio(hostile("--same-cursor")))
    allow(panel, "hostile")
    await until(lambda: "Connected" in seen(row(panel, "hostile")))
    with suppress(AssistantError):
        await core.catalog.refresh("hostile")
    await until(lambda: "The server's list is not complete" in seen(row(panel, "hostile")))


async def test_faults_of_the_configuration_are_named_with_field_and_reason(core: Core) -> None:
    panel = await panel_with(core, good={"url": "http://127.0.0.1:9/"}, bad={"command": "x", "args": ["a", 7]})
    [fault] = panel.findChildren(FaultRow)
    assert "bad\nNot valid" in seen(fault)
    assert "at args[1]: it must be text." in seen(fault)
    assert "good" in panel._rows
    click(fault, "Edit")
    editor = await opened(ServerEditor)
    await until(lambda: '"args"' in seen(editor))


async def test_a_file_that_cannot_be_read_is_named_and_left_as_it_is(core: Core) -> None:
    core.servers_file.parent.mkdir(parents=True)
    core.servers_file.write_text('{"mcpServers": {')
    panel = ServersPanel(core)
    panel.show()
    await core.start()
    await until(lambda: "Configuration file" in seen(panel))
    assert "can't be read" in seen(panel)
    assert button(panel, "Open file").isEnabled()
    assert core.servers_file.read_text() == '{"mcpServers": {'


# Changes


async def test_a_server_is_disabled_and_enabled_in_the_file_and_in_the_list(core: Core) -> None:
    panel = await panel_with(core, docs={"url": "http://127.0.0.1:9/"}, other={"url": "http://127.0.0.1:9/"})
    kept = row(panel, "other")
    await choose(panel, "docs", "Disable")
    await until(lambda: "Disabled" in seen(row(panel, "docs")))
    assert entries(core.servers_file)["docs"]["disabled"] is True
    await choose(panel, "docs", "Enable")
    await until(lambda: "Idle" in seen(row(panel, "docs")))
    assert entries(core.servers_file)["docs"]["disabled"] is False
    assert row(panel, "other") is kept


async def test_removing_asks_first_and_enter_means_no(core: Core) -> None:
    panel = await panel_with(core, docs={"url": "http://127.0.0.1:9/"}, other={"url": "http://127.0.0.1:9/"})
    row(panel, "docs").setFocus()
    QTest.keyClick(row(panel, "docs"), Qt.Key.Key_Delete)
    question = await opened(_Confirmation)
    assert "Remove docs?" in seen(question)
    QTest.keyClick(question, Qt.Key.Key_Return)
    await until(lambda: not windows(_Confirmation))
    assert set(entries(core.servers_file)) == {"docs", "other"}
    await choose(panel, "docs", "Remove…")
    click(await opened(_Confirmation), "Remove")
    await until(lambda: "docs" not in panel._rows)
    assert set(entries(core.servers_file)) == {"other"}


# Keyboard, accessibility, size


async def test_the_list_is_used_by_keyboard_alone(core: Core) -> None:
    panel = await panel_with(core, a={"url": "http://127.0.0.1:9/"}, b={"url": "http://127.0.0.1:9/"})
    panel.activateWindow()
    panel.focus_server()
    await until(lambda: QApplication.focusWidget() is row(panel, "a"))
    QTest.keyClick(row(panel, "a"), Qt.Key.Key_Down)
    assert QApplication.focusWidget() is row(panel, "b")
    QTest.keyClick(row(panel, "b"), Qt.Key.Key_Up)
    QTest.keyClick(row(panel, "a"), Qt.Key.Key_Return)
    menu = await opened(QMenu)
    assert menu.accessibleName() == "Actions for a"
    menu.close()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(1, 1), QPoint(1, 1))
    QApplication.sendEvent(row(panel, "b"), event)
    assert (await opened(QMenu)).accessibleName() == "Actions for b"


async def test_nothing_of_a_server_is_read_as_markup(core: Core) -> None:
    panel = await panel_with(core, docs={"url": "http://127.0.0.1:9/", "description": "<b>bold</b> <img src=x>\u202e"})
    assert "<b>bold</b> <img src=x>\\u202E" in seen(row(panel, "docs"))
    assert {label.textFormat() for label in panel.findChildren(QLabel)} == {Qt.TextFormat.PlainText}


async def test_no_text_is_cut_off_in_a_narrow_panel(core: Core) -> None:
    panel = await panel_with(core, width=250, gone={"command": "no-such-program-anywhere"}, other={"command": "x"})
    allow(panel, "gone")
    await failed(panel, "gone")
    await asyncio.sleep(0.05)
    for label in panel.findChildren(QLabel):
        if label.isVisible() and label.wordWrap():
            assert label.height() >= label.heightForWidth(label.width()), label.text()
    for each in panel.findChildren(QWidget):
        if each.isVisible():
            right = each.mapTo(panel, QPoint(each.width(), 0)).x()
            assert right <= panel.width(), each


async def test_fifty_servers_are_drawn_quickly_and_a_storm_of_changes_a_few_times(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    draw = ServerRow.show_connection

    def counted(self: ServerRow, connection: Any) -> None:
        drawn.append(self.name)
        draw(self, connection)

    monkeypatch.setattr(ServerRow, "show_connection", counted)
    servers = {f"server-{number}": {"url": "http://127.0.0.1:9/"} for number in range(50)}
    panel = await panel_with(core, **servers)
    assert len(panel._rows) == 51
    drawn.clear()
    for _ in range(40):
        for name in servers:
            core.host.state_changed.emit(name)
        await asyncio.sleep(0)
    await until(lambda: len(drawn) >= 50)
    await asyncio.sleep(0.1)
    assert len(drawn) <= 50 * 6  # 2,000 changes
    started = time.perf_counter()
    panel._servers_changed()
    panel._draw()
    assert time.perf_counter() - started < 0.1
