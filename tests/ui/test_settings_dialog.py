"""The settings: what is chosen holds at once, keys go to the keyring alone, and what was allowed can be taken back."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QSpinBox,
    QWidget,
)

from desktop.assistant.model_list import LocalServer, find_local_models
from desktop.catalog_entries import ToolDefinition
from desktop.core import Core
from desktop.log import redacted
from desktop.ui import model_menu
from desktop.ui.dialogs import models_page
from desktop.ui.dialogs.confirmation import _Confirmation
from desktop.ui.dialogs.models_page import ModelsPage
from desktop.ui.dialogs.settings_dialog import AppearancePage, ApprovalsPage, SettingsDialog, StoredFilesPage
from desktop.ui.model_menu import ModelMenu
from tests.fakes.model_server import ModelServer
from tests.ui.person import button, click, opened, seen, until, windows

pytestmark = pytest.mark.anyio

ANTHROPIC = "Anthropic"
COMPATIBLE = "OpenAI-compatible address"


@pytest.fixture
def window() -> QWidget:
    widget = QWidget()
    widget.resize(800, 600)
    widget.show()
    return widget


@pytest.fixture(autouse=True)
def no_local_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs on the machine of the test doesn't matter."""
    for module in (model_menu, models_page):
        monkeypatch.setattr(module, "find_local_models", partial(find_local_models, ()))


async def models(core: Core, window: QWidget, provider: str = "") -> ModelsPage:
    dialog = SettingsDialog(core, window)
    dialog.show()
    page = dialog.findChild(ModelsPage)
    if provider:
        combo = page.findChildren(QComboBox)[0]
        combo.setCurrentIndex(combo.findText(provider))
    return page


def field(page: QWidget, placeholder: str) -> QLineEdit:
    [found] = [each for each in page.findChildren(QLineEdit) if each.placeholderText() == placeholder]
    return found


def in_keyring(core: Core) -> dict[str, str]:
    """The test's machine has no keyring: what is kept, is kept for this run."""
    return core.credentials._kept_for_this_run


# Models


async def test_a_provider_s_model_and_key_are_chosen(core: Core, window: QWidget) -> None:
    page = await models(core, window, ANTHROPIC)
    key = field(page, "Paste the provider's key")
    assert key.echoMode() is QLineEdit.EchoMode.Password
    QTest.keyClicks(key, "sk-canary-0123456789")
    click(page, "Use this model")
    await until(lambda: core.settings.values.model)
    assert core.settings.values.model == "anthropic/claude-sonnet-5-5"
    assert in_keyring(core) == {"model:anthropic": "sk-canary-0123456789"}
    assert key.text() == ""
    assert "canary" not in core.paths.settings_file.read_text()
    assert "In use: claude-sonnet-5-5" in seen(page)
    await until(lambda: "There is no keyring on this system: the key is kept for this run only." in seen(page))
    assert redacted("sent sk-canary-0123456789 away") == "sent [redacted] away"


async def test_a_provider_without_a_key_is_not_chosen(core: Core, window: QWidget) -> None:
    page = await models(core, window, ANTHROPIC)
    click(page, "Use this model")
    await until(lambda: "This provider needs a key." in seen(page))
    assert core.settings.values.model == ""


