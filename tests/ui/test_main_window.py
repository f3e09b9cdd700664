"""The window as a whole: shortcuts, panes that make room, what is remembered, names for screen readers, small screens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QAction, QCloseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QToolButton, QWidget

from desktop.assistant.conversation import Conversation, Message, Text
from desktop.core import Core
from desktop.ui import theme
from desktop.ui.dialogs.server_editor import ServerEditor
from desktop.ui.dialogs.settings_dialog import SettingsDialog
from desktop.ui.error_box import ErrorBox
from desktop.ui.main_window import MainWindow
from tests.ui.person import opened, seen, until, windows, write_servers

pytestmark = pytest.mark.anyio


@pytest.fixture
async def window(core: Core) -> Any:
    window = MainWindow(core, core.approvals._approver)  # type: ignore[arg-type]  # the fixture's `PersonAnswers`
    window.resize(1200, 760)
    window.show()
    window.activateWindow()
    await core.start()
    await until(lambda: "Starting" not in seen(window.servers))
    yield window
    window.close()
    theme.apply("system")


def press(window: QWidget, key: Qt.Key, *modifiers: Qt.KeyboardModifier) -> None:
    window.activateWindow()
    modifier = Qt.KeyboardModifier.ControlModifier
    for each in modifiers:
        modifier |= each
    QTest.keyClick(QApplication.focusWidget() or window, key, modifier)


def panes(window: MainWindow) -> tuple[bool, bool]:
    """Whether the conversations and the side panel are shown."""
    return not window.conversations.isHidden(), not window.panels.isHidden()


async def conversation(core: Core, text: str) -> Conversation:
    made = Conversation(title=text)
    core.history.save(made, made.add(Message("user", [Text(text)])))
    await core.history.flush()
    return made


# Keyboard


async def test_writing_begins_at_once(window: MainWindow) -> None:
    QTest.keyClicks(QApplication.focusWidget(), "hello")
    assert "hello" in seen(window.chat) or window.chat.isAncestorOf(QApplication.focusWidget())


async def test_shortcuts_lead_to_each_part(window: MainWindow) -> None:
    press(window, Qt.Key.Key_F)
    assert isinstance(QApplication.focusWidget(), QLineEdit)
    assert window.conversations.isAncestorOf(QApplication.focusWidget())
    press(window, Qt.Key.Key_S, Qt.KeyboardModifier.ShiftModifier)
    assert window.servers.isAncestorOf(QApplication.focusWidget())
    press(window, Qt.Key.Key_L)
    assert window.chat.isAncestorOf(QApplication.focusWidget())
    press(window, Qt.Key.Key_Comma)
    QTest.keyClick(await opened(SettingsDialog), Qt.Key.Key_Escape)
    await until(lambda: not windows(SettingsDialog))
    window.activateWindow()
    await until(lambda: QApplication.focusWidget() is not None and window.isAncestorOf(QApplication.focusWidget()))
    press(window, Qt.Key.Key_M)
    menu = await opened(QMenu)
    assert menu.accessibleName() == "Model"


async def test_another_model_leads_to_the_settings(window: MainWindow) -> None:
    press(window, Qt.Key.Key_M)
    menu = await opened(QMenu)
    QTest.keyClick(menu, Qt.Key.Key_Up)
    QTest.keyClick(menu, Qt.Key.Key_Return)
    assert "In use: Guide" in seen(await opened(SettingsDialog))


async def test_the_menus_hold_every_shortcut(window: MainWindow) -> None:
    listed = {
        action.shortcut().toString()
        for menu in window.menuBar().findChildren(QMenu)
        for action in menu.actions()
        if not action.shortcut().isEmpty()
    }
    assert listed == {
        "Ctrl+N", "Ctrl+F", "Ctrl+,", "Ctrl+Q", "Ctrl+L", "Ctrl+J", "Ctrl+M", "Ctrl+Shift+S", "Ctrl+Shift+F", "Ctrl+Shift+L",
            "Ctrl+Shift+P", "Ctrl+P", "Ctrl+Shift+W",
    }  # fmt: skip


async def test_a_server_is_added_from_the_menu(window: MainWindow) -> None:
    [add] = [each for each in window.findChildren(QAction) if "Add a server" in each.text().replace("&", "")]
    add.trigger()
    assert (await opened(ServerEditor)).windowTitle() == "Add a server"


async def test_every_control_has_a_name_and_every_icon_a_tool_tip(window: MainWindow, core: Core) -> None:
    write_servers(core.servers_file, docs={"url": "http://127.0.0.1:9/"}, mail={"command": "x"})
    await core.reload_servers()
    await until(lambda: "Allow to start" in seen(window.servers))
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or widget.objectName().startswith("qt_"):
            continue
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
            interface: Any = QAccessible.queryAccessibleInterface(widget)
            assert interface.text(QAccessible.Text.Name), widget
        if isinstance(widget, QToolButton) and not widget.text():
            assert widget.toolTip(), widget


async def test_labels_read_no_markup(window: MainWindow) -> None:
    assert {label.textFormat() for label in window.findChildren(QLabel)} == {Qt.TextFormat.PlainText}


async def test_tab_goes_through_the_whole_window_and_comes_back(window: MainWindow) -> None:
    start = QApplication.focusWidget()
    seen_parts = set[str]()
    for _ in range(80):
        window.focusNextChild()
        focused = QApplication.focusWidget()
        for name in ("conversations", "chat", "panels"):
            if getattr(window, name).isAncestorOf(focused):
                seen_parts.add(name)
        if focused is start:
            break
    assert QApplication.focusWidget() is start
    assert seen_parts == {"conversations", "chat", "panels"}


# Panes


@pytest.mark.parametrize(
    ("width", "height", "shown"), [(1200, 760, (True, True)), (900, 600, (True, True)), (640, 480, (True, False))]
)
async def test_side_panes_make_room_for_the_chat(
    window: MainWindow, width: int, height: int, shown: tuple[bool, bool]
) -> None:
    window.resize(width, height)
    await asyncio.sleep(0.05)
    assert (window.width(), window.height()) == (width, height)
    assert panes(window) == shown
    assert window.chat.width() >= 340
    for pane in (window.conversations, window.chat, window.panels):
        if pane.isVisible():
            left = pane.mapTo(window, QPoint(0, 0)).x()
            assert left >= 0
            assert left + pane.width() <= width


async def test_a_pane_that_is_asked_for_takes_the_other_s_place_in_a_narrow_window(window: MainWindow) -> None:
    window.resize(640, 480)
    await until(lambda: panes(window) == (True, False))
    press(window, Qt.Key.Key_S, Qt.KeyboardModifier.ShiftModifier)
    assert panes(window) == (False, True)
    window.resize(1200, 760)
    await until(lambda: panes(window) == (True, True))


async def test_a_pane_that_was_put_away_stays_away(window: MainWindow, core: Core) -> None:
    press(window, Qt.Key.Key_P, Qt.KeyboardModifier.ShiftModifier)
    assert panes(window) == (True, False)
    assert not window._toggles["panels"].isChecked()
    window.resize(1300, 800)
    assert panes(window) == (True, False)
    again = MainWindow(core, core.approvals._approver)  # type: ignore[arg-type]
    assert panes(again) == (True, False)
    press(window, Qt.Key.Key_P, Qt.KeyboardModifier.ShiftModifier)
    assert panes(window) == (True, True)


async def test_size_and_widths_are_remembered(window: MainWindow, core: Core) -> None:
    window.resize(740, 640)  # the test's screen has a width of 800
    await until(lambda: panes(window) == (True, False))
    window._splitter.setSizes([290, 450, 0])
    await asyncio.sleep(0.02)
    sizes = window._splitter.sizes()
    window.close()
    again = MainWindow(core, core.approvals._approver)  # type: ignore[arg-type]
    again.show()
    await until(lambda: (again.width(), again.height()) == (740, 640))
    assert again._splitter.sizes() == sizes
    assert sizes[0] >= 280


async def test_nonsense_in_the_settings_is_no_hindrance(core: Core) -> None:
    core.settings.change(window_geometry="ü%%%", window_state="AAAA", side_panes=["panels", "nonsense"])
    window = MainWindow(core, core.approvals._approver)  # type: ignore[arg-type]
    window.show()
    assert panes(window) == (False, True)


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
async def test_large_fonts_and_either_direction_fit(
    window: MainWindow, core: Core, qapp: QApplication, direction: Qt.LayoutDirection
) -> None:
    try:
        qapp.setLayoutDirection(direction)
        core.settings.change(color_scheme="dark", font_size=20)
        window.resize(900, 600)
        await asyncio.sleep(0.1)
        assert (window.width(), window.height()) == (900, 600)
        assert window.chat.width() >= 340
        if not window.panels.isHidden():
            in_order = window.chat.x() < window.panels.x()
            assert in_order == (direction == Qt.LayoutDirection.LeftToRight)
    finally:
        qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        core.settings.change(color_scheme="system", font_size=0)


# Conversations


async def test_a_chosen_conversation_opens_and_its_title_is_the_window_s(window: MainWindow, core: Core) -> None:
    made = await conversation(core, "Open <b>invoices</b>\u202e")
    window.conversations.chosen.emit(made.id)
    await until(lambda: window.chat.conversation.id == made.id)
    assert window.windowTitle() == "Open <b>invoices</b>\\u202E – Deskhand"
    press(window, Qt.Key.Key_N)
    assert window.chat.conversation.messages == []
    assert window.windowTitle() == "Deskhand"


async def test_of_two_chosen_conversations_the_later_opens(
    window: MainWindow, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await conversation(core, "first"), await conversation(core, "second")
    load, gates = core.history.load, {first.id: asyncio.Event(), second.id: asyncio.Event()}

    async def gated(id_: str) -> Conversation:
        await gates[id_].wait()
        return await load(id_)

    monkeypatch.setattr(core.history, "load", gated)
    window.conversations.chosen.emit(first.id)
    window.conversations.chosen.emit(second.id)
    gates[second.id].set()
    await until(lambda: window.chat.conversation.id == second.id)
    gates[first.id].set()
    await asyncio.sleep(0.05)
    assert window.chat.conversation.id == second.id


async def test_a_deleted_conversation_is_not_shown_any_more(window: MainWindow, core: Core) -> None:
    made = await conversation(core, "gone soon")
    window.conversations.chosen.emit(made.id)
    await until(lambda: window.chat.conversation.id == made.id)
    await core.history.delete(made.id)
    window.conversations.deleted.emit(made.id)
    assert window.chat.conversation.id != made.id


async def test_a_conversation_that_is_gone_meanwhile_leaves_the_shown_one(window: MainWindow, core: Core) -> None:
    made = await conversation(core, "stays")
    window.conversations.chosen.emit(made.id)
    await until(lambda: window.chat.conversation.id == made.id)
    window.conversations.chosen.emit("gone")
    await until(lambda: window._loading is not None and window._loading.done())
    assert window.chat.conversation.id == made.id
    assert windows(ErrorBox) == []


# Theme, closing


async def test_a_change_of_colours_reaches_the_whole_window(window: MainWindow, core: Core) -> None:
    core.settings.change(color_scheme="dark")
    await until(lambda: window.servers.palette().window().color().lightness() < 128)
    assert window.grab().toImage().pixelColor(window.width() - 5, window.height() - 5).lightness() < 128
    core.settings.change(color_scheme="light")
    await until(lambda: window.servers.palette().window().color().lightness() > 128)


async def test_closing_is_said_once_and_accepted(window: MainWindow) -> None:
    closed: list[int] = []
    window.closed.connect(lambda: closed.append(1))
    event = QCloseEvent()
    QApplication.sendEvent(window, event)
    assert event.isAccepted()
    assert closed == [1]
    window.show()
    press(window, Qt.Key.Key_Q)
    assert closed == [1, 1]
