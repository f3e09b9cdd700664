"""What is offered while one writes: chosen and taken by keyboard and mouse, and out of the way else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QListView, QPlainTextEdit, QVBoxLayout, QWidget

from desktop.errors import AssistantError
from desktop.ui.chat.completion_popup import CompletionPopup, Offer, Source
from desktop.ui.chat.composer import Composer
from tests.ui.person import until

pytestmark = pytest.mark.anyio

FRUITS = ("apple", "apricot", "banana", "cherry")


class Writing:
    """A composer in a window, which offers fruits behind ``@`` and two commands behind ``/``."""

    def __init__(self) -> None:
        self.window = QWidget()
        self.composer = Composer()
        self.sent: list[str] = []
        self.taken: list[str] = []
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.composer.sent.connect(lambda: self.sent.append(self.composer.text))
        layout = QVBoxLayout(self.window)
        layout.addStretch()
        layout.addWidget(self.composer)
        self.popup: CompletionPopup = self.composer.completions
        self.popup.add_source(Source("@", "Fruits", self._fruits))
        self.popup.add_source(Source("/", "Commands", self._commands, whole_line=True))
        self.window.resize(600, 400)
        self.window.show()
        self.window.activateWindow()
        self.composer.setFocus()

    @property
    def field(self) -> QPlainTextEdit:
        found = self.composer.findChild(QPlainTextEdit)
        assert isinstance(found, QPlainTextEdit)
        return found

    def press(self, key: Qt.Key) -> None:
        QTest.keyClick(self.field, key)

    async def write(self, text: str, *offered: str) -> None:
        """Writes, and waits until just this is offered."""
        QTest.keyClicks(self.field, text)
        await until(lambda: self.popup.labels == list(offered))

    async def _fruits(self, written: str) -> Sequence[Offer]:
        self.asked.append(written)
        if written == "refused":
            raise AssistantError("operation_failed")
        await self.go_on.wait()
        found = [each for each in FRUITS if each.startswith(written)]
        return [Offer(each, "a fruit", take=lambda each=each: self.taken.append(each)) for each in found]

    async def _commands(self, written: str) -> Sequence[Offer]:
        return [Offer(each, insert=each) for each in ("/mcp help", "/mcp log") if each[1:].startswith(written)]


@pytest.fixture
def writing(anyio_backend: object) -> Writing:
    return Writing()


async def test_what_fits_the_word_at_the_cursor_is_offered_and_enter_takes_it_in_the_words_place(
    writing: Writing,
) -> None:
    await writing.write("I like @ap", "apple", "apricot")
    writing.press(Qt.Key.Key_Down)
    writing.press(Qt.Key.Key_Return)
    assert (writing.taken, writing.composer.text, writing.popup.labels) == (["apricot"], "I like ", [])
    assert writing.sent == []
    writing.press(Qt.Key.Key_Return)
    assert writing.sent == ["I like "]


async def test_up_from_the_first_goes_to_the_last_and_tab_takes_it(writing: Writing) -> None:
    await writing.write("@", *FRUITS)
    writing.press(Qt.Key.Key_Up)
    writing.press(Qt.Key.Key_Tab)
    assert writing.taken == ["cherry"]
    assert writing.field.hasFocus()


async def test_escape_closes_the_list_until_another_word_is_begun(writing: Writing) -> None:
    await writing.write("@b", "banana")
    writing.press(Qt.Key.Key_Escape)
    assert writing.popup.labels == []
    QTest.keyClicks(writing.field, "a")
    assert writing.asked[-1] == "b"
    writing.press(Qt.Key.Key_Return)
    assert writing.sent == ["@ba"]
    await writing.write(" @c", "cherry")


@pytest.mark.parametrize("text", ["me@a", "@zzz", "@refused", "a /mcp", "say@"])
async def test_where_nothing_is_offered_enter_sends(writing: Writing, text: str) -> None:
    QTest.keyClicks(writing.field, text)
    await until(lambda: writing.popup._asking is None or writing.popup._asking.done())
    writing.press(Qt.Key.Key_Return)
    assert writing.sent == [text]


async def test_a_click_takes_what_the_mouse_points_at_and_the_field_keeps_the_keyboard(writing: Writing) -> None:
    await writing.write("@", *FRUITS)
    view = writing.popup.findChild(QListView)
    assert isinstance(view, QListView)
    assert view.accessibleName() == "Fruits"
    place = view.visualRect(view.model().index(2, 0)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
    assert writing.taken == ["banana"]
    assert writing.field.hasFocus()


async def test_enter_waits_for_the_answer_to_what_is_written(writing: Writing) -> None:
    await writing.write("@", *FRUITS)
    writing.go_on.clear()
    QTest.keyClicks(writing.field, "ban")
    writing.press(Qt.Key.Key_Return)
    assert (writing.taken, writing.sent) == ([], [])
    writing.go_on.set()
    await until(lambda: writing.taken == ["banana"])
    assert writing.composer.text == ""


async def test_a_command_goes_on_being_completed_and_a_whole_one_is_sent_by_enter(writing: Writing) -> None:
    await writing.write("/mcp", "/mcp help", "/mcp log")
    writing.press(Qt.Key.Key_Down)
    writing.press(Qt.Key.Key_Return)
    assert writing.composer.text == "/mcp log"
    await until(lambda: writing.popup.labels == ["/mcp log"])
    writing.press(Qt.Key.Key_Return)
    assert writing.sent == ["/mcp log"]


async def test_the_list_stands_above_the_line_within_the_window(writing: Writing) -> None:
    await writing.write("some words before @", *FRUITS)
    popup, field = writing.popup.geometry(), writing.field
    assert writing.popup.parentWidget() is writing.window
    assert writing.window.rect().contains(popup)
    assert popup.bottom() < field.mapTo(writing.window, field.cursorRect().topLeft()).y()
