"""The workspace in the window: opened, asked about, closed, remembered; by mouse and by keyboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QLineEdit, QMenu, QWidget

from desktop.core import Core
from desktop.host.server_references import keyring_name
from desktop.host.workspace import secret_name
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.dialogs.confirmation import _Confirmation
from desktop.ui.dialogs.server_editor import ServerEditor
from desktop.ui.dialogs.settings_dialog import SettingsDialog
from desktop.ui.dialogs.trust_dialog import TrustDialog
from desktop.ui.folders import short_path
from desktop.ui.main_window import MainWindow
from desktop.ui.panels.folder_bar import FolderBar
from desktop.ui.panels.server_rows import ReplacedRow
from tests.servers.running import friendly
from tests.ui.person import button, click, entries, opened, seen, until, windows, write_servers

pytestmark = pytest.mark.anyio

DOCS = {"url": "http://127.0.0.1:9/"}
QUESTION = "Do you trust the servers of this folder?"


@pytest.fixture
def folder(home: Path) -> Path:
    folder = home / "work" / "project"
    folder.mkdir(parents=True)
    write_servers(folder / ".mcp.json", docs=DOCS)
    return folder


async def started(core: Core, first: Path | None = None) -> MainWindow:
    window = MainWindow(core, PersonAnswers())
    window.show()
    core.first_folder = first
    await core.start()
    return window


def bar(window: QWidget) -> FolderBar:
    [found] = window.findChildren(FolderBar)
    return found


def servers(core: Core) -> list[str]:
    return [name for name in core.host.connections if name != "deskhand"]


async def asked(core: Core, folder: Path) -> TrustDialog:
    """Opens a folder with servers of its own, and waits for the question."""
    window = await started(core)
    window.folders.open(folder)
    return await opened(TrustDialog)


async def chosen(menu: QMenu, text: str) -> None:
    """Chooses an entry with the mouse, once it is there."""
    await until(lambda: any(text in each.text().replace("&", "") for each in menu.actions()))
    [entry] = [each for each in menu.actions() if text in each.text().replace("&", "")]
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(entry).center())


async def open_menu(window: QWidget) -> QMenu:
    QTest.mouseClick(bar(window)._button, Qt.MouseButton.LeftButton)
    return await opened(QMenu)


@pytest.mark.parametrize(
    ("answer", "state", "kept"),
    [
        ("Trust", "trusted", True),
        ("Trust until Deskhand quits", "trusted", None),
        ("Don't trust", "refused", False),
        ("Don't trust until Deskhand quits", "refused", None),
    ],
)
async def test_each_answer_does_what_it_says(
    core: Core, folder: Path, answer: str, state: str, kept: bool | None
) -> None:
    dialog = await asked(core, folder)
    assert servers(core) == []
    [pressed] = [
        each
        for each in dialog.findChildren(type(button(dialog, "Decide later")))
        if each.text().replace("&", "") == answer
    ]
    QTest.mouseClick(pressed, Qt.MouseButton.LeftButton)
    await until(lambda: core.workspace.state == state)
    await until(lambda: servers(core) == (["docs"] if state == "trusted" else []))
    assert not windows(TrustDialog)
    trust = core.paths.data / "trusted_folders.json"
    if kept is None:
        assert not trust.exists()
    else:
        await until(trust.exists)
        assert json.loads(trust.read_text()) == {str(folder): kept}


@pytest.mark.parametrize("key", [Qt.Key.Key_Escape, Qt.Key.Key_Return])
async def test_escape_and_enter_decide_nothing_and_opening_or_reading_again_asks_again(
    core: Core, folder: Path, key: Qt.Key
) -> None:
    dialog = await asked(core, folder)
    QTest.keyClick(dialog, key)
    await until(lambda: not windows(TrustDialog))
    assert (core.workspace.state, servers(core)) == ("undecided", [])
    [window] = windows(MainWindow)
    await chosen(await open_menu(window), "Read its servers again")
    QTest.keyClick(await opened(TrustDialog), key)
    await until(lambda: not windows(TrustDialog))
    await until(lambda: "until you decide" in seen(bar(window)))
    window.folders.open(folder)
    QTest.keyClick(await opened(TrustDialog), key)
    await until(lambda: not windows(TrustDialog))
    click(bar(window), "Decide…")
    await opened(TrustDialog)


async def test_the_question_names_the_whole_folder_with_what_is_hidden_in_it(core: Core, home: Path) -> None:
    folder = home / ("long " * 30) / "report\u202etxt.exe\nTrust me"
    folder.mkdir(parents=True)
    write_servers(folder / ".vscode" / "mcp.json", docs=DOCS)
    dialog = await asked(core, folder)
    text = seen(dialog)
    assert f"{home}/{'long ' * 30}/report\\u202Etxt.exe\\nTrust me" in text
    assert ".vscode/mcp.json" in text and QUESTION in text


async def test_the_question_can_be_answered_with_the_keyboard_alone(core: Core, folder: Path) -> None:
    dialog = await asked(core, folder)
    await until(lambda: button(dialog, "Decide later").hasFocus())
    while not button(dialog, "Don't trust until Deskhand quits").hasFocus():
        QTest.keyClick(dialog, Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(button(dialog, "Don't trust until Deskhand quits"), Qt.Key.Key_Space)
    await until(lambda: core.workspace.state == "refused")


async def test_a_folder_of_its_own_answer_is_not_asked_about(core: Core, folder: Path) -> None:
    core.workspace.trust.decide(folder.parent, False, until_quit=False)
    window = await started(core)
    window.folders.open(folder)
    await until(lambda: "Not trusted" in seen(bar(window)))
    assert not windows(TrustDialog)


async def test_the_folder_is_remembered_for_the_next_start_and_closing_forgets_it(core: Core, home: Path) -> None:
    plain = home / "plain"
    plain.mkdir()
    window = await started(core)
    assert "No folder" in seen(bar(window))
    window.folders.open(plain)
    await until(lambda: core.settings.values.folder == str(plain))
    assert "plain" in seen(bar(window)) and core.settings.values.recent_folders == [str(plain)]
    await chosen(await open_menu(window), "Close the folder")
    await until(lambda: "No folder" in seen(bar(window)))
    assert core.settings.values.folder == ""
    await chosen(await open_menu(window), "plain")
    await until(lambda: core.settings.values.folder == str(plain))


async def test_the_folder_of_the_last_time_is_open_before_any_server_starts_and_is_asked_about(
    core: Core, folder: Path
) -> None:
    write_servers(core.servers_file, mine={"command": "mine", "start": "launch"})
    await started(core, folder)
    assert core.host.connections["mine"].definition.folder == str(core.paths.config.parents[1])
    QTest.keyClick(await opened(TrustDialog), Qt.Key.Key_Escape)


async def test_a_folder_that_is_gone_is_told_and_none_is_open(core: Core, home: Path) -> None:
    core.settings.change(folder=str(home / "gone"))
    window = await started(core, home / "gone")
    told = f"The folder {home / 'gone'} can't be opened: it is not there."
    await until(lambda: any(told in seen(each) for each in windows(QWidget)))
    assert core.workspace.folder is None and "No folder" in seen(bar(window))
    assert core.settings.values.folder == ""  # so that the next start doesn't tell it again


async def test_ctrl_o_asks_for_a_folder(core: Core, home: Path) -> None:
    window = await started(core)
    window.activateWindow()
    QTest.keyClick(window, Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    dialog = await opened(QFileDialog)
    [name] = [each for each in dialog.findChildren(QLineEdit) if each.isVisible()]
    name.setText(str(home))
    click(dialog, "Choose")
    await until(lambda: core.workspace.folder == home)


@pytest.mark.filterwarnings("ignore:.*QDragEnterEvent:DeprecationWarning")  # older ones have no other constructor
async def test_a_folder_that_is_dropped_on_the_window_opens_and_a_file_does_not(core: Core, home: Path) -> None:
    window = await started(core)
    note = home / "note.txt"
    note.write_text("")
    for path, opens in ((note, False), (home, True)):
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        action, left, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        enters = QDragEnterEvent(QPoint(5, 5), action, data, left, none)
        enters.ignore()
        QApplication.sendEvent(window, enters)
        assert enters.isAccepted() == opens
        QApplication.sendEvent(window, QDropEvent(QPointF(5, 5), action, data, left, none))
    await until(lambda: core.workspace.folder == home)


async def test_revoking_in_the_settings_ends_the_folders_servers_at_once(core: Core, folder: Path, qapp: Any) -> None:
    command = friendly()
    write_servers(folder / ".mcp.json", friend={"command": command[0], "args": command[1:]})
    write_servers(core.servers_file, own=DOCS)
    core.workspace.trust.decide(folder, True, until_quit=False)
    window = await started(core, folder)
    await core.host.give_consent("friend")
    friend = core.host.connections["friend"]
    await friend.connect()
    window.open_settings(4)
    dialog = await opened(SettingsDialog)
    await until(lambda: str(folder) in seen(dialog))
    click(dialog, "Revoke")
    await until(lambda: servers(core) == ["own"] and friend.state.status != "connected")
    await until(lambda: "No answers yet." in seen(dialog))
    assert "until you decide" in seen(bar(window))
    assert json.loads((core.paths.data / "trusted_folders.json").read_text()) == {}


async def test_what_holds_for_folders_without_an_answer_can_be_set(core: Core, folder: Path) -> None:
    core.settings.change(folder_policy="never")
    window = await started(core, folder)
    await until(lambda: "Not trusted" in seen(bar(window)))
    assert not windows(TrustDialog)
    window.open_settings(4)
    dialog = await opened(SettingsDialog)
    [policy] = [each for each in dialog.findChildren(QComboBox) if each.findData("always") >= 0]
    policy.setFocus()
    QTest.keyClick(policy, Qt.Key.Key_End)
    await until(lambda: servers(core) == ["docs"])
    assert core.settings.values.folder_policy == "always"


async def test_a_long_name_fits_the_panel_and_is_whole_in_the_tool_tip(core: Core, home: Path) -> None:
    folder = home / ("a very long name " * 8).strip()
    folder.mkdir()
    window = await started(core, folder)
    await until(lambda: "…" in bar(window)._button.text())
    assert bar(window).minimumSizeHint().width() <= window.servers.width()
    assert str(folder) in bar(window)._button.toolTip()
    assert bar(window)._button.accessibleName() == f"Folder: {folder.name}"


def test_of_a_long_path_a_menu_shows_the_end() -> None:
    assert short_path("/home/ana/project") == "/home/ana/project"
    assert short_path("/" + "x" * 100 + "/project").startswith("…x")
    assert short_path("/" + "x" * 100 + "/project").endswith("x/project")
    assert len(short_path("/" + "x" * 100 + "/project")) == 70
    assert short_path("/a\u202eb") == "/a\\u202Eb"


async def test_the_panel_says_what_comes_from_the_folder_and_what_it_replaces(core: Core, folder: Path) -> None:
    write_servers(core.servers_file, docs={"command": "own-docs"}, mail={"command": "mail"})
    write_servers(folder / ".mcp.json", docs=DOCS, bad={"command": 1})
    core.workspace.trust.decide(folder, True, until_quit=False)
    window = await started(core, folder)
    rows = window.servers._rows
    await until(lambda: "docs" in rows and "This folder" in seen(rows["docs"]))
    assert "This folder" not in seen(rows["mail"])
    assert rows["docs"].accessibleName() == "docs, This folder, Idle"
    [replaced] = window.servers.findChildren(ReplacedRow)
    await until(lambda: "Your own one is replaced by this folder's" in seen(replaced))
    [fault] = window.servers._faults
    assert fault.of_folder and "This folder" in seen(fault)
    window.folders.open(None)
    await until(lambda: "own-docs" in seen(rows["docs"]) and not window.servers._replaced)
    await until(lambda: "This folder" not in seen(window.servers))


async def test_edits_go_to_the_file_a_server_comes_from_and_its_secrets_are_its_own(core: Core, folder: Path) -> None:
    write_servers(core.servers_file, docs={"url": "http://127.0.0.1:8/"})
    before = core.servers_file.read_bytes()
    core.workspace.trust.decide(folder, True, until_quit=False)
    window = await started(core, folder)
    await until(lambda: "docs" in window.servers._rows)
    window.servers._server_step("docs", "edit")
    editor = await opened(ServerEditor)
    await until(lambda: "http://127.0.0.1:9/" in seen(editor))
    click(editor, "Add a header")

    def field(name: str) -> list[QLineEdit]:
        return [each for each in editor.findChildren(QLineEdit) if each.accessibleName() == name and each.isVisible()]

    await until(lambda: field("Name") and field("Value"))
    QTest.keyClicks(field("Name")[0], "X-Token")
    QTest.keyClicks(field("Value")[0], "canary-0123")
    click(editor, "Save")
    await until(lambda: not windows(ServerEditor))  # the secret is kept once the file is written
    assert entries(folder / ".mcp.json")["docs"]["headers"] == {"X-Token": "${keyring:X-Token}"}
    assert core.servers_file.read_bytes() == before
    kept = keyring_name("docs", "X-Token")
    assert await core.credentials.get(secret_name(str(folder), kept)) == "canary-0123"
    assert await core.credentials.get(kept) is None


async def test_removing_a_server_of_the_folder_brings_the_own_one_back(core: Core, folder: Path) -> None:
    write_servers(core.servers_file, docs={"command": "own-docs"})
    core.workspace.trust.decide(folder, True, until_quit=False)
    window = await started(core, folder)
    await until(lambda: "docs" in window.servers._rows)
    window.servers._server_step("docs", "remove")
    question = await opened(_Confirmation)
    assert ".mcp.json" in seen(question)
    click(question, "Remove")
    await until(lambda: "own-docs" in seen(window.servers._rows["docs"]))
    assert entries(folder / ".mcp.json") == {} and "docs" in entries(core.servers_file)
