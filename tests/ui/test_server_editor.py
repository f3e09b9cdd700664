"""Adding and changing a server in the form: what is written to the file, what goes to the keyring, what stays as it was."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from desktop.core import Core
from desktop.host.server_references import keyring_name
from desktop.ui import tasks
from desktop.ui.dialogs.import_wizard import ImportWizard
from desktop.ui.dialogs.server_editor import ServerEditor
from desktop.ui.dialogs.server_trial import ServerTrial
from desktop.ui.error_box import ErrorBox
from tests.servers.running import friendly
from tests.ui.person import button, click, entries, opened, seen, until, windows, write_servers

pytestmark = pytest.mark.anyio


@pytest.fixture
def window() -> QWidget:
    widget = QWidget()
    widget.show()
    return widget


async def editor(core: Core, window: QWidget, name: str | None = None) -> tuple[ServerEditor, asyncio.Task[int]]:
    task = tasks.start(tasks.opened(ServerEditor(core, name, window)), on_error=window)
    return await opened(ServerEditor), task


def paste(form: ServerEditor, text: str) -> None:
    source = form.findChild(QPlainTextEdit)
    source.setFocus()
    source.selectAll()
    source.insertPlainText(text)


def lines(form: ServerEditor) -> list[str]:
    """What the visible fields hold, from top to bottom."""
    return [each.text() for each in form.findChildren(QLineEdit) if each.isVisible()]


async def accepted(task: asyncio.Task[int]) -> bool:
    return bool(await asyncio.wait_for(task, 10))


async def test_a_pasted_command_becomes_a_definition(core: Core, window: QWidget) -> None:
    form, task = await editor(core, window)
    assert not button(form, "Add server").isEnabled()
    paste(form, "npx -y @modelcontextprotocol/server-filesystem '/home/me/My Files'")
    assert "A program on this computer: npx" in seen(form)
    assert lines(form)[0] == "filesystem"
    QTest.keyClicks(form.findChildren(QLineEdit)[1], "My files")
    click(form, "Add server")
    assert await accepted(task)
    assert entries(core.servers_file) == {
        "filesystem": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/My Files"],
            "description": "My files",
        }
    }


async def test_a_name_that_was_typed_is_not_overwritten(core: Core, window: QWidget) -> None:
    form, _ = await editor(core, window)
    QTest.keyClicks(form.findChildren(QLineEdit)[0], "mine")
    paste(form, "https://mcp.example.com/mcp")
    assert lines(form)[0] == "mine"


async def test_a_secret_goes_to_the_credentials_and_the_file_gets_a_reference(core: Core, window: QWidget) -> None:
    form, task = await editor(core, window)
    paste(form, "API_TOKEN=canary-123 LEVEL=debug weather-server")
    await until(lambda: lines(form)[2:] == ["API_TOKEN", "canary-123", "LEVEL", "debug"])
    assert [each.echoMode() for each in form.findChildren(QLineEdit)][3] is QLineEdit.EchoMode.Password
    click(form, "Add server")
    assert await accepted(task)
    assert "canary" not in core.servers_file.read_text()
    assert entries(core.servers_file)["weather"]["env"] == {"API_TOKEN": "${keyring:API_TOKEN}", "LEVEL": "debug"}
    assert await core.credentials.get(keyring_name("weather", "API_TOKEN")) == "canary-123"
    # The test's machine has no keyring: the person is told that the value is kept for this run only.
    assert "Keyring not available" in seen(await opened(ErrorBox))


async def test_values_of_what_was_pasted_before_do_not_stay_with_another_server(core: Core, window: QWidget) -> None:
    form, _ = await editor(core, window)
    paste(form, "API_TOKEN=canary-123 weather-server")
    await until(lambda: lines(form)[2:] == ["API_TOKEN", "canary-123"])
    paste(form, "other-server")
    await until(lambda: lines(form)[2:] == [])


async def test_headers_of_a_url_are_asked_for_as_such(core: Core, window: QWidget) -> None:
    form, task = await editor(core, window)
    paste(form, '{"docs": {"url": "https://docs.example/mcp", "headers": {"X-Team": "a"}}}')
    assert "HTTP headers" in seen(form)
    await until(lambda: len(lines(form)) == 4)
    click(form, "Add a header")
    await until(lambda: len(lines(form)) == 6)
    *_, name, value = [each for each in form.findChildren(QLineEdit) if each.isVisible()]
    QTest.keyClicks(name, "X-Region")
    QTest.keyClicks(value, "eu")
    click(form, "Add server")
    assert await accepted(task)
    assert entries(core.servers_file)["docs"] == {
        "url": "https://docs.example/mcp",
        "headers": {"X-Team": "a", "X-Region": "eu"},
    }


async def test_several_servers_are_reviewed_and_added_at_once(core: Core, window: QWidget) -> None:
    form, task = await editor(core, window)
    paste(form, '{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://b.example/"}}}')
    assert "2 servers: a, b" in seen(form)
    assert lines(form) == []
    click(form, "Review 2 servers…")
    wizard = await opened(ImportWizard)
    await until(lambda: "Import 2 servers" in seen(wizard))
    click(wizard, "Import 2 servers")
    assert await accepted(task)
    assert list(entries(core.servers_file)) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('say "x', "A quotation mark is missing."),
        ("{", "Its JSON is wrong at line 1, column 2."),
        ('{"a": 1}', "There is no server in it"),
    ],
)
async def test_what_is_not_understood_is_said_and_cannot_be_saved(
    core: Core, window: QWidget, text: str, reason: str
) -> None:
    form, _ = await editor(core, window)
    paste(form, text)
    assert reason in seen(form)
    assert not button(form, "Add server").isEnabled()


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("x", "with space", "its name must be 1 to 80 letters"),
        ("x", "taken", "a server of that name exists"),
        ("x", "deskhand", "its name is that of the built-in server"),
        ('{"url": "ftp://x/"}', "ok", "at url: it must be an http or https address"),
        ('{"command": "x", "args": "a"}', "ok", "at args: it must be a list of texts"),
    ],
)
async def test_what_is_not_valid_is_named_with_its_field_and_can_be_corrected(
    core: Core, window: QWidget, text: str, name: str, reason: str
) -> None:
    write_servers(core.servers_file, taken={"command": "old"})
    form, task = await editor(core, window)
    paste(form, text)
    field = form.findChildren(QLineEdit)[0]
    field.selectAll()
    QTest.keyClicks(field, name)
    click(form, "Add server")
    await until(lambda: reason in seen(form) and form.isEnabled())
    assert entries(core.servers_file) == {"taken": {"command": "old"}}
    paste(form, "good-command")
    assert reason not in seen(form)
    field.selectAll()
    QTest.keyClicks(field, "good")
    click(form, "Add server")
    assert await accepted(task)
    assert entries(core.servers_file)["good"] == {"command": "good-command"}


async def test_a_change_keeps_what_the_form_does_not_know(core: Core, window: QWidget) -> None:
    write_servers(
        core.servers_file,
        docs={
            "type": "stdio",
            "command": "docs-server",
            "args": ["--root", "${HOME}/My Docs"],
            "env": {"LEVEL": "${LEVEL:-info}", "TOKEN": "${keyring:docs_token}"},
            "description": "Documents",
            "timeoutMs": 5000,
            "x-note": {"kept": True},
        },
        other={"command": "x"},
    )
    before = entries(core.servers_file)
    form, task = await editor(core, window, "docs")
    assert lines(form)[:2] == ["docs", "Documents"]
    # The secret itself is not fetched.
    await until(lambda: lines(form)[2:] == ["LEVEL", "${LEVEL:-info}", "TOKEN", ""])
    click(form, "Save")
    assert await accepted(task)
    assert entries(core.servers_file) == before
    form, task = await editor(core, window, "docs")
    paste(form, "docs-server --other")
    click(form, "Save")
    assert await accepted(task)
    assert entries(core.servers_file)["docs"] == before["docs"] | {"args": ["--other"]}


async def test_a_broken_entry_is_corrected_as_json(core: Core, window: QWidget) -> None:
    write_servers(core.servers_file, bad={"command": "x", "args": ["a", 7], "env": {"A": "b"}})
    form, task = await editor(core, window, "bad")
    source = form.findChild(QPlainTextEdit)
    assert json.loads(source.toPlainText()) == {"command": "x", "args": ["a", 7], "env": {"A": "b"}}
    click(form, "Save")
    await until(lambda: "at args[1]: it must be text." in seen(form))
    paste(form, source.toPlainText().replace("7", '"7"'))
    click(form, "Save")
    assert await accepted(task)
    assert entries(core.servers_file)["bad"] == {"command": "x", "args": ["a", "7"], "env": {"A": "b"}}


async def test_comments_of_the_file_stay(core: Core, window: QWidget) -> None:
    core.servers_file.parent.mkdir(parents=True)
    core.servers_file.write_text('{"mcpServers": {} /* mine */}')
    form, task = await editor(core, window)
    paste(form, "weather-server")
    click(form, "Add server")
    assert await accepted(task)
    assert "/* mine */" in core.servers_file.read_text()
    assert '"command": "weather-server"' in core.servers_file.read_text()


async def test_a_server_that_is_gone_meanwhile_is_told(core: Core, window: QWidget) -> None:
    task = tasks.start(tasks.opened(ServerEditor(core, "gone", window)), on_error=window)
    assert "gone: No such server" in seen(await opened(ErrorBox))
    assert not await accepted(task)
    assert windows(ServerEditor) == []


def trial_text(form: ServerEditor) -> str:
    return seen(form.findChild(ServerTrial))


async def test_a_trial_shows_the_whole_command_first_and_then_what_the_server_offers(
    core: Core, window: QWidget
) -> None:
    await core.start()
    form, task = await editor(core, window)
    paste(form, f"{shlex.join(friendly())} '' '\u202eevil'")
    QTest.keyClicks(form.findChildren(QLineEdit)[0], "-x")
    click(form, "Try the connection")
    await until(lambda: "Allow to start" in trial_text(form))
    assert '""\n"\\u202Eevil"' in trial_text(form)
    assert core.host.connections.keys() == {"deskhand"}
    await until(lambda: f"Program: {sys.executable}" in trial_text(form))  # which file it is
    paste(form, shlex.join(friendly()))
    assert trial_text(form) == ""  # another command is another question
    click(form, "Try the connection")
    await until(lambda: "Allow to start" in trial_text(form))
    click(form, "Allow to start")
    await until(lambda: "It works. · 9 tools" in trial_text(form))
    assert "MCP 20" in trial_text(form)
    click(form, "Add server")
    assert await accepted(task)
    [name] = entries(core.servers_file)
    # What was allowed for the trial need not be allowed again.
    assert core.host.connections[name].state.status == "idle"


async def test_a_trial_that_fails_says_why_and_saves_nothing(core: Core, window: QWidget) -> None:
    form, _ = await editor(core, window)
    code = "import sys; print('no key', file=sys.stderr); sys.exit(3)"
    paste(form, shlex.join([sys.executable, "-c", code]))
    QTest.keyClicks(form.findChildren(QLineEdit)[0], "x")
    click(form, "Try the connection")
    await until(lambda: "Allow to start" in trial_text(form))
    click(form, "Allow to start")
    await until(lambda: "exit status 3" in trial_text(form).lower() or "status 3" in trial_text(form))
    assert "no key" in trial_text(form)
    assert "Code: server_exited" in trial_text(form)
    await until(lambda: f"Program: {sys.executable}" in trial_text(form))
    assert not core.servers_file.exists()


async def test_a_trial_uses_what_was_entered_as_a_secret_and_keeps_none_of_it(core: Core, window: QWidget) -> None:
    form, _ = await editor(core, window)
    code = "import os, sys; sys.exit(7 if os.environ['API_KEY'] == 'canary-123' else 8)"
    paste(form, "API_KEY=canary-123 " + shlex.join([sys.executable, "-c", code]))
    QTest.keyClicks(form.findChildren(QLineEdit)[0], "x")
    click(form, "Try the connection")
    await until(lambda: "Allow to start" in trial_text(form))
    assert "Environment: API_KEY" in trial_text(form)
    click(form, "Allow to start")
    await until(lambda: "status 7" in trial_text(form))
    name = form.findChildren(QLineEdit)[0].text()
    assert await core.credentials.get(keyring_name(name, "API_KEY")) is None


def sleepers() -> list[int]:
    """The processes of the server that a test starts; others may end while they are looked at."""
    found: list[int] = []
    for each in psutil.Process().children():
        with suppress(psutil.Error):
            if "time.sleep(600)" in " ".join(each.cmdline()):
                found.append(each.pid)
    return found


async def test_closing_the_form_ends_a_trial(core: Core, window: QWidget) -> None:
    form, task = await editor(core, window)
    paste(form, shlex.join([sys.executable, "-c", "import time; time.sleep(600)"]))
    QTest.keyClicks(form.findChildren(QLineEdit)[0], "x")
    click(form, "Try the connection")
    await until(lambda: "Allow to start" in trial_text(form))
    click(form, "Allow to start")
    await until(sleepers)
    assert not button(form, "Try the connection").isEnabled()
    QTest.keyClick(form, Qt.Key.Key_Escape)
    assert not await accepted(task)
    await until(lambda: not sleepers())


async def test_a_secret_s_field_holds_the_value_itself_and_an_open_one_what_the_file_has(
    core: Core, window: QWidget
) -> None:
    form, task = await editor(core, window)
    paste(form, '{"weather": {"command": "w", "env": {"API_TOKEN": "!pa$$w", "PLAIN": "!x$y"}}}')
    await until(lambda: lines(form)[2:] == ["API_TOKEN", "!pa$$w", "PLAIN", "$!x$$y"])
    click(form, "Add server")
    assert await accepted(task)
    assert await core.credentials.get(keyring_name("weather", "API_TOKEN")) == "!pa$$w"
    assert entries(core.servers_file)["weather"]["env"] == {"API_TOKEN": "${keyring:API_TOKEN}", "PLAIN": "$!x$$y"}
    await opened(ErrorBox)


async def test_what_a_link_asks_for_is_entered_and_goes_to_the_keyring(core: Core, window: QWidget) -> None:
    form, task = await editor(core, window)
    config = {
        "name": "docs",
        "url": "https://docs.example/mcp",
        "headers": {"Authorization": "Bearer ${input:token}", "X-Key": "${input:key}"},
        "inputs": [
            {"id": "token", "type": "promptString", "description": "Your token"},
            {"id": "key", "type": "promptString", "description": "Your key"},
        ],
    }
    paste(form, "vscode:mcp/install?" + quote(json.dumps(config)))
    await until(lambda: len(lines(form)) == 7)
    fields = [
        each for each in form.findChildren(QLineEdit) if each.isVisible() and each.placeholderText().startswith("Your")
    ]
    assert sorted(each.placeholderText() for each in fields) == ["Your key", "Your token"]
    for field in fields:
        QTest.keyClicks(field, f"secret {field.placeholderText()}")
    click(form, "Add server")
    assert await accepted(task)
    assert entries(core.servers_file)["docs"]["headers"] == {
        "Authorization": "Bearer ${input:token}",
        "X-Key": "${keyring:key}",
    }
    assert await core.credentials.get(keyring_name("docs", "token")) == "secret Your token"
    assert await core.credentials.get(keyring_name("docs", "key")) == "secret Your key"
    await opened(ErrorBox)


async def test_escape_changes_nothing(core: Core, window: QWidget) -> None:
    form, task = await editor(core, window)
    paste(form, "x")
    QTest.keyClick(form, Qt.Key.Key_Escape)
    assert not await accepted(task)
    assert not core.servers_file.exists()


async def test_every_field_has_a_name_for_screen_readers(core: Core, window: QWidget) -> None:
    from PySide6.QtGui import QAccessible

    form, _ = await editor(core, window)
    paste(form, "A_KEY=b x")
    for field in [*form.findChildren(QLineEdit), form.findChild(QPlainTextEdit)]:
        interface: Any = QAccessible.queryAccessibleInterface(field)
        assert interface.text(QAccessible.Text.Name), field