async def test_a_key_in_the_environment_will_do(core: Core, window: QWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-environment")
    page = await models(core, window, ANTHROPIC)
    await until(lambda: "that of the environment variable ANTHROPIC_API_KEY is used" in seen(page))
    click(page, "Use this model")
    await until(lambda: core.settings.values.model)


async def test_an_address_of_one_s_own_needs_no_key_and_binds_the_key_to_itself(core: Core, window: QWidget) -> None:
    page = await models(core, window, COMPATIBLE)
    assert not button(page, "Use this model").isEnabled()
    QTest.keyClicks(field(page, "http://127.0.0.1:8080/v1"), "http://127.0.0.1:9999/v1/")
    combo = page.findChildren(QComboBox)[1]
    combo.setEditText("mine")
    QTest.keyClicks(field(page, "Optional"), "sk-own-key")
    click(page, "Use this model")
    await until(lambda: core.settings.values.model)
    assert (core.settings.values.model, core.settings.values.api_base) == ("openai/mine", "http://127.0.0.1:9999/v1")
    assert in_keyring(core) == {"model:http://127.0.0.1:9999": "sk-own-key"}
    await until(lambda: "mine · 127.0.0.1:9999" in seen(page))


@pytest.mark.parametrize("address", ["", "not a url", "file:///etc/passwd", "http://user:pass@host/v1"])
async def test_an_address_that_is_none_cannot_be_used(core: Core, window: QWidget, address: str) -> None:
    page = await models(core, window, COMPATIBLE)
    QTest.keyClicks(field(page, "http://127.0.0.1:8080/v1"), address)
    page.findChildren(QComboBox)[1].setEditText("mine")
    assert not button(page, "Use this model").isEnabled()


async def test_a_kept_key_can_be_forgotten(core: Core, window: QWidget) -> None:
    await core.credentials.set("model:anthropic", "sk-old")
    page = await models(core, window, ANTHROPIC)
    await until(lambda: "Forget key" in seen(page))
    click(page, "Forget key")
    await until(lambda: "Forget key" not in seen(page))
    assert in_keyring(core) == {}


async def test_going_back_to_guide(core: Core, window: QWidget) -> None:
    core.settings.change(model="openai/gpt-5.4")
    page = await models(core, window)
    assert page.findChildren(QComboBox)[0].currentText() == "OpenAI"
    assert page.findChildren(QComboBox)[1].currentText() == "openai/gpt-5.4"
    page.findChildren(QComboBox)[0].setCurrentIndex(0)
    click(page, "Use Guide")
    await until(lambda: core.settings.values.model == "")
    assert "In use: Guide" in seen(page)


async def test_models_of_this_computer_are_found(core: Core, window: QWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ModelServer([], models=["llama"]) as server:
        port = int(server.address.rpartition(":")[2].partition("/")[0])
        find = partial(find_local_models, [LocalServer("Test server", port)])
        monkeypatch.setattr(models_page, "find_local_models", find)
        monkeypatch.setattr(model_menu, "find_local_models", find)
        page = await models(core, window)
        combo = page.findChildren(QComboBox)[0]
        await until(lambda: combo.findText("On this computer: llama · Test server") > 0)
        combo.setCurrentIndex(combo.count() - 1)
        click(page, "Use this model")
        await until(lambda: core.settings.values.model == "openai/llama")
        assert core.settings.values.api_base == f"http://127.0.0.1:{port}/v1"
        core.settings.change(model="", api_base="", recent_models=[])
        menu = ModelMenu(core.settings, window)
        menu.popup(QPoint(0, 0))
        await until(lambda: "llama · Test server" in [each.text() for each in menu.actions()])


# The menu


async def test_the_menu_offers_guide_and_recent_models_and_chooses(core: Core, window: QWidget) -> None:
    for name in ("openai/one", "anthropic/two", "openai/three"):
        model_menu.choose(core.settings, name, "", window)
    menu = ModelMenu(core.settings, window)
    menu.popup(QPoint(0, 0))
    entries = [each.text() for each in menu.actions() if each.text()]
    assert entries == ["Guide: finds and runs tools; no language model", "three", "two", "one", "Another model…"]
    assert [each.text() for each in menu.actions() if each.isChecked()] == ["three"]
    QTest.keyClick(menu, Qt.Key.Key_Down)
    QTest.keyClick(menu, Qt.Key.Key_Return)
    assert core.settings.values.model == ""
    assert [each["name"] for each in core.settings.values.recent_models] == [
        "openai/three",
        "anthropic/two",
        "openai/one",
    ]


async def test_recent_models_are_eight_at_most_each_once(core: Core, window: QWidget) -> None:
    for number in [*range(12), 11, 5]:
        model_menu.choose(core.settings, f"openai/m{number}", "", window)
    names = [each["name"] for each in core.settings.values.recent_models]
    assert names == [f"openai/m{number}" for number in (5, 11, 10, 9, 8, 7, 6, 4)]


async def test_a_name_of_a_model_is_shown_as_it_is(core: Core, window: QWidget) -> None:
    model_menu.choose(core.settings, "openai/<b>a&b</b>\u202e", "", window)
    menu = ModelMenu(core.settings, window)
    assert "<b>a&&b</b>\\u202E" in [each.text() for each in menu.actions()]


# Approvals


def tool(server: str, name: str) -> ToolDefinition:
    return ToolDefinition(server, name, f"mcp__{server}__{name}", "", {}, f"fingerprint {name}", "identity")


async def test_standing_rules_are_listed_changed_and_revoked(core: Core, window: QWidget) -> None:
    core.approvals.allow_server("billing", [tool("billing", "list")])
    core.approvals.allow_server("mail\u202e", [tool("mail", "send")])
    dialog = SettingsDialog(core, window, page=1)
    dialog.show()
    page = dialog.findChild(ApprovalsPage)
    assert "billing\nAlways allowed: all its tools as they were" in seen(page)
    assert "mail\\u202E" in seen(page)
    page.findChildren(QCheckBox)[0].click()
    assert core.approvals.rules[0].also_after_others
    await until(
        lambda: [each.isChecked() for each in page.findChildren(QCheckBox) if each.isVisible()] == [True, False]
    )
    revoke = [each for each in page.findChildren(QWidget) if each.accessibleName() == "Revoke the rule for billing"]
    QTest.mouseClick(next(each for each in revoke if each.isVisible()), Qt.MouseButton.LeftButton)
    assert [rule.server for rule in core.approvals.rules] == ["mail\u202e"]
    await until(lambda: "billing" not in seen(page))
    core.approvals.revoke(core.approvals.rules[0])  # from elsewhere
    await until(lambda: "No standing rules yet." in seen(page))


async def test_a_closed_dialog_does_not_follow_the_rules_any_more(core: Core, window: QWidget) -> None:
    dialog = SettingsDialog(core, window, page=1)
    dialog.show()
    dialog.close()
    dialog.deleteLater()
    await asyncio.sleep(0.05)
    core.approvals.allow_server("billing", [tool("billing", "list")])


async def test_the_limit_of_calls_is_set(core: Core, window: QWidget) -> None:
    dialog = SettingsDialog(core, window, page=1)
    dialog.show()
    dialog.findChild(QSpinBox).setValue(7)
    assert json.loads(core.paths.settings_file.read_text())["tool_calls_per_turn"] == 7


# Appearance


async def test_colours_and_font_size_are_kept(core: Core, window: QWidget) -> None:
    dialog = SettingsDialog(core, window, page=2)
    dialog.show()
    scheme, size = dialog.findChild(AppearancePage).findChildren(QComboBox)
    scheme.setCurrentIndex(scheme.findText("Dark"))
    size.setCurrentIndex(size.findText("14 points"))
    assert (core.settings.values.color_scheme, core.settings.values.font_size) == ("dark", 14)


async def test_settings_that_cannot_be_written_are_told_and_hold_for_this_run(core: Core, window: QWidget) -> None:
    from desktop.ui.error_box import ErrorBox

    core.settings.file = Path("/proc/nowhere/settings.json")
    dialog = SettingsDialog(core, window, page=2)
    dialog.show()
    scheme = dialog.findChild(AppearancePage).findChildren(QComboBox)[0]
    scheme.setCurrentIndex(scheme.findText("Light"))
    assert "File could not be written" in seen(await opened(ErrorBox))
    assert core.settings.values.color_scheme == "light"


# Stored files


async def test_stored_files_are_counted_and_cleared_after_a_question(core: Core, window: QWidget) -> None:
    for conversation in ("one", "two"):
        await core.results.text_output("x" * 100_000, conversation_id=conversation)
    dialog = SettingsDialog(core, window, page=3)
    dialog.show()
    page = dialog.findChild(StoredFilesPage)
    await until(lambda: "of 2 conversations" in seen(page))
    assert str(core.paths.results) in seen(page) or "…" in seen(page)
    click(page, "Clear…")
    question = await opened(_Confirmation)
    QTest.keyClick(question, Qt.Key.Key_Escape)
    await until(lambda: not windows(_Confirmation))
    assert len(core.results.sizes()) == 2
    click(page, "Clear…")
    click(await opened(_Confirmation), "Clear")
    await until(lambda: "Nothing is stored." in seen(page))
    assert core.results.sizes() == {}
    assert not button(page, "Clear…").isEnabled()


# All pages


async def test_every_control_has_a_name_and_is_reached_by_keyboard(core: Core, window: QWidget) -> None:
    core.approvals.allow_server("billing", [tool("billing", "list")])
    for number in range(4):
        dialog = SettingsDialog(core, window, page=number)
        dialog.show()
        for each in dialog.findChildren(QWidget):
            if each.isVisible() and each.focusPolicy() & Qt.FocusPolicy.TabFocus and each.focusProxy() is None:
                interface: Any = QAccessible.queryAccessibleInterface(each)
                if not each.objectName().startswith("qt_"):
                    assert interface.text(QAccessible.Text.Name), (number, each)
        assert {label.textFormat() for label in dialog.findChildren(QLabel) if label.buddy() is None} == {
            Qt.TextFormat.PlainText
        }
        dialog.close()


async def test_pages_are_chosen_with_the_arrow_keys(core: Core, window: QWidget) -> None:
    dialog = SettingsDialog(core, window)
    dialog.show()
    names = dialog.findChild(QListWidget)
    QTest.keyClick(names, Qt.Key.Key_Down)
    QTest.keyClick(names, Qt.Key.Key_Down)
    assert dialog.findChild(AppearancePage).isVisible()
    assert not dialog.findChild(ModelsPage).isVisible()


async def test_a_dialog_fits_a_small_screen(core: Core, window: QWidget) -> None:
    dialog = SettingsDialog(core, window)
    dialog.show()
    assert dialog.minimumSizeHint().width() <= 640
    assert dialog.minimumSizeHint().height() <= 480
