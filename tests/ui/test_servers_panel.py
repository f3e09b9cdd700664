"""The servers panel on the real host and real servers: live state, what failed and the next step, consent, changes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QLineEdit, QMenu, QPushButton, QWidget

from desktop import links
from desktop.assistant import toolbox
from desktop.core import Core
from desktop.errors import CATALOGUE, AssistantError, Diagnostic
from desktop.host.server_config import ServerDefinition
from desktop.host.server_state import Failure, ServerState
from desktop.host.servers_file import read_configuration
from desktop.ui.dialogs.confirmation import _Confirmation
from desktop.ui.dialogs.log_dialog import LogDialog
from desktop.ui.dialogs.server_editor import ServerEditor
from desktop.ui.panels.server_details import FailureBlock, command_lines
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


async def failed(panel: ServersPanel, name: str, step: str = "Log") -> None:
    """Waits until a server's row says that it failed, and shows what to do: Qt shows what is new in its next pass."""
    await until(lambda: "Failed" in seen(row(panel, name)) and step in seen(row(panel, name)))


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
    commands: dict[str, Any] = {f"server-{number}": stdio(friendly("--name", str(number))) for number in range(8)}
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
    await until(lambda: "Next attempt in " in seen(row(panel, "friend")))


async def test_what_is_wrong_with_a_list_is_told_although_the_server_is_connected(core: Core) -> None:
    panel = await panel_with(core, hostile=stdio(hostile("--same-cursor")))
    allow(panel, "hostile")
    await until(lambda: "Connected" in seen(row(panel, "hostile")))
    with suppress(AssistantError):
        await core.catalog.refresh("hostile")
    await until(lambda: "The server's list is not complete" in seen(row(panel, "hostile")))


async def test_lines_that_are_no_messages_are_mentioned_and_stand_in_the_log(core: Core) -> None:
    panel = await panel_with(core, noisy=stdio(hostile("--banner")))
    allow(panel, "noisy")
    await until(lambda: "It prints lines that are no messages." in seen(row(panel, "noisy")))
    assert "Connected" in seen(row(panel, "noisy"))
    await until(lambda: "tools" in seen(row(panel, "noisy")))
    assert "It prints lines that are no messages." in seen(row(panel, "noisy"))
    assert any(line.kind == "stray" for line in core.host.connections["noisy"].log.lines())


async def test_faults_of_the_configuration_are_named_with_field_and_reason(core: Core) -> None:
    panel = await panel_with(core, good={"url": "http://127.0.0.1:9/"}, bad={"command": "x", "args": ["a", 7]})
    [fault] = panel.findChildren(FaultRow)
    assert "bad\nNot valid" in seen(fault)
    assert "at args[1] (line 1, column 95): it must be text." in seen(fault)
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


