"""The list of conversations, on a real history."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QModelIndex, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QToolTip

from desktop.assistant.conversation import Conversation, Message, Text
from desktop.assistant.history import History
from desktop.assistant.history_database import Summary
from desktop.ui.chat.conversation_list import ConversationList
from desktop.ui.chat.conversation_rows import Role
from tests.ui.person import click, seen, until

pytestmark = pytest.mark.anyio

DAY = 86_400


class Listed:
    """A shown list."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.list = ConversationList(history)
        self.chosen: list[str] = []
        self.deleted: list[str] = []
        self.list.chosen.connect(self.chosen.append)
        self.list.deleted.connect(self.deleted.append)
        self.list.resize(240, 400)
        self.list.show()
        self.list.activateWindow()

    async def add(self, title: str, text: str = "hello", *, days_ago: float = 0) -> Conversation:
        conversation = Conversation(title=title)
        message = conversation.add(Message("user", [Text(text)]))
        conversation.updated = time.time() - days_ago * DAY
        self.history.save(conversation, message)
        await self.history.flush()
        await until(lambda: self.row(title) is not None)
        return conversation

    @property
    def rows(self) -> list[str]:
        return [self.list.model.index(row).data() for row in range(self.list.model.rowCount())]

    def row(self, title: str) -> QModelIndex | None:
        return next(
            (
                index
                for row in range(self.list.model.rowCount())
                if (index := self.list.model.index(row)).data() == title
            ),
            None,
        )

    def point(self, title: str) -> QPoint:
        index = self.row(title)
        assert index is not None
        return self.list.view.visualRect(index).center()

    def select(self, title: str) -> None:
        index = self.row(title)
        assert index is not None
        self.list.view.setCurrentIndex(index)
        self.list.view.setFocus()


@pytest.fixture
async def listed(tmp_path: Path) -> AsyncGenerator[Listed, None]:
    history = History(tmp_path / "history.db")
    await history.open()
    yield Listed(history)
    await history.close()


async def test_conversations_stand_under_their_days_newest_first(listed: Listed) -> None:
    await listed.add("Long ago", days_ago=40)
    await listed.add("Yesterday's", days_ago=1)
    await listed.add("Now")
    await until(lambda: listed.rows == ["Today", "Now", "Yesterday", "Yesterday's", "Earlier", "Long ago"])
    heading = listed.list.model.index(0)
    assert not listed.list.model.flags(heading) & Qt.ItemFlag.ItemIsSelectable


async def test_a_click_and_enter_choose(listed: Listed) -> None:
    one, other = await listed.add("One"), await listed.add("Other")
    QTest.mouseClick(listed.list.view.viewport(), Qt.MouseButton.LeftButton, pos=listed.point("One"))
    assert listed.chosen == [one.id]
    listed.select("Other")
    QTest.keyClick(listed.list.view, Qt.Key.Key_Return)
    assert listed.chosen == [one.id, other.id]
    QTest.mouseClick(listed.list.view.viewport(), Qt.MouseButton.LeftButton, pos=listed.point("Today"))
    assert len(listed.chosen) == 2


async def test_search_finds_words_and_shows_where(listed: Listed) -> None:
    await listed.add("Groceries", "We need apples and a very special marmalade")
    await listed.add("Work", "The report is due")
    [field] = listed.list.findChildren(QLineEdit)
    listed.list.focus_search()
    QTest.keyClicks(field, "marmal")
    await until(lambda: listed.rows == ["Groceries"])
    assert "marmalade" in listed.list.model.index(0).data(Role.SNIPPET)
    field.clear()
    QTest.keyClicks(field, "nothing like that")
    await until(lambda: "Nothing found" in seen(listed.list))
    QTest.keyClick(field, Qt.Key.Key_Escape)
    await until(lambda: "Work" in listed.rows)


async def test_down_goes_from_the_search_into_the_list(listed: Listed) -> None:
    conversation = await listed.add("Only")
    listed.list.focus_search()
    [field] = listed.list.findChildren(QLineEdit)
    QTest.keyClick(field, Qt.Key.Key_Down)
    assert listed.list.view.hasFocus()
    QTest.keyClick(listed.list.view, Qt.Key.Key_Return)
    assert listed.chosen == [conversation.id]


async def test_f2_renames(listed: Listed) -> None:
    conversation = await listed.add("Old title")
    listed.select("Old title")
    QTest.keyClick(listed.list.view, Qt.Key.Key_F2)
    [editor] = [each for each in listed.list.view.findChildren(QLineEdit) if each.isVisible()]
    editor.selectAll()
    QTest.keyClicks(editor, "New title")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    await until(lambda: "New title" in listed.rows)
    assert (await listed.history.load(conversation.id)).title == "New title"


