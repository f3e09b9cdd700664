"""The window of a server's log on the real host and a real server: followed, filtered, copied as a report, fast."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit, QPlainTextEdit, QWidget

from desktop.core import Core
from desktop.host.connection import Connection
from desktop.host.server_log import MOST_LINES
from desktop.ui.dialogs.log_dialog import LogDialog
from tests.servers.running import hostile
from tests.ui.person import button, click, opened, seen, until, windows, write_servers

pytestmark = pytest.mark.anyio

#: What the dialogs belong to; a widget nobody holds is gone.
_windows: list[QWidget] = []


@pytest.fixture(autouse=True)
def no_window_kept() -> Iterator[None]:
    yield
    _windows.clear()


async def log_of(core: Core, **entry: object) -> tuple[LogDialog, Connection]:
    write_servers(core.servers_file, docs=entry or {"url": "http://127.0.0.1:9/"})
    await core.start()
    connection = core.host.connections["docs"]
    window = QWidget()
    _windows.append(window)
    LogDialog.open_for(connection, window)
    return await opened(LogDialog), connection


def lines(dialog: LogDialog) -> list[str]:
    """What is shown, without times."""
    text = dialog.findChildren(QPlainTextEdit)[0].toPlainText()
    return [line[9:] for line in text.split("\n") if line]


def choose(dialog: LogDialog, kind: str) -> None:
    box = dialog.findChildren(QComboBox)[0]
    box.setCurrentIndex(box.findText(kind))


async def test_it_shows_what_was_logged_follows_what_comes_and_there_is_one_window(core: Core) -> None:
    dialog, connection = await log_of(core)
    assert "Nothing has been logged yet." in seen(dialog)
    connection.log.append("line \u202e<b>x</b>")
    await until(lambda: lines(dialog) == ["deskhand line \\u202E<b>x</b>"])
    parent = dialog.parentWidget()
    assert parent is not None
    LogDialog.open_for(connection, parent)
    assert windows(LogDialog) == [dialog]
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert windows(LogDialog) == []
    connection.log.append("nobody listens any more")


async def test_lines_are_filtered_by_kind_and_by_words_and_what_comes_later_too(core: Core) -> None:
    dialog, connection = await log_of(core)
    log = connection.log
    log.feed(b"Listening on port 9\n")
    log.append("error: no disk", "message", "error")
    log.append("— connecting —")
    log.note_request("tools/list", 4, 0.01, 100, "ok")
    await until(lambda: len(lines(dialog)) == 4)
    assert lines(dialog)[0] == "stderr   Listening on port 9"
    choose(dialog, "Warnings and errors")
    assert lines(dialog) == ["error    error: no disk"]
    choose(dialog, "Requests")
    assert lines(dialog) == ["request  tools/list #4 10 ms, 100 B, ok"]
    choose(dialog, "Output of the program")
    assert lines(dialog) == ["stderr   Listening on port 9"]
    choose(dialog, "Everything")
    field = dialog.findChildren(QLineEdit)[0]
    QTest.keyClicks(field, "PORT")
    assert lines(dialog) == ["stderr   Listening on port 9"]
    log.feed(b"another line\nport 10\n")
    await until(lambda: len(lines(dialog)) == 2)
    QTest.keyClicks(field, "xyz")
    assert "No line fits the filter." in seen(dialog)


async def test_it_follows_the_end_unless_the_person_scrolls_up(core: Core) -> None:
    dialog, connection = await log_of(core)
    bar = dialog.findChildren(QPlainTextEdit)[0].verticalScrollBar()
    connection.log.extend(f"line {number}" for number in range(200))
    await until(lambda: len(lines(dialog)) == 200)
    assert bar.value() == bar.maximum() > 0
    view = dialog.findChildren(QPlainTextEdit)[0]
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_PageUp)
    await until(lambda: not button(dialog, "Follow the end").isChecked())
    place = bar.value()
    connection.log.extend(f"line {number}" for number in range(200, 300))
    await until(lambda: len(lines(dialog)) == 300)
    assert bar.value() == place
    click(dialog, "Follow the end")
    assert bar.value() == bar.maximum()


async def test_a_failed_server_is_copied_as_a_report_without_its_values(core: Core) -> None:
    dialog, connection = await log_of(
        core,
        command=sys.executable,
        args=["-c", "import sys; sys.stderr.write('boom\\n'); sys.exit(3)", "canary"],
        env={"SOME_KEY": "canary-value"},
    )
    core.host.connections["docs"]._lifecycle._consent.give(connection.definition)
    with pytest.raises(Exception, match="server_exited"):
        await connection.connect()
    await until(lambda: "stderr   boom" in lines(dialog))
    click(dialog, "Copy as a report")
    await until(lambda: "Copied." in seen(dialog))
    text = QGuiApplication.clipboard().text()
    assert "- Server: docs" in text and "[server_exited]" in text and "stderr   boom" in text
    assert f"- Program: {sys.executable}\n" in text or "- Program: ~" in text
    assert "canary" not in text


async def test_clear_empties_the_window_and_leaves_the_file(core: Core) -> None:
    dialog, connection = await log_of(core)
    connection.log.append("one")
    await until(lambda: len(lines(dialog)) == 1)
    click(dialog, "Clear")
    assert lines(dialog) == []
    connection.log.append("two")
    await until(lambda: lines(dialog) == ["deskhand two"])
    await connection.log.flush()
    assert connection.log.file is not None
    assert [line.split(" ", 2)[2] for line in connection.log.file.read_text().splitlines()] == ["one", "two"]


async def test_twenty_thousand_messages_keep_the_window_alive(core: Core) -> None:
    dialog, connection = await log_of(core)
    longest = 0.0
    flooding = True

    async def watch() -> None:
        nonlocal longest
        while flooding:
            begun = time.perf_counter()
            await asyncio.sleep(0.005)
            longest = max(longest, time.perf_counter() - begun)

    watching = asyncio.create_task(watch())
    begun = time.perf_counter()
    for number in range(20_000):
        connection.log.append(f"info: message {number} about something that happened", "message")
        if number % 100 == 0:
            await asyncio.sleep(0)
    took = time.perf_counter() - begun
    await until(lambda: lines(dialog)[-1].endswith("message 19999 about something that happened"))
    flooding = False
    await watching
    assert len(lines(dialog)) >= MOST_LINES
    assert took < 3  # 0.2 on a machine that does nothing else, as opposed to 3.3 when each line was written by itself
    assert longest < 1  # 0.05


async def test_a_server_s_requests_are_there(core: Core) -> None:
    command = hostile()
    dialog, connection = await log_of(core, command=command[0], args=command[1:])
    core.host.connections["docs"]._lifecycle._consent.give(connection.definition)
    await connection.list_tools()
    choose(dialog, "Requests")
    await until(lambda: any(line.startswith("request  tools/list #") for line in lines(dialog)))
