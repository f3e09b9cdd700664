"""A bundle is added after what it is and what it asks for was seen: unpacked then, its secrets kept apart, nothing started."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from desktop.core import Core
from desktop.host.bundle import read_bundle
from desktop.host.server_references import keyring_name
from desktop.ui import tasks
from desktop.ui.dialogs.bundle_dialog import BundleDialog
from desktop.ui.error_box import ErrorBox
from tests.host.imports.test_bundle import MANIFEST, bundle
from tests.ui.person import click, entries, opened, seen, until, write_servers

pytestmark = pytest.mark.anyio


@pytest.fixture
def window() -> QWidget:
    widget = QWidget()
    widget.show()
    return widget


async def dialog_for(file: Path, core: Core, window: QWidget) -> tuple[BundleDialog, asyncio.Task[int]]:
    task = tasks.start(tasks.opened(BundleDialog(core, window, read_bundle(file))), on_error=window)
    return await opened(BundleDialog), task


async def test_a_bundle_is_unpacked_and_added(core: Core, window: QWidget, tmp_path: Path) -> None:
    dialog, task = await dialog_for(bundle(tmp_path, **{"server/index.js": b"x"}), core, window)
    text = seen(dialog)
    assert "Local files" in text
    assert "Version 1.2.0, by Someone" in text
    assert "node '${__dirname}/server/index.js'" in text
    click(dialog, "Unpack and add")
    assert "API key is missing." in seen(dialog)
    [key] = [each for each in dialog.findChildren(QLineEdit) if each.accessibleName() == "API key"]
    assert key.echoMode() is QLineEdit.EchoMode.Password
    QTest.keyClicks(key, "canary")
    [folders] = [each for each in dialog.findChildren(QPlainTextEdit) if each.accessibleName().startswith("Folders")]
    folders.setPlainText("/srv/one\n/srv/two words")
    click(dialog, "Unpack and add")
    assert await asyncio.wait_for(task, 20)
    folder = core.paths.data / "bundles"
    [unpacked] = folder.iterdir()
    assert (unpacked / "server" / "index.js").read_bytes() == b"x"
    entry = entries(core.servers_file)["local-files"]
    assert entry["args"] == [f"{unpacked}/server/index.js", "--level=3", "/srv/one", "/srv/two words"]
    assert entry["env"]["API_KEY"] == "${keyring:api_key}"
    assert await core.credentials.get(keyring_name("local-files", "api_key")) == "canary"
    await opened(ErrorBox)  # this machine has no keyring, and says so


async def test_cancelled_or_under_a_name_that_exists_nothing_is_unpacked(
    core: Core, window: QWidget, tmp_path: Path
) -> None:
    write_servers(core.servers_file, **{"local-files": {"command": "mine"}})
    dialog, task = await dialog_for(bundle(tmp_path), core, window)
    [key] = [each for each in dialog.findChildren(QLineEdit) if each.accessibleName() == "API key"]
    QTest.keyClicks(key, "canary")
    click(dialog, "Unpack and add")
    await until(lambda: "a server of that name exists" in seen(dialog))
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not await asyncio.wait_for(task, 10)
    assert not (core.paths.data / "bundles").exists()
    assert entries(core.servers_file) == {"local-files": {"command": "mine"}}
    assert await core.credentials.get(keyring_name("local-files", "api_key")) is None


async def test_hidden_characters_of_a_bundle_are_seen(core: Core, window: QWidget, tmp_path: Path) -> None:
    manifest = MANIFEST | {
        "display_name": "a\u202eb",
        "description": "<b>x</b>\x1b[31m",
        "author": {"name": "\u200bme"},
    }
    dialog, _ = await dialog_for(bundle(tmp_path, manifest), core, window)
    for text in ("a\\u202Eb", "<b>x</b>\\x1B[31m", "by \\u200Bme"):
        assert text in seen(dialog)