async def test_a_missing_program_says_what_to_install_and_opens_its_page(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_pages: list[str] = []

    async def open_in_browser(link: links.Link) -> bool:
        opened_pages.append(link.url)
        return True

    monkeypatch.setattr(links, "open_in_browser", open_in_browser)
    panel = await panel_with(core, gone={"command": "podman", "env": {"PATH": "/nowhere"}})
    allow(panel, "gone")
    await failed(panel, "gone", "How to install it")
    text = seen(row(panel, "gone"))
    assert "It did not start. The server's command podman was not found on this computer." in text
    assert "Install Podman, which brings it: https://podman.io/docs/installation. Then reconnect." in text
    assert "Code: runtime_missing" in text
    click(row(panel, "gone"), "How to install it")
    await until(lambda: opened_pages == ["https://podman.io/docs/installation"])


async def test_a_failed_program_is_named_with_its_path(core: Core) -> None:
    panel = await panel_with(core, broken=program("raise SystemExit(3)"))
    allow(panel, "broken")
    await until(lambda: f"Program: {sys.executable}\n" in seen(row(panel, "broken")))


@pytest.mark.parametrize("code", CATALOGUE)
def test_whatever_fails_there_is_a_step_to_take(code: str) -> None:
    block = FailureBlock(ServerState("failed"), Failure("start", Diagnostic(code)))
    steps = [each.objectName() for each in block.findChildren(QPushButton)]
    assert len(steps) == 3
    assert {"edit", "reconnect", "certificates"} & set(steps)


async def test_the_time_to_the_next_attempt_is_counted_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.ui.panels.server_details._SECOND", 20)
    block = FailureBlock(ServerState("failed", retry_in=2), Failure("running", Diagnostic("server_exited")))
    block.show()
    assert "Next attempt in 2 s." in seen(block)
    await until(lambda: "Next attempt in 1 s." in seen(block))
    block.deleteLater()


async def test_a_certificate_that_is_not_trusted_is_mended_by_choosing_a_file(core: Core, tmp_path: Path) -> None:
    panel = await panel_with(core, docs={"url": "http://127.0.0.1:9/"})
    file = tmp_path / "company.pem"
    file.write_text("no certificate at all")
    choosing = asyncio.create_task(panel.steps.choose_certificates("docs"))
    dialog = await opened(QFileDialog)
    dialog.findChildren(QLineEdit)[0].setText(str(file))
    dialog.done(1)  # as `accept` does, which asks again and blocks where it has not read the folder yet
    await choosing
    assert entries(core.servers_file)["docs"] == {"url": "http://127.0.0.1:9/", "caFile": str(file)}
    await failed(panel, "docs")
    assert "the file can't be read as certificates" in seen(row(panel, "docs"))


# Weight


async def test_what_the_tools_of_servers_weigh_is_shown_by_server_and_together(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, width=460, docs={"url": url}, other={"url": url})
        for name in ("docs", "other"):
            await core.catalog.refresh(name)
        weight = sum(toolbox.weight(tool) for tool in await core.catalog.tools("docs"))
        assert weight > 100
        await until(
            lambda: f"9 tools · ≈ {QLocale().toString(weight)} tokens · 2 resources" in seen(row(panel, "docs"))
        )
        total = QLocale().toString(panel._weights.of("docs") + panel._weights.of("other"))
        await until(lambda: f"2 of 2 connected · ≈ {total} tokens" in seen(panel))


# Changes


async def test_a_server_is_left_and_connected_again_from_its_menu(core: Core) -> None:
    async with http_server(friendly()) as url:
        panel = await panel_with(core, docs={"url": url})
        await choose(panel, "docs", "Connect")
        await until(lambda: "Connected" in seen(row(panel, "docs")))
        await choose(panel, "docs", "Disconnect")
        await until(lambda: "Idle" in seen(row(panel, "docs")))


async def test_a_copy_is_disabled_has_the_secrets_and_is_shown_in_the_editor(core: Core) -> None:
    entry = {"url": "http://127.0.0.1:9/", "headers": {"Authorization": "Bearer ${keyring:TOKEN}"}, "timeoutMs": 5000}
    panel = await panel_with(core, docs=entry)
    await core.credentials.set("server:docs:TOKEN", "a-secret-value")
    await choose(panel, "docs", "Duplicate")
    assert (await opened(ServerEditor)).windowTitle() == "Edit docs-2"
    assert entries(core.servers_file)["docs-2"] == {**entry, "disabled": True}
    assert await core.credentials.get("server:docs-2:TOKEN") == "a-secret-value"
    await until(lambda: "docs-2" in panel._rows and "Disabled" in seen(row(panel, "docs-2")))


async def test_the_file_and_the_log_are_opened_from_the_menu(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    opened_files: list[Path] = []

    async def open_path(path: Path) -> bool:
        opened_files.append(path)
        return True

    monkeypatch.setattr(links, "open_path", open_path)
    panel = await panel_with(core, docs={"url": "http://127.0.0.1:9/"})
    await choose(panel, "docs", "Show file in editor")
    await until(lambda: opened_files == [core.servers_file])
    await choose(panel, "docs", "Show log")
    assert (await opened(LogDialog)).windowTitle() == "Log of docs"


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

    def counted(self: ServerRow, connection: Any, weight: int) -> None:
        drawn.append(self.name)
        draw(self, connection, weight)

    monkeypatch.setattr(ServerRow, "show_connection", counted)
    servers: dict[str, Any] = {f"server-{number}": {"url": "http://127.0.0.1:9/"} for number in range(50)}
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