async def test_a_conversation_is_deleted_after_a_question_that_blocks_nothing(listed: Listed) -> None:
    conversation = await listed.add("Doomed <b>one</b>")
    await listed.add("Kept")
    listed.select("Doomed <b>one</b>")
    QTest.keyClick(listed.list.view, Qt.Key.Key_Delete)
    assert "Delete “Doomed <b>one</b>” for good?" in seen(listed.list)
    click(listed.list, "Keep")
    assert "for good?" not in seen(listed.list)
    listed.select("Doomed <b>one</b>")
    QTest.keyClick(listed.list.view, Qt.Key.Key_Delete)
    click(listed.list, "Delete")
    await until(lambda: listed.rows == ["Today", "Kept"])
    assert listed.deleted == [conversation.id]
    with pytest.raises(KeyError):
        await listed.history.load(conversation.id)


async def test_escape_answers_the_question_with_no(listed: Listed) -> None:
    await listed.add("Kept")
    listed.select("Kept")
    QTest.keyClick(listed.list.view, Qt.Key.Key_Delete)
    focused = QApplication.focusWidget()
    assert focused is not None
    QTest.keyClick(focused, Qt.Key.Key_Escape)
    assert "for good?" not in seen(listed.list)
    assert listed.list.view.hasFocus()
    assert listed.deleted == []


async def test_the_menu_renames_and_deletes(listed: Listed) -> None:
    await listed.add("One")
    listed.select("One")
    listed.list.view.customContextMenuRequested.emit(listed.point("One"))
    [menu] = [each for each in listed.list.findChildren(QMenu) if each.isVisible()]
    assert [action.text() for action in menu.actions()] == ["Rename", "Delete"]
    menu.actions()[1].trigger()
    await until(lambda: "for good?" in seen(listed.list))


async def test_running_and_waiting_conversations_are_marked(listed: Listed) -> None:
    conversation = await listed.add("Busy")
    index = listed.row("Busy")
    assert index is not None
    listed.list.show_states({conversation.id}, set())
    assert index.data(Role.STATE) == "running"
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "Busy, running"
    listed.list.show_states({conversation.id}, {conversation.id})
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "Busy, waits for you"
    listed.list.show_states(set(), set())
    assert index.data(Role.STATE) == ""


async def test_the_open_conversation_stays_marked_when_the_list_changes(listed: Listed) -> None:
    conversation = await listed.add("Open")
    listed.list.show_current(conversation.id)
    await listed.add("Newer")
    assert listed.list.view.currentIndex().data() == "Open"


async def test_a_long_title_is_elided_and_its_tool_tip_has_it_whole_as_text(listed: Listed) -> None:
    title = "<b>A long title</b> " + "word " * 20 + "end"
    await listed.add(title.strip())
    point = listed.point(title)
    view = listed.list.view
    event = QHelpEvent(QEvent.Type.ToolTip, point, view.viewport().mapToGlobal(point))
    QApplication.sendEvent(view.viewport(), event)
    await until(lambda: "end" in QToolTip.text())
    assert "&lt;b&gt;A long title" in QToolTip.text()


async def test_an_empty_history_says_so(listed: Listed) -> None:
    listed.list.reload()
    await until(lambda: "Conversations will be listed here" in seen(listed.list))


async def test_a_list_that_is_read_while_a_title_is_edited_waits(listed: Listed) -> None:
    await listed.add("Edited")
    listed.select("Edited")
    QTest.keyClick(listed.list.view, Qt.Key.Key_F2)
    [editor] = [each for each in listed.list.view.findChildren(QLineEdit) if each.isVisible()]
    other = Conversation(title="Came meanwhile")
    listed.history.save(other, other.add(Message("user", [Text("x")])))
    await listed.history.flush()
    listed.list.reload()
    QTest.keyClicks(editor, " more")
    assert editor.isVisible()
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    await until(lambda: "Came meanwhile" in listed.rows)


async def test_ten_thousand_conversations_are_listed_in_no_time(listed: Listed) -> None:
    now = time.time()
    summaries = [Summary(str(number), f"Conversation {number}", now - number * 600, "") for number in range(10_000)]
    started = time.process_time()
    listed.list.model.show_summaries(summaries, grouped=True)
    listed.list.grab()
    assert time.process_time() - started < 1
    assert listed.list.model.rowCount() == 10_003


async def test_scrolling_to_the_end_reads_more(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    await history.open()
    for number in range(520):
        conversation = Conversation(title=f"Conversation {number}")
        conversation.updated = time.time() - 10 * DAY - number
        history.save(conversation, conversation.add(Message("user", [Text("x")])))
    await history.flush()
    listed = Listed(history)
    listed.list.reload()
    await until(lambda: listed.list.model.rowCount() == 501)
    bar = listed.list.view.verticalScrollBar()
    await until(lambda: bar.maximum() > 0)
    bar.setValue(bar.maximum())
    await until(lambda: listed.list.model.rowCount() == 521)
    await history.close()
