"""The chat: sending, streaming, stopping, several conversations at once; what is read stays where it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QScrollBar

from desktop.assistant import stored_definitions
from desktop.assistant.approval import ApprovalRequest
from desktop.assistant.conversation import (
    Choice,
    ChoiceOption,
    Conversation,
    Message,
    Notice,
    Text,
    ToolCall,
    ToolOutput,
    Usage,
)
from desktop.assistant.events import (
    PartAdded,
    PartChanged,
    ToolCallFinished,
    ToolCallStarted,
    ToolsActivated,
    TurnEvent,
)
from desktop.catalog_entries import ServerEntry, ToolDefinition
from desktop.errors import AssistantError, Diagnostic
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.chat_header import ToolsPopup
from desktop.ui.chat.chat_pane import ChatPane
from desktop.ui.chat.composer import Composer
from desktop.ui.chat.message_field import LONGEST
from desktop.ui.chat.message_list import MessageList
from desktop.ui.chat.message_widget import MessageWidget
from desktop.ui.chat.text_view import TextView
from desktop.ui.chat.tool_call_card import ToolCallCard
from tests.ui.fake_assistant import FakeAssistant, FakeCore, FakeTurn
from tests.ui.person import button, click, opened, seen, until

pytestmark = pytest.mark.anyio

TOOL = ToolDefinition("a", "b", "mcp__a__b", "does b", {"type": "object"}, "fingerprint", "identity")


class Chat:
    """A shown pane on a fake core."""

    def __init__(self, folder: Path, *, started: bool = True) -> None:
        self.core = FakeCore(folder)
        if started:
            self.core.start()
        self.answers = PersonAnswers()
        self.pane = ChatPane(self.core.as_core, self.answers)
        self.pane.resize(700, 500)
        self.pane.show()
        self.pane.activateWindow()
        self.pane.setFocus()

    @property
    def assistant(self) -> FakeAssistant:
        return self.core.assistant

    @property
    def messages(self) -> MessageList:
        [found] = self.pane.findChildren(MessageList)
        return found

    @property
    def field(self) -> QPlainTextEdit:
        [composer] = self.pane.findChildren(Composer)
        field = composer.findChild(QPlainTextEdit)
        assert isinstance(field, QPlainTextEdit)
        return field

    def write(self, text: str) -> None:
        QTest.keyClicks(self.field, text)

    def press(self, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.field, key, modifier)

    def texts(self) -> list[str]:
        """What the messages say, oldest first."""
        views = [view for view in self.messages.findChildren(TextView) if view.isVisible()]
        return [
            view.toPlainText() for view in sorted(views, key=lambda view: view.mapTo(self.messages, view.pos()).y())
        ]

    async def whole(self, count: int) -> QScrollBar:
        """Waits until all messages are there and the end is shown; the scroll bar."""
        bar = self.messages.verticalScrollBar()
        await until(lambda: len(self.messages.findChildren(MessageWidget)) == count)
        await until(lambda: bar.value() == bar.maximum() > 0)
        return bar

    async def idle(self) -> None:
        await until(lambda: not self.pane.busy)


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncGenerator[Chat, None]:
    made = Chat(tmp_path)
    yield made
    made.pane.stop()
    await made.idle()


def long_conversation(count: int) -> Conversation:
    conversation = Conversation(title="Long")
    for number in range(count // 2):
        conversation.add(Message("user", [Text(f"Question {number}")]))
        conversation.add(Message("assistant", [Text(f"Answer {number}: " + "many words " * 30)], model="A model"))
    return conversation


# Sending and streaming


async def test_enter_sends_and_the_answer_is_drawn_as_it_comes(chat: Chat) -> None:
    go_on = asyncio.Event()

    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        yield turn.text("Half an")
        await go_on.wait()
        yield turn.text(" answer **and more**.")

    chat.assistant.script = script
    chat.write("Hello")
    chat.press(Qt.Key.Key_Return)
    await until(lambda: chat.texts() == ["Hello", "Half an"])
    assert chat.pane.busy
    assert chat.field.toPlainText() == ""
    go_on.set()
    await chat.idle()
    await until(lambda: chat.texts() == ["Hello", "Half an answer and more."])
    assert "Test model" in seen(chat.messages)


async def test_shift_enter_begins_a_line_and_blank_text_is_not_sent(chat: Chat) -> None:
    chat.press(Qt.Key.Key_Return)
    chat.write("  ")
    chat.press(Qt.Key.Key_Return)
    assert not chat.pane.busy
    chat.field.clear()
    chat.write("one")
    height = chat.field.height()
    chat.press(Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    chat.write("two")
    assert chat.field.toPlainText() == "one\ntwo"
    assert chat.field.height() > height
    click(chat.pane, "Send (Enter)")
    await chat.idle()
    await until(lambda: chat.texts()[:1] == ["one\ntwo"])


async def test_enter_belongs_to_the_input_method_while_it_composes(chat: Chat) -> None:
    QApplication.sendEvent(chat.field, QInputMethodEvent("にほ", []))
    chat.press(Qt.Key.Key_Return)
    assert not chat.pane.busy
    commit = QInputMethodEvent("", [])
    commit.setCommitString("日本")
    QApplication.sendEvent(chat.field, commit)
    chat.press(Qt.Key.Key_Return)
    await chat.idle()
    await until(lambda: "You said: 日本" in chat.texts()[-1])


async def test_a_huge_paste_is_cut_and_that_is_said(chat: Chat) -> None:
    data = QMimeData()
    data.setText("x" * (LONGEST + 100))
    data.setHtml("<b>rich</b>")
    chat.field.insertFromMimeData(data)
    assert len(chat.field.toPlainText()) == LONGEST
    assert "was cut" in seen(chat.pane)


async def test_escape_stops_the_answer_and_a_further_turn_works(chat: Chat) -> None:
    stopped = asyncio.Event()

    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        yield turn.text("Endless")
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    first, chat.assistant.script = chat.assistant.script, script
    chat.pane.send("Go")
    await until(lambda: "Endless" in chat.texts())
    chat.press(Qt.Key.Key_Escape)
    await chat.idle()
    assert stopped.is_set()
    await until(lambda: "Stopped" in seen(chat.messages))
    chat.assistant.script = first
    chat.pane.send("Again")
    await chat.idle()
    await until(lambda: chat.texts()[-1] == "You said: Again")


async def test_enter_while_an_answer_comes_keeps_what_is_written(chat: Chat) -> None:
    chat.assistant.script = _waiting
    chat.pane.send("Go")
    await until(lambda: chat.pane.conversation.messages)
    chat.write("next")
    chat.press(Qt.Key.Key_Return)
    assert chat.field.toPlainText() == "next"
    assert "Stop it (Esc) or wait" in seen(chat.pane)
    click(chat.pane, "Stop (Esc)")
    await chat.idle()
    assert chat.field.toPlainText() == "next"


async def test_what_is_sent_before_deskhand_has_started_waits_visibly(tmp_path: Path) -> None:
    chat = Chat(tmp_path, started=False)
    chat.pane.send("Early")
    await until(lambda: "Deskhand is starting; your message is sent in a moment." in seen(chat.pane))
    assert chat.pane.busy
    chat.core.start()
    await chat.idle()
    await until(lambda: chat.texts() == ["Early", "You said: Early"])
    assert "is starting" not in seen(chat.pane)


async def test_what_could_not_be_sent_comes_back_and_says_why(chat: Chat) -> None:
    chat.core.fault = AssistantError("model_key_missing", operation="model")
    asked: list[None] = []
    chat.pane.settings_requested.connect(lambda: asked.append(None))
    chat.pane.send("Important words")
    await chat.idle()
    assert chat.field.toPlainText() == "Important words"
    await until(lambda: "Open settings" in seen(chat.pane))
    click(chat.pane, "Open settings")
    assert asked == [None]
    chat.core.fault = None
    chat.press(Qt.Key.Key_Return)
    await chat.idle()
    await until(lambda: chat.texts()[-1] == "You said: Important words")
    assert "Open settings" not in seen(chat.pane)


async def test_stopping_before_the_start_gives_the_text_back(tmp_path: Path) -> None:
    chat = Chat(tmp_path, started=False)
    chat.pane.send("Early")
    await until(lambda: chat.pane.busy)
    chat.press(Qt.Key.Key_Escape)
    await chat.idle()
    assert chat.field.toPlainText() == "Early"


async def test_a_failed_answer_can_be_sent_again(chat: Chat) -> None:
    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        notice = Notice(Diagnostic("model_unreachable", "model"))
        turn.message.parts.append(notice)
        yield PartAdded(notice)

    first, chat.assistant.script = chat.assistant.script, script
    chat.pane.send("Try")
    await chat.idle()
    await until(lambda: "Send again" in seen(chat.messages))
    chat.assistant.script = first
    click(chat.messages, "Send again")
    await chat.idle()
    await until(lambda: chat.texts()[-1] == "You said: Try")


async def test_a_summary_of_earlier_turns_can_be_read(chat: Chat) -> None:
    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        summary = "The house is red.\u202e"
        notice = Notice(Diagnostic("context_summarised", "model"), "info", covers="a", summary=summary)
        turn.message.parts.append(notice)
        yield PartAdded(notice)
        yield turn.text("Yes.")

    chat.assistant.script = script
    chat.pane.send("What next?")
    await chat.idle()
    await until(lambda: "so it gets a summary in their place" in seen(chat.messages))
    assert "The house is red." not in seen(chat.messages)
    click(chat.messages, "Summary")
    await until(lambda: "The house is red.\\u202E" in seen(chat.messages))
    assert "Send again" not in seen(chat.messages)
    click(chat.messages, "Summary")
    await until(lambda: "The house is red." not in seen(chat.messages))


# Several conversations


async def test_another_conversation_does_not_stop_a_turn_and_coming_back_shows_it_live(chat: Chat) -> None:
    go_on = asyncio.Event()

    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        yield turn.text("before ")
        await go_on.wait()
        yield turn.text("after")
        await asyncio.Event().wait()

    chat.assistant.script = script
    states: list[tuple[set[str], set[str]]] = []
    chat.pane.running_changed.connect(lambda running, waiting: states.append((running, waiting)))
    chat.pane.send("First")
    first = chat.pane.conversation
    await until(lambda: "before " in chat.texts() or "before" in chat.texts())
    chat.write("a draft")
    chat.pane.open_conversation(Conversation(title="Other"))
    assert not chat.pane.busy
    assert chat.field.toPlainText() == ""
    chat.write("another draft")
    go_on.set()
    await until(lambda: first.messages[-1].text == "before after")
    # What the history gives is an older copy: the running one is shown.
    chat.pane.open_conversation(Conversation(id=first.id))
    assert chat.pane.conversation is first
    assert chat.pane.busy
    assert chat.field.toPlainText() == "a draft"
    await until(lambda: "before after" in chat.texts())
    assert states[-1] == ({first.id}, set())
    chat.pane.stop()
    await chat.idle()
    assert states[-1] == (set(), set())


async def test_two_conversations_answer_at_once(chat: Chat) -> None:
    chat.assistant.script = _waiting
    chat.pane.send("One")
    one = chat.pane.conversation
    chat.pane.new_conversation()
    chat.pane.send("Two")
    two = chat.pane.conversation
    await until(lambda: one.messages and two.messages)
    assert {one.title, two.title} == {"One", "Two"}
    chat.pane.stop()
    await chat.idle()
    chat.pane.open_conversation(one)
    assert chat.pane.busy


async def test_a_deleted_conversation_stops_and_is_not_shown_any_more(chat: Chat) -> None:
    chat.assistant.script = _waiting
    chat.pane.send("One")
    one = chat.pane.conversation
    await until(lambda: one.messages)
    chat.pane.forget(one.id)
    assert chat.pane.conversation is not one
    await until(lambda: one.messages[-1].finished)


# Header and greeting


async def test_a_new_conversation_greets_with_what_fits(chat: Chat) -> None:
    chat.core.catalog.entries = [ServerEntry("deskhand"), ServerEntry("weather")]
    chat.core.host.servers_changed.emit()
    await until(lambda: "What can weather do?" in seen(chat.pane))
    assert "Guide · finds and runs tools; no language model" in seen(chat.pane)
    click(chat.pane, "What can weather do?")
    assert chat.field.toPlainText() == "What can weather do?"
    chat.core.settings.change(model="openai/gpt-x")
    await until(
        lambda: "The model finds the tools" in seen(chat.pane) or "the model finds the tools" in seen(chat.pane)
    )
    assert "gpt-x" in seen(chat.pane)


async def test_a_server_that_failed_is_not_offered_to_be_asked(chat: Chat) -> None:
    weather = SimpleNamespace(state=SimpleNamespace(status="connected"))
    chat.core.catalog.entries = [ServerEntry("deskhand"), ServerEntry("weather")]
    chat.core.host.connections["weather"] = weather
    chat.core.host.servers_changed.emit()
    await until(lambda: "What can weather do?" in seen(chat.pane))
    weather.state.status = "failed"
    chat.core.host.state_changed.emit("weather")
    await until(lambda: "What can weather do?" not in seen(chat.pane))
    await until(lambda: "What time is it in Tokyo?" in seen(chat.pane))


async def test_the_title_can_be_changed(chat: Chat) -> None:
    chat.pane.send("First words")
    await chat.idle()
    [title] = [
        each for each in chat.pane.findChildren(QLineEdit) if each.accessibleName() == "Title of the conversation"
    ]
    await until(lambda: title.text() == "First words")
    changed: list[str] = []
    chat.pane.conversation_changed.connect(changed.append)
    title.setFocus()
    title.selectAll()
    QTest.keyClicks(title, "Another title")
    QTest.keyClick(title, Qt.Key.Key_Return)
    await until(lambda: chat.core.history.renamed)
    assert chat.core.history.renamed == [(chat.pane.conversation.id, "Another title")]
    assert chat.pane.conversation.title == "Another title"
    assert changed == [chat.pane.conversation.id]


async def test_loaded_tools_are_counted_listed_and_unloaded(chat: Chat) -> None:
    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        call = ToolCall("1", "mcp_tools", '{"activate": ["a.b"]}', state="done", output=ToolOutput("loaded"))
        call.activated = [TOOL.native_name]
        call.details = {"operation": "activate", "rows": [], "loaded": [stored_definitions.to_json(TOOL)]}
        turn.message.parts.append(call)
        yield ToolCallFinished(call)
        yield ToolsActivated((TOOL.native_name,))

    chat.assistant.script = script
    chat.pane.send("Load it")
    await chat.idle()
    await until(lambda: "1 tool loaded" in seen(chat.pane))
    click(chat.pane, "1 tool loaded")
    popup = await opened(ToolsPopup)
    assert "a · b" in seen(popup)
    assert "tokens" in seen(popup)
    click(popup, "Unload a · b")
    assert chat.assistant.unloaded == [TOOL.native_name]
    await until(lambda: "1 tool loaded" not in seen(chat.pane))


async def test_tokens_and_cost_are_in_the_header_with_the_cached_share(chat: Chat) -> None:
    chat.pane.resize(1000, 500)
    conversation = Conversation()
    conversation.add(Message("user", [Text("x")]))
    conversation.add(Message("assistant", [Text("y")], usage=Usage(10_000, 500, 7_500, 0.125)))
    chat.pane.open_conversation(conversation)
    assert "10.5k tokens · $0.12 · 75 % cached" in seen(chat.pane)
    chat.pane.open_conversation(Conversation())
    assert "tokens" not in seen(chat.pane)


# Decisions and questions


async def test_a_waiting_decision_is_announced_where_it_can_not_be_seen(chat: Chat) -> None:
    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        call = ToolCall("1", TOOL.native_name, "{}", "a", "b")
        turn.message.parts.append(call)
        yield ToolCallStarted(call)
        await chat.answers.decide(ApprovalRequest(turn.conversation.id, call, TOOL, {}))
        call.state, call.output = "done", ToolOutput("ran")
        yield ToolCallFinished(call)

    conversation = long_conversation(40)
    chat.pane.open_conversation(conversation)
    chat.assistant.script = script
    waiting: list[set[str]] = []
    chat.pane.running_changed.connect(lambda _, ids: waiting.append(ids))
    chat.pane.send("Do it")
    await until(lambda: "Allow once (a)" in seen(chat.messages))
    assert "A call waits for your decision" not in seen(chat.pane)
    assert waiting[-1] == {conversation.id}
    chat.messages.verticalScrollBar().setValue(0)
    await until(lambda: "A call waits for your decision" in seen(chat.pane))
    click(chat.pane, "Show")
    [card] = [each for each in chat.messages.findChildren(ToolCallCard) if each.waits]
    await until(lambda: chat.messages.in_view(card))
    QTest.keyClicks(card, "a")
    await chat.idle()
    assert "A call waits for your decision" not in seen(chat.pane)
    await until(lambda: "ran" in seen(chat.messages))


async def test_a_question_gets_the_focus_of_a_person_who_waits_and_not_of_one_who_writes(chat: Chat) -> None:
    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        choice = Choice("Which?", [ChoiceOption("one"), ChoiceOption("two")])
        turn.message.parts.append(choice)
        yield PartAdded(choice)
        choice.answer = await chat.answers.choose(choice)
        yield PartChanged(choice)
        yield turn.text(f"chosen: {choice.answer}")

    chat.assistant.script = script
    chat.write("Ask me")
    chat.press(Qt.Key.Key_Return)
    await until(lambda: QApplication.focusWidget() is not None and QApplication.focusWidget() is not chat.field)
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_2)
    await chat.idle()
    await until(lambda: "✔ two" in seen(chat.messages) and "chosen: 1" in chat.texts())

    chat.pane.setFocus()
    chat.write("Ask again")
    chat.press(Qt.Key.Key_Return)
    chat.write("my next message")
    await until(lambda: "None of these" in seen(chat.messages))
    await asyncio.sleep(0)
    assert chat.field.hasFocus()
    assert chat.field.toPlainText() == "my next message"


# The list of messages


async def test_the_newest_hundred_messages_are_widgets_and_older_ones_come_when_asked_for(chat: Chat) -> None:
    chat.pane.open_conversation(long_conversation(400))
    assert "Answer 199" in chat.texts()[-1]
    await until(lambda: len(chat.messages.findChildren(MessageWidget)) == 100)
    bar = chat.messages.verticalScrollBar()
    await until(lambda: bar.value() == bar.maximum() > 0)
    bar.setValue(bar.minimum())
    await until(lambda: len(chat.messages.findChildren(MessageWidget)) == 150)
    click(chat.messages, "Show earlier messages")
    await until(lambda: len(chat.messages.findChildren(MessageWidget)) == 200)


async def test_what_is_read_stays_where_it_is_when_older_messages_load(chat: Chat) -> None:
    conversation = long_conversation(400)
    chat.pane.open_conversation(conversation)
    bar = await chat.whole(100)
    oldest = conversation.messages[-100]
    first = next(each for each in chat.messages.findChildren(MessageWidget) if each.message is oldest)
    bar.setValue(bar.minimum())
    before = first.mapTo(chat.messages, first.rect().topLeft()).y()
    await until(lambda: len(chat.messages.findChildren(MessageWidget)) == 150)
    await until(lambda: first.y() > 1000)
    assert abs(first.mapTo(chat.messages, first.rect().topLeft()).y() - before) <= 60
    assert bar.value() > 1000


async def test_the_view_follows_the_end_only_while_it_is_there(chat: Chat) -> None:
    chat.pane.open_conversation(long_conversation(40))
    bar = await chat.whole(40)
    lines = asyncio.Queue[str]()

    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        while line := await lines.get():
            yield turn.text(line)

    chat.assistant.script = script
    chat.pane.send("Go on")
    for number in range(10):
        lines.put_nowait(f"Line {number}\n\n")
    await until(lambda: "Line 9" in chat.texts()[-1])
    await until(lambda: bar.value() == bar.maximum())
    bar.setValue(bar.maximum() // 2)
    value = bar.value()
    maximum = bar.maximum()
    for number in range(30):
        lines.put_nowait(f"More {number}\n\n")
    await until(lambda: bar.maximum() > maximum)
    assert bar.value() == value
    click(chat.pane, "Jump to the end")
    await until(lambda: bar.value() == bar.maximum())
    lines.put_nowait("The last\n\n")
    await until(lambda: "The last" in chat.texts()[-1])
    await until(lambda: bar.value() == bar.maximum())
    lines.put_nowait("")
    await chat.idle()


async def test_what_unfolds_above_does_not_move_what_is_read(chat: Chat) -> None:
    conversation = long_conversation(20)
    call = ToolCall("1", TOOL.native_name, '{"x": 1}', "a", "b", "done", ToolOutput("line\n" * 40))
    conversation.messages[1].parts.append(call)
    chat.pane.open_conversation(conversation)
    bar = await chat.whole(20)
    bar.setValue(bar.maximum() - 200)
    middle = next(
        each for each in chat.messages.findChildren(MessageWidget) if each.message is conversation.messages[-4]
    )
    before = middle.mapTo(chat.messages, middle.rect().topLeft()).y()
    height = bar.maximum()
    [card] = chat.messages.findChildren(ToolCallCard)
    card.toggle()
    await until(lambda: bar.maximum() > height + 100)
    assert abs(middle.mapTo(chat.messages, middle.rect().topLeft()).y() - before) <= 2


async def test_page_keys_scroll_the_messages_from_the_field(chat: Chat) -> None:
    chat.pane.open_conversation(long_conversation(60))
    bar = await chat.whole(60)
    chat.press(Qt.Key.Key_PageUp)
    assert bar.value() < bar.maximum()
    chat.press(Qt.Key.Key_PageDown)
    assert bar.value() == bar.maximum()


async def test_an_answer_is_copied_whole(chat: Chat) -> None:
    conversation = Conversation()
    conversation.add(Message("user", [Text("Question")]))
    conversation.add(
        Message("assistant", [Text("First part."), ToolCall("1", "x", "{}", state="done", output=ToolOutput("r"))])
    )
    conversation.add(Message("assistant", [Text("Second *part*.")]))
    chat.pane.open_conversation(conversation)
    await until(lambda: "Question" in chat.texts())
    click(chat.messages, "Copy the answer")
    assert QApplication.clipboard().text() == "First part.\n\nSecond *part*."
    click(chat.messages, "Copy message")
    assert QApplication.clipboard().text() == "Question"


async def test_a_long_stream_keeps_the_number_of_widgets_bounded(chat: Chat) -> None:
    chat.pane.open_conversation(long_conversation(100))
    await until(lambda: len(chat.messages.findChildren(MessageWidget)) == 100)
    for number in range(60):
        message = chat.pane.conversation.add(Message("user", [Text(f"More {number}")]))
        chat.messages.add(message)
    await until(lambda: len(chat.messages.findChildren(MessageWidget)) <= 150)
    assert "More 59" in chat.texts()[-1]
    assert button(chat.messages, "Show earlier messages")


async def test_a_huge_message_of_the_person_is_bounded(chat: Chat) -> None:
    conversation = Conversation()
    conversation.add(Message("user", [Text("word " * 40_000)]))
    chat.pane.open_conversation(conversation)
    [widget] = chat.messages.findChildren(MessageWidget)
    await until(lambda: 50 < widget.height() < 500)


@pytest.mark.parametrize("key", [Qt.Key.Key_Tab, Qt.Key.Key_Backtab])
async def test_tab_walks_in_the_order_that_is_seen(chat: Chat, key: Qt.Key) -> None:
    chat.pane.open_conversation(long_conversation(4))
    await until(lambda: len(chat.messages.findChildren(MessageWidget)) == 4)
    visited: list[str] = []
    for _ in range(11):
        focused = QApplication.focusWidget()
        assert focused is not None
        visited.append(focused.accessibleName())
        QTest.keyClick(focused, key)
    expected = [
        "Message",
        "Title of the conversation",
        "Model: Guide · finds and runs tools; no language model",
        "Messages",
        *["Copy message", "Copy the answer"] * 2,
        "Attach",
        "Message",
    ]
    walked = [name for name in visited if name != "Jump to the end"][:10]  # which is there while the end is not in view
    assert walked == (expected if key == Qt.Key.Key_Tab else expected[::-1])


async def test_a_message_that_came_meanwhile_is_shown_once(chat: Chat) -> None:
    conversation = long_conversation(4)
    message = conversation.add(Message("user", [Text("Came meanwhile")]))
    chat.pane.open_conversation(conversation)
    chat.messages.add(message)
    await until(lambda: "Came meanwhile" in chat.texts())
    assert chat.texts().count("Came meanwhile") == 1


async def _waiting(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
    yield turn.text("waiting")
    await asyncio.Event().wait()


def test_the_composer_says_what_it_does(qapp: QApplication) -> None:
    composer = Composer()
    composer.show()
    assert not button(composer, "Send (Enter)").isEnabled()
    composer.set_text("x")
    assert button(composer, "Send (Enter)").isEnabled()
    composer.set_busy(True)
    assert button(composer, "Stop (Esc)").isEnabled()


async def test_the_focus_goes_back_to_the_composer_when_what_had_it_was_answered(chat: Chat) -> None:
    async def script(turn: FakeTurn) -> AsyncGenerator[TurnEvent, None]:
        choice = Choice("Which?", [ChoiceOption("one"), ChoiceOption("two")])
        turn.message.parts.append(choice)
        yield PartAdded(choice)
        choice.answer = await chat.answers.choose(choice)
        yield PartChanged(choice)
        call = ToolCall("1", TOOL.native_name, "{}", "a", "b")
        turn.message.parts.append(call)
        yield ToolCallStarted(call)
        await chat.answers.decide(ApprovalRequest(turn.conversation.id, call, TOOL, {}))
        call.state, call.output = "done", ToolOutput("ran")
        yield ToolCallFinished(call)
        await asyncio.Event().wait()

    chat.assistant.script = script
    chat.pane.send("Ask me")
    await until(lambda: "None of these" in seen(chat.messages))
    click(chat.messages, "1 one")
    await until(lambda: "Allow once (a)" in seen(chat.messages))
    assert chat.field.hasFocus()
    click(chat.messages, "Allow once (a)")
    await until(lambda: "ran" in seen(chat.messages))
    assert chat.field.hasFocus()
