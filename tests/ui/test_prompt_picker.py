"""The prompt picker on real servers: search, arguments with suggestions, preview, and what is used of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from desktop.core import Core
from desktop.ui.chat.prompt_view import PromptCard
from desktop.ui.dialogs.prompt_picker import PromptPicker
from desktop.ui.main_window import MainWindow
from tests.host.conftest import scripted
from tests.servers.running import friendly, http_server
from tests.ui.person import click, opened, seen, until, windows, write_servers

pytestmark = pytest.mark.anyio


@pytest.fixture
def window(anyio_backend: object) -> QWidget:
    """What the dialog is opened over."""
    window = QWidget()
    window.resize(400, 300)
    window.show()
    return window


async def picker(core: Core, window: QWidget, entry: Mapping[str, Any], **chosen: Any) -> PromptPicker:
    write_servers(core.servers_file, notes=entry)
    await core.start()
    if "command" in entry:
        await core.host.give_consent("notes")
    dialog = PromptPicker(core, window, **chosen)
    dialog.open()
    await until(lambda: "Asking" not in seen(dialog))
    return dialog


def names(dialog: PromptPicker) -> list[str]:
    return [dialog.model.index(number).data() for number in range(dialog.model.rowCount())]


def key(pressed: Qt.Key) -> None:
    """Presses a key where the keyboard is."""
    focused = QApplication.focusWidget()
    assert focused is not None
    QTest.keyClick(focused, pressed)


def types(text: str) -> None:
    focused = QApplication.focusWidget()
    assert focused is not None
    QTest.keyClicks(focused, text)


async def test_a_prompt_is_picked_completed_previewed_and_used_by_keyboard_alone(core: Core, window: QWidget) -> None:
    async with http_server(friendly()) as url:
        dialog = await picker(core, window, {"url": url})
        assert names(dialog) == ["greeting", "summary", "travel"]
        types("travel")
        await until(lambda: names(dialog)[:1] == ["travel"] and "country" in seen(dialog))
        key(Qt.Key.Key_Return)
        assert dialog._arguments is not None
        country, city, days = (dialog._arguments.lines[name] for name in ("country", "city", "days"))
        await until(lambda: country.hasFocus())
        types("J")
        await until(lambda: country.suggestions == ["Japan"])
        popup = country.completer().popup()
        assert popup is not None and popup.isVisible()
        QTest.keyClick(popup, Qt.Key.Key_Down)
        QTest.keyClick(popup, Qt.Key.Key_Return)
        assert country.text() == "Japan"
        await until(lambda: not popup.isVisible())
        country.setFocus()
        await until(lambda: country.hasFocus())
        key(Qt.Key.Key_Return)
        await until(lambda: city.hasFocus())
        await until(lambda: QApplication.activePopupWidget() is None)
        types("Kyoto")
        assert (country.text(), city.text()) == ("Japan", "Kyoto")
        key(Qt.Key.Key_Return)
        await until(lambda: days.hasFocus())
        key(Qt.Key.Key_Return)  # it is optional
        await until(lambda: "Plan 3 days in Kyoto, Japan." in seen(dialog))
        assert "This is what notes gives" in seen(dialog)
        await until(lambda: dialog.preview.use_button.hasFocus())
        key(Qt.Key.Key_Return)
        assert dialog.result() == QDialog.DialogCode.Accepted
        assert dialog.prompt is not None
        assert dialog.prompt.arguments == {"country": "Japan", "city": "Kyoto"}
        assert [message.text for message in dialog.prompt.messages] == ["Plan 3 days in Kyoto, Japan."]


async def test_down_asks_for_the_values_that_fit_what_is_chosen(core: Core, window: QWidget) -> None:
    async with http_server(friendly()) as url:
        given = {"country": "Japan"}
        dialog = await picker(core, window, {"url": url}, server="notes", name="travel", arguments=given)
        assert dialog._arguments is not None
        city = dialog._arguments.lines["city"]
        city.setFocus()
        await until(lambda: city.hasFocus())
        key(Qt.Key.Key_Down)
        await until(lambda: city.suggestions == ["Kyoto", "Osaka", "Tokyo"])
        popup = city.completer().popup()
        assert popup is not None and popup.isVisible()
        QTest.keyClick(popup, Qt.Key.Key_Escape)
        await until(lambda: not popup.isVisible())
        assert city.text() == ""


async def test_what_is_missing_is_said_at_its_line_and_may_be_left_empty_on_purpose(
    core: Core, window: QWidget
) -> None:
    async with http_server(friendly()) as url:
        dialog = await picker(core, window, {"url": url}, server="notes", name="greeting", arguments={"tone": "short"})
        assert dialog._arguments is not None
        assert dialog._arguments.lines["tone"].text() == "short"
        await until(lambda: dialog.preview_button.isEnabled())
        click(dialog, "Preview")
        await until(lambda: "Enter a value, or go on once more to leave it empty." in seen(dialog))
        await until(lambda: dialog._arguments is not None and dialog._arguments.lines["name"].hasFocus())
        click(dialog, "Preview")
        await until(lambda: "Greet  in a short tone." in seen(dialog))
        assert dialog.prompt is not None
        assert dialog.prompt.arguments == {"name": "", "tone": "short"}


async def test_a_prompt_of_the_catalog_is_used_in_the_conversation(core: Core) -> None:
    async with http_server(friendly()) as url:
        write_servers(core.servers_file, notes={"url": url})
        main = MainWindow(core, core.approvals._approver)  # type: ignore[arg-type]  # the fixture's `PersonAnswers`
        main.resize(1200, 760)
        main.show()
        main.activateWindow()
        await core.start()
        await core.catalog.refresh("notes")
        QTest.keyClick(main.chat, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
        dialog = await opened(PromptPicker)
        dialog.reject()
        await until(lambda: not windows(PromptPicker))
        prompt = next(each for each in core.catalog.entries() if each.kind == "prompt" and each.name == "summary")
        main.catalog.prompt_requested.emit(prompt)
        dialog = await opened(PromptPicker)
        await until(lambda: dialog.preview_button.isEnabled())
        click(dialog, "Preview")
        await until(lambda: "Summarise what we have said so far." in seen(dialog))
        click(dialog, "Use")
        await until(lambda: main.chat.conversation.messages and not main.chat.busy)
        assert "I am none; I did nothing." in main.chat.conversation.messages[1].text  # of Guide
        said = main.chat.conversation.messages[0]
        assert [part.kind for part in said.parts] == ["prompt"]
        card = main.chat.findChildren(PromptCard)[0]
        assert card.accessibleName() == "Prompt summary of notes"
        assert "Summarise" not in seen(card)
        click(card, "Show what was sent")
        await until(lambda: "Summarise what we have said so far." in seen(card))
        assert main.windowTitle() == "summary – Deskhand"


def fetches(record: Path) -> int:
    return sum(json.loads(line)["method"] == "prompts/get" for line in record.read_text().splitlines())


async def test_nothing_is_fetched_before_a_preview_and_each_is_fetched_once(
    core: Core, window: QWidget, tmp_path: Path
) -> None:
    record = tmp_path / "record.jsonl"
    prompt = {"messages": [{"role": "assistant", "content": {"type": "text", "text": "I obey."}}]}
    script = scripted(prompts_list={"prompts": [{"name": "say"}]}, prompts_get=prompt, record=str(record))
    dialog = await picker(core, window, {"command": script[0], "args": script[1:]})
    await until(lambda: names(dialog) == ["say"])
    dialog.view.setCurrentIndex(dialog.model.index(0))
    assert fetches(record) == 0
    click(dialog, "Preview")
    await until(lambda: "I obey." in seen(dialog))
    assert "As the assistant" in seen(dialog)
    click(dialog, "Back")
    assert dialog.prompt is None
    click(dialog, "Preview")
    await until(lambda: "I obey." in seen(dialog))
    assert fetches(record) == 2
    click(dialog, "Use")
    assert fetches(record) == 2
