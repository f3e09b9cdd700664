"""Taking over servers of other programs, by mouse and keyboard: found files, the review, conflicts, secrets, every way out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QAccessible, QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QCommandLinkButton, QFileDialog, QLineEdit, QWidget

from desktop.core import Core
from desktop.host.config_import import read_source
from desktop.host.server_references import keyring_name
from desktop.ui import tasks
from desktop.ui.dialogs.bundle_dialog import BundleDialog
from desktop.ui.dialogs.import_row import ImportRow
from desktop.ui.dialogs.import_wizard import ImportWizard
from desktop.ui.error_box import ErrorBox
from desktop.ui.panels.servers_panel import ServersPanel
from tests.host.imports.test_bundle import bundle
from tests.ui.person import button, click, entries, opened, seen, until, windows, write_servers

pytestmark = pytest.mark.anyio
FILES = Path(__file__).parents[1] / "host" / "imports" / "files"


@pytest.fixture
def window() -> QWidget:
    widget = QWidget()
    widget.show()
    return widget


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """What the commands in the files would make; nothing here runs them."""
    yield tmp_path / "marker"
    assert not (tmp_path / "marker").exists()


def written(name: str, marker: Path, file: Path | None = None) -> Path:
    file = file or marker.parent / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((FILES / name).read_text().replace("@MARKER@", str(marker)))
    return file


async def wizard(core: Core, window: QWidget, file: Path | None = None) -> tuple[ImportWizard, asyncio.Task[int]]:
    dialog = ImportWizard(core, window, None if file is None else read_source(file))
    task = tasks.start(tasks.opened(dialog), on_error=window)
    await opened(ImportWizard)
    if file is not None:
        await until(lambda: rows(dialog))
    return dialog, task


def rows(dialog: ImportWizard) -> dict[str, ImportRow]:
    return {row._candidate.name: row for row in dialog.findChildren(ImportRow) if row.isVisible()}


def tick(row: ImportRow, name: str) -> None:
    [box] = [
        each
        for each in row.findChildren(QCheckBox)
        if each.isVisible() and name in (each.text(), each.accessibleName())
    ]
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))


async def accepted(task: asyncio.Task[int]) -> bool:
    return bool(await asyncio.wait_for(task, 10))


def simple(tmp_path: Path, **servers: Any) -> Path:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


async def test_found_files_are_offered_and_one_is_taken_over(
    core: Core, window: QWidget, marker: Path, home: Path
) -> None:
    written("cursor_mcp.json", marker, home / ".cursor" / "mcp.json")
    written("lm_studio_mcp.json", marker, home / ".lmstudio" / "mcp.json")
    dialog, task = await wizard(core, window)
    await until(lambda: "Cursor: 3 servers" in seen(dialog) and "LM Studio: 2 servers" in seen(dialog))
    [cursor] = [each for each in dialog.findChildren(QCommandLinkButton) if each.text().startswith("Cursor")]
    assert cursor.description() == str(home / ".cursor" / "mcp.json")
    click(dialog, "LM Studio: 2 servers")
    await until(lambda: rows(dialog))
    assert "Program on this computer · arguments: 2" in seen(dialog)
    assert "canary" not in seen(dialog)
    assert str(marker) not in seen(dialog)
    click(dialog, "Back")
    await until(lambda: "Cursor: 3 servers" in seen(dialog))
    click(dialog, "Cursor: 3 servers")
    await until(lambda: "envFile" in seen(dialog))
    assert "It can't be taken over: Deskhand does not know the field envFile." in seen(dialog)
    click(dialog, "Import 2 servers")
    assert await accepted(task)
    assert list(entries(core.servers_file)) == ["remote", "home"]
    await opened(ErrorBox)  # of the key in a header there is no keyring to keep it in


async def test_without_any_file_it_says_so_and_a_file_is_chosen(core: Core, window: QWidget, marker: Path) -> None:
    dialog, task = await wizard(core, window)
    await until(lambda: "No known program keeps servers here." in seen(dialog) and "Choose a file…" in seen(dialog))
    click(dialog, "Choose a file…")
    chooser = await opened(QFileDialog)
    chooser.fileSelected.emit(str(written("zed_settings.json", marker)))
    chooser.close()
    await until(lambda: "older" in rows(dialog))
    click(dialog, "Cancel")
    assert not await accepted(task)
    assert not core.servers_file.exists()


async def test_a_program_s_file_that_cannot_be_read_is_told_with_the_reason(
    core: Core, window: QWidget, home: Path
) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{")
    dialog, _ = await wizard(core, window)
    file = home / ".cursor" / "mcp.json"
    await until(lambda: f"Of Cursor, {file} can't be read: its JSON is wrong at line 1, column 2." in seen(dialog))
    assert "No servers that can be read were found." in seen(dialog)


async def test_a_file_without_servers_is_told(core: Core, window: QWidget, tmp_path: Path) -> None:
    dialog, _ = await wizard(core, window)
    await until(lambda: "Choose a file…" in seen(dialog))
    (tmp_path / "x.json").write_text('{"canary": 1}')
    dialog.read_file(tmp_path / "x.json")
    await until(lambda: "it has no servers in a form that Deskhand knows" in seen(dialog))
    assert "canary" not in seen(dialog)
    write_servers(core.servers_file, a={"command": "x"})
    dialog.read_file(core.servers_file)
    await until(lambda: "it is Deskhand's own file" in seen(dialog))


async def test_secrets_go_to_the_keyring_unless_the_person_says_otherwise(
    core: Core, window: QWidget, tmp_path: Path
) -> None:
    server = {"command": "x", "env": {"API_KEY": "canary-1$", "LEVEL": "debug"}}
    dialog, task = await wizard(core, window, simple(tmp_path, kept=server, open=server))
    assert "Keep in the keyring: API_KEY" in seen(rows(dialog)["kept"])
    tick(rows(dialog)["open"], "Keep in the keyring: API_KEY")
    click(dialog, "Import 2 servers")
    assert await accepted(task)
    assert entries(core.servers_file)["kept"]["env"] == {"API_KEY": "${keyring:API_KEY}", "LEVEL": "debug"}
    assert entries(core.servers_file)["open"]["env"] == {"API_KEY": "canary-1$$", "LEVEL": "debug"}
    assert await core.credentials.get(keyring_name("kept", "API_KEY")) == "canary-1$"
    assert "Keyring not available" in seen(await opened(ErrorBox))


async def test_what_is_asked_for_is_entered(core: Core, window: QWidget, marker: Path) -> None:
    dialog, task = await wizard(core, window, written("goose_config.yaml", marker))
    row = rows(dialog)["github"]
    [field] = [each for each in row.findChildren(QLineEdit) if "keyring" in each.placeholderText()]
    assert field.echoMode() is QLineEdit.EchoMode.Password
    QTest.keyClicks(field, "my-token")
    click(dialog, "Import 2 servers")
    assert await accepted(task)
    assert await core.credentials.get(keyring_name("github", "GITHUB_PERSONAL_ACCESS_TOKEN")) == "my-token"
    await opened(ErrorBox)


async def test_of_a_name_that_exists_nothing_is_overwritten_unless_it_is_said(
    core: Core, window: QWidget, tmp_path: Path
) -> None:
    write_servers(core.servers_file, a={"command": "old"}, b={"command": "old"}, c={"command": "old"})
    file = simple(tmp_path, a={"command": "new"}, b={"command": "new"}, c={"command": "new"})
    dialog, task = await wizard(core, window, file)
    assert not button(dialog, "Import 0 servers").isEnabled()
    tick(rows(dialog)["a"], "Take over a")
    assert "Replace it, or give this one another name." in seen(rows(dialog)["a"])
    assert not button(dialog, "Import 1 server").isEnabled()
    await until(lambda: "Replace it" in seen(rows(dialog)["a"]))
    tick(rows(dialog)["a"], "Replace it")
    tick(rows(dialog)["b"], "Take over b")
    name = rows(dialog)["b"].name
    name.setFocus()
    name.selectAll()
    QTest.keyClicks(name, "a")
    tick(rows(dialog)["b"], "Replace it")
    click(dialog, "Import 2 servers")
    assert "Two servers would be called a." in seen(dialog)
    name.selectAll()
    QTest.keyClicks(name, "b2")
    click(dialog, "Import 2 servers")
    assert await accepted(task)
    assert {each: entry["command"] for each, entry in entries(core.servers_file).items()} == {
        "a": "new",
        "b": "old",
        "c": "old",
        "b2": "new",
    }


async def test_a_name_that_is_not_valid_needs_another_and_hides_nothing(
    core: Core, window: QWidget, tmp_path: Path
) -> None:
    dialog, task = await wizard(core, window, simple(tmp_path, **{"my \u202eserver\x1b[2J": {"command": "x"}}))
    [row] = rows(dialog).values()
    assert row.taken.accessibleName() == "Take over my \\u202Eserver\\x1B[2J"
    assert "Its name there: \u2068my \\u202Eserver\\x1B[2J\u2069" in seen(row)
    QTest.keyClick(row.taken, Qt.Key.Key_Space)
    assert "It needs a name of letters" in seen(row)
    QTest.keyClicks(row.name, "mine")
    click(dialog, "Import 1 server")
    assert await accepted(task)
    assert list(entries(core.servers_file)) == ["mine"]


async def test_the_whole_of_a_server_shows_when_it_is_asked_for(core: Core, window: QWidget, tmp_path: Path) -> None:
    file = simple(tmp_path, a={"command": "sh", "args": ["-c", "x\u202ey", "z" * 3000], "env": {"K": "canary"}})
    dialog, _ = await wizard(core, window, file)
    assert "z" * 3000 not in seen(dialog)
    click(dialog, "Show the whole of a")
    await until(lambda: f'sh\n-c\n"x\\u202Ey"\n{"z" * 3000}' in seen(dialog))
    assert "It runs a shell: what stands behind it may be several commands." in seen(dialog)
    assert "Environment: K" in seen(dialog)
    assert "canary" not in seen(dialog)


async def test_what_changed_meanwhile_is_not_written_over(core: Core, window: QWidget, tmp_path: Path) -> None:
    write_servers(core.servers_file, a={"command": "old"})
    secretive = {"command": "new", "env": {"API_KEY": "canary"}}
    dialog, task = await wizard(core, window, simple(tmp_path, a={"command": "new"}, b=secretive))
    tick(rows(dialog)["a"], "Take over a")
    await until(lambda: "Replace it" in seen(rows(dialog)["a"]))
    tick(rows(dialog)["a"], "Replace it")
    write_servers(core.servers_file, a={"command": "edited"})
    click(dialog, "Import 2 servers")
    await until(lambda: "has been changed meanwhile" in seen(dialog))
    assert entries(core.servers_file) == {"a": {"command": "edited"}}
    assert await core.credentials.get(keyring_name("b", "API_KEY")) is None
    assert dialog.isEnabled()
    click(dialog, "Cancel")
    assert not await accepted(task)


async def test_the_reviewed_servers_are_saved_whatever_becomes_of_their_file(
    core: Core, window: QWidget, tmp_path: Path
) -> None:
    file = simple(tmp_path, a={"command": "reviewed"})
    dialog, task = await wizard(core, window, file)
    simple(tmp_path, a={"command": "changed"})
    click(dialog, "Import 1 server")
    assert await accepted(task)
    assert entries(core.servers_file) == {"a": {"command": "reviewed"}}


async def test_escape_at_each_stage_writes_nothing(core: Core, window: QWidget, tmp_path: Path) -> None:
    dialog, task = await wizard(core, window)
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not await accepted(task)
    dialog, task = await wizard(core, window, simple(tmp_path, a={"command": "x"}))
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not await accepted(task)
    assert not core.servers_file.exists()
    assert windows(ImportWizard) == []


async def test_folders_stand_apart_and_everything_has_a_name(core: Core, window: QWidget, marker: Path) -> None:
    dialog, _ = await wizard(core, window, written("claude.json", marker))
    assert "For the folder /home/me/second" in seen(dialog)
    for field in [*dialog.findChildren(QLineEdit), *dialog.findChildren(QCheckBox)]:
        interface: Any = QAccessible.queryAccessibleInterface(field)
        assert interface.text(QAccessible.Text.Name), field


async def test_the_keyboard_alone_is_enough(core: Core, window: QWidget, tmp_path: Path) -> None:
    dialog, task = await wizard(core, window, simple(tmp_path, a={"command": "x"}, b={"command": "y"}))
    await until(lambda: rows(dialog)["a"].taken.hasFocus())
    QTest.keyClick(rows(dialog)["a"].taken, Qt.Key.Key_Space)
    assert button(dialog, "Import 1 server").isEnabled()
    QTest.keyPress(dialog, Qt.Key.Key_Return)  # the dialog is off when the key comes up
    assert await accepted(task)
    assert list(entries(core.servers_file)) == ["b"]


# The ways to it


async def panel_of(core: Core) -> ServersPanel:
    panel = ServersPanel(core)
    panel.resize(320, 700)
    panel.show()
    await core.start()
    await until(lambda: "Starting" not in seen(panel))
    return panel


def dragged(*files: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
    return data


def drop(widget: QWidget, data: QMimeData) -> bool:
    """Drags over a widget and drops there what it takes."""
    place, buttons = QPointF(widget.rect().center()), Qt.MouseButton.LeftButton
    no_keys = Qt.KeyboardModifier.NoModifier
    entering = QDragEnterEvent(place.toPoint(), Qt.DropAction.CopyAction, data, buttons, no_keys)
    entering.ignore()
    QApplication.sendEvent(widget, entering)
    if entering.isAccepted():
        QApplication.sendEvent(widget, QDropEvent(place, Qt.DropAction.CopyAction, data, buttons, no_keys))
    return entering.isAccepted()


async def test_without_servers_the_panel_says_whose_could_be_taken_over(core: Core, marker: Path, home: Path) -> None:
    written("cursor_mcp.json", marker, home / ".cursor" / "mcp.json")
    panel = await panel_of(core)
    await until(lambda: "Other programs have servers on this computer: Cursor (3)" in seen(panel))
    click(panel, "Import servers…")
    dialog = await opened(ImportWizard)
    await until(lambda: "Cursor: 3 servers" in seen(dialog))
    click(dialog, "Cursor: 3 servers")
    await until(lambda: "home" in rows(dialog))
    tick(rows(dialog)["remote"], "Take over remote")
    click(dialog, "Import 1 server")
    # It is there and waits to be allowed: nothing has started.
    await until(lambda: "Asks to start" in seen(panel))
    assert core.host.connections["home"].state.status == "needs_consent"


async def test_the_button_that_adds_has_the_import_in_its_menu(core: Core) -> None:
    panel = await panel_of(core)
    button = panel._add
    assert [each.text() for each in button.menu().actions()] == ["New server…", "Import servers…"]
    button.menu().actions()[1].trigger()
    assert (await opened(ImportWizard)).windowTitle() == "Import servers"


@pytest.mark.filterwarnings("ignore:.*QDragEnterEvent:DeprecationWarning")  # older ones have no other constructor
async def test_a_dropped_file_opens_the_import(core: Core, marker: Path, tmp_path: Path) -> None:
    panel = await panel_of(core)
    file = written("windsurf_mcp_config.json", marker)
    assert not drop(panel, dragged(file, file))
    assert not drop(panel, dragged(tmp_path / "picture.png"))
    assert drop(panel, dragged(file))
    dialog = await opened(ImportWizard)
    await until(lambda: "github-mcp-server" in rows(dialog))
    click(dialog, "Cancel")
    await until(lambda: windows(ImportWizard) == [])
    assert drop(panel, dragged(bundle(tmp_path)))
    assert "Local files" in seen(await opened(BundleDialog))


@pytest.mark.filterwarnings("ignore:.*QDragEnterEvent:DeprecationWarning")  # older ones have no other constructor
async def test_a_dropped_bundle_that_cannot_be_read_is_told(core: Core, tmp_path: Path) -> None:
    panel = await panel_of(core)
    (tmp_path / "x.mcpb").write_text("no ZIP")
    assert drop(panel, dragged(tmp_path / "x.mcpb"))
    assert "it is no whole ZIP file" in seen(await opened(ErrorBox))


async def test_a_bundle_may_be_chosen_in_the_import(core: Core, window: QWidget, tmp_path: Path) -> None:
    dialog, task = await wizard(core, window)
    await until(lambda: "Choose a file…" in seen(dialog))
    dialog.read_file(bundle(tmp_path))
    form = await opened(BundleDialog)
    click(form, "Cancel")
    await until(lambda: windows(BundleDialog) == [])
    click(dialog, "Cancel")
    assert not await accepted(task)
