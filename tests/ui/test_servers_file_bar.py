"""A file of servers that is changed by hand: when it is offered, what is told of it, and what Reload and Not now do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from desktop.core import Core
from desktop.host.servers_file import add_server, set_disabled
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.main_window import MainWindow
from desktop.ui.panels.servers_file_bar import ServersFileBar
from tests.servers.running import friendly
from tests.ui.person import button, click, seen, until, write_servers

pytestmark = pytest.mark.anyio

SECRET = "canary-77ab"


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.ui.panels.servers_file_bar._INTERVAL", 20)
    monkeypatch.setattr("desktop.ui.panels.servers_file_bar._SETTLES_IN", 20)


def stdio(command: list[str], **more: Any) -> Mapping[str, Any]:
    return {"command": command[0], "args": command[1:], **more}


async def bar_with(core: Core, **servers: Mapping[str, Any]) -> ServersFileBar:
    write_servers(core.servers_file, **servers)
    await core.start()
    bar = ServersFileBar(core)
    await looked(bar)
    assert bar.isHidden()
    return bar


def shown(bar: ServersFileBar) -> str:
    """What the bar says, without the marks for names that may read from right to left."""
    return seen(bar).translate({0x200E: None, 0x2068: None, 0x2069: None}) if bar.isVisible() else ""


async def looked(bar: ServersFileBar, times: int = 4) -> None:
    """Waits until the bar has looked at the files that often, as they are now."""
    count = 0

    def counted() -> None:
        nonlocal count
        count += 1

    bar._timer.timeout.connect(counted)
    await until(lambda: count >= times)
    bar._timer.timeout.disconnect(counted)


def replaced(file: Path, content: str) -> None:
    """Writes as many editors do: a new file takes the place of the old one."""
    other = file.with_name("edited")
    other.write_text(content)
    os.replace(other, file)


async def test_what_would_change_is_told_by_names_alone(core: Core) -> None:
    bar = await bar_with(
        core,
        same={"command": "x"},
        files={"command": "files", "env": {"TOKEN": SECRET, "MODE": "a"}, "timeoutMs": 5000},
        old={"url": "https://example.org/a"},
    )
    write_servers(
        core.servers_file,
        same={"command": "x"},
        files={
            "command": "files",
            "args": [SECRET],
            "env": {"TOKEN": SECRET + "2", "MODE": "a"},
            "includeTools": ["a"],
        },
        new={"url": "https://example.org/b", "headers": {"Authorization": SECRET}},
    )
    text = await until(lambda: shown(bar))
    assert "~ files: args, env.TOKEN, includeTools, timeoutMs, startupTimeoutMs, toolTimeoutMs changed" in text
    assert "+ new: added" in text and "− old: removed" in text
    assert "same" not in text and SECRET not in text + bar.accessibleDescription()
    assert set(core.host.connections) == {"same", "files", "old", "deskhand"}


async def test_reload_takes_it_over_and_what_stays_the_same_keeps_its_connection(core: Core) -> None:
    bar = await bar_with(core, friendly=stdio(friendly()))
    await core.host.give_consent("friendly")
    connection = core.host.connection("friendly")
    await connection.connect()
    replaced(
        core.servers_file,
        json.dumps({"mcpServers": {"friendly": stdio(friendly()), "b": {"url": "https://example.org"}}}),
    )
    await until(lambda: shown(bar))
    click(bar, "Reload")
    await until(lambda: "b" in core.host.connections)
    assert core.host.connection("friendly") is connection and connection.state.status == "connected"
    await looked(bar)
    assert bar.isHidden()


async def test_not_now_hides_it_until_the_file_changes_again(core: Core) -> None:
    bar = await bar_with(core, a={"command": "x"})
    write_servers(core.servers_file, a={"command": "yy"})
    await until(lambda: shown(bar))
    click(bar, "Not now")
    os.utime(core.servers_file)
    await looked(bar)
    assert bar.isHidden()
    write_servers(core.servers_file, a={"command": "zzz"})
    await until(bar.isVisible)
    write_servers(core.servers_file, a={"command": "x"})  # as it was
    await until(bar.isHidden)


async def test_deskhands_own_writes_and_mere_formatting_are_not_offered(core: Core) -> None:
    bar = await bar_with(core, a={"command": "x"})
    await asyncio.to_thread(add_server, core.servers_file, "b", {"command": "y"})
    await core.reload_servers()
    await core.set_disabled("b", True)
    await looked(bar)
    assert bar.isHidden()
    core.servers_file.write_text("// mine\n" + core.servers_file.read_text())
    await looked(bar)
    assert bar.isHidden()


async def test_a_file_that_cannot_be_read_says_where_and_leaves_what_runs(core: Core) -> None:
    bar = await bar_with(core, friendly=stdio(friendly()))
    await core.host.give_consent("friendly")
    connection = core.host.connection("friendly")
    await connection.connect()
    core.servers_file.write_text('{"mcpServers": {\n  "a": }}')
    text = await until(lambda: shown(bar))
    assert "its JSON is wrong at line 2, column 8" in text
    assert "Reload" not in text and "Open file" in text
    await core.reload_servers()  # by another way
    assert core.host.connection("friendly") is connection and connection.state.status == "connected"
    assert [fault.code for fault in core.host.faults] == ["configuration_unreadable"]
    assert (await connection.call_tool("echo", {"text": "still"})).content


async def test_an_entry_that_is_not_valid_any_more_is_named_and_its_server_runs_on(core: Core) -> None:
    bar = await bar_with(core, friendly=stdio(friendly()), gone={"command": "x"})
    await core.host.give_consent("friendly")
    connection = core.host.connection("friendly")
    await connection.connect()
    write_servers(core.servers_file, friendly=stdio(friendly(), timeoutMs=1), new={"command": "y"})
    text = await until(lambda: shown(bar))
    assert "✘ friendly: The definition is not valid at timeoutMs (line 1, column " in text
    assert "What is not valid stays as it was." in text and "− gone: removed" in text
    click(bar, "Reload")
    await until(lambda: "new" in core.host.connections)
    assert core.host.connection("friendly") is connection and connection.state.status == "connected"
    write_servers(core.servers_file, new={"command": "y"})
    await until(lambda: "− friendly: removed" in shown(bar))
    click(bar, "Reload")
    await until(lambda: "friendly" not in core.host.connections)


async def test_a_broken_file_at_the_start_is_mended_by_reload(core: Core) -> None:
    core.servers_file.parent.mkdir(parents=True)
    core.servers_file.write_text("{")
    await core.start()
    bar = ServersFileBar(core)
    await looked(bar)
    assert bar.isHidden()  # the panel says it
    write_servers(core.servers_file, a={"command": "x"})
    await until(lambda: shown(bar))
    click(bar, "Reload")
    await until(lambda: "a" in core.host.connections and not core.host.faults)


async def test_the_main_window_shows_it_above_everything_and_the_chat_keeps_the_keyboard(core: Core) -> None:
    write_servers(core.servers_file, a={"command": "x"})
    answers = PersonAnswers()
    window = MainWindow(core, answers)
    window.show()
    await core.start()
    [bar] = window.findChildren(ServersFileBar)
    await looked(bar)
    focused = window.focusWidget()
    write_servers(core.servers_file, a={"command": "y"})
    assert "~ a: command changed" in await until(lambda: shown(bar))
    assert bar.mapTo(window, bar.rect().bottomLeft()).y() <= window.chat.mapTo(window, window.chat.rect().topLeft()).y()
    assert window.focusWidget() is focused
    window.close()


async def test_the_keyboard_alone_takes_over_a_change(core: Core) -> None:
    bar = await bar_with(core, a={"command": "x"})
    write_servers(core.servers_file, b={"command": "x"})
    await until(lambda: shown(bar))
    for name in ("Reload", "Not now"):
        assert button(bar, name).focusPolicy() & Qt.FocusPolicy.TabFocus
    button(bar, "Reload").setFocus()
    QTest.keyClick(button(bar, "Reload"), Qt.Key.Key_Space)
    await until(lambda: "b" in core.host.connections)


async def test_many_changes_hostile_names_and_a_file_that_is_gone_are_told_within_bounds(core: Core) -> None:
    bar = await bar_with(core, a={"command": "x"})
    core.servers_file.write_text(
        json.dumps({"mcpServers": {f"s{n}": {"command": "x"} for n in range(300)} | {"a\u202e\n": {"command": "x"}}})
    )
    text = await until(lambda: shown(bar))
    assert "and 297 more" in text and "\u202e" not in text
    core.servers_file.unlink()
    await until(lambda: "− a: removed" in shown(bar))


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
async def test_a_file_behind_a_link_is_followed(core: Core, tmp_path: Path) -> None:
    bar = await bar_with(core, a={"command": "x"})
    elsewhere = tmp_path / "elsewhere.json"
    os.replace(core.servers_file, elsewhere)
    core.servers_file.symlink_to(elsewhere)
    await looked(bar)
    assert bar.isHidden()
    set_disabled(core.servers_file, "a", True)
    assert "~ a: disabled changed" in await until(lambda: shown(bar))
