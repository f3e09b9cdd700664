"""Attaching to a message: resources by ``@``, files and images; chips, faults, what is sent, what stays."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QToolButton

from desktop.assistant.attachments import FileSource, ResourceSource
from desktop.assistant.conversation import Attachment, Message, Notice, Text, ToolOutput
from desktop.core import Core
from desktop.errors import Diagnostic
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.attachment_card import AttachmentCard
from desktop.ui.chat.chat_pane import ChatPane
from desktop.ui.chat.composer import MOST_ATTACHED, Composer
from desktop.ui.dialogs.template_form import TemplateForm
from desktop.ui.main_window import MainWindow
from tests.servers.running import friendly, http_server
from tests.ui.person import button, click, opened, seen, until, write_servers

pytestmark = pytest.mark.anyio


class Chat:
    """A chat on the real core, with Guide."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.pane = ChatPane(core, PersonAnswers())
        self.pane.resize(700, 600)
        self.pane.show()
        self.pane.activateWindow()
        self.pane.setFocus()

    @property
    def composer(self) -> Composer:
        [found] = self.pane.findChildren(Composer)
        return found

    @property
    def field(self) -> QPlainTextEdit:
        found = self.composer.findChild(QPlainTextEdit)
        assert isinstance(found, QPlainTextEdit)
        return found

    @property
    def attached(self) -> list[str]:
        """Names on the chips."""
        return [getattr(each.content, "name", "") for each in self.composer.draft.attached]

    async def sent(self) -> Message:
        """What the person said last, once its turn is over."""
        await until(lambda: self.pane.conversation.messages and not self.pane.busy)
        return next(each for each in reversed(self.pane.conversation.messages) if each.role == "user")

    def press(self, key: Qt.Key) -> None:
        QTest.keyClick(self.field, key)


@pytest.fixture
async def alone(core: Core) -> AsyncIterator[Chat]:
    """A chat without servers."""
    chat = Chat(core)
    await core.start()
    yield chat
    chat.pane.stop()
    await until(lambda: not chat.pane.busy)


@pytest.fixture
async def chat(core: Core) -> AsyncIterator[Chat]:
    """A chat with a server."""
    async with http_server(friendly()) as url:
        write_servers(core.servers_file, docs={"url": url})
        chat = Chat(core)
        await core.start()
        yield chat
        chat.pane.stop()
        await until(lambda: not chat.pane.busy)


def files(*paths: Path) -> QMimeData:
    given = QMimeData()
    given.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return given


async def test_a_resource_is_found_by_an_at_sign_attached_and_read_when_the_message_is_sent(chat: Chat) -> None:
    QTest.keyClicks(chat.field, "What is this? @tod")
    await until(lambda: "today" in chat.composer.completions.labels)
    while chat.composer.completions.labels[0] != "today":  # the other server's may come first
        chat.press(Qt.Key.Key_Down)
    chat.press(Qt.Key.Key_Return)
    assert chat.composer.text == "What is this? "
    assert chat.attached == ["today"]
    assert "docs" in seen(chat.composer)
    chat.press(Qt.Key.Key_Return)
    said = await chat.sent()
    [attachment, text] = said.parts
    assert isinstance(attachment, Attachment)
    assert (attachment.server, attachment.uri) == ("docs", "notes://today")
    assert "Call Ann." in attachment.output.text
    assert text == Text("What is this? ")
    assert chat.composer.draft.is_empty
    [card] = await until(lambda: chat.pane.findChildren(AttachmentCard))
    assert "docs · " in seen(card)
    assert "Call Ann." not in seen(card)
    click(card, "Show what was sent")
    await until(lambda: "Call Ann." in seen(card))


async def test_what_can_not_be_read_says_so_at_its_chip_and_nothing_is_sent_or_lost(chat: Chat, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("soon gone")
    chat.composer.take(files(file))
    await until(lambda: chat.attached == ["notes.txt"])
    chat.pane.attach(ResourceSource("docs", "notes://today", "today"))
    QTest.keyClicks(chat.field, "Compare")
    file.unlink()
    chat.press(Qt.Key.Key_Return)
    await until(lambda: not chat.pane.busy)
    assert chat.pane.conversation.messages == []
    assert chat.composer.text == "Compare"
    assert chat.attached == ["notes.txt", "today"]
    assert "File can't be read" in seen(chat.composer)
    assert "notes.txt: The file can't be read: it is gone" in seen(chat.composer)
    click(chat.composer, "Remove notes.txt")
    assert "can't be read" not in seen(chat.composer)
    chat.press(Qt.Key.Key_Return)
    said = await chat.sent()
    assert [part.kind for part in said.parts] == ["attachment", "text"]


async def test_files_and_images_are_attached_by_drop_and_paste(alone: Chat, tmp_path: Path) -> None:
    text, other = tmp_path / "a.txt", tmp_path / "b.pdf"
    text.write_text("hello")
    other.write_bytes(b"%PDF-1.7 \xff\xfe\x00")
    alone.field.insertFromMimeData(files(text, other))
    await until(lambda: "b.pdf: The file is neither text nor an image." in seen(alone.composer))
    assert alone.attached == ["a.txt"]
    alone.composer.take(files(text))
    image = QImage(30, 20, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    given = QMimeData()
    given.setImageData(image)
    assert alone.composer.takes(given)
    alone.field.insertFromMimeData(given)
    await until(lambda: alone.attached == ["a.txt", "Image, 30 × 20"])  # the same file once
    alone.press(Qt.Key.Key_Return)
    said = await alone.sent()
    first, second = said.parts
    assert isinstance(first, Attachment)
    assert isinstance(second, Attachment)
    assert first.output.text == "hello"
    assert base64.b64decode(second.output.images[0].data).startswith(b"\x89PNG")
    assert alone.pane.conversation.title == "a.txt"


async def test_a_file_may_be_dropped_on_the_messages_too(alone: Chat, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    given = files(tmp_path / "a.txt")
    assert alone.pane.acceptDrops()
    dropped = QDropEvent(
        QPointF(200, 100),
        Qt.DropAction.CopyAction,
        given,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    alone.pane.dropEvent(dropped)  # Qt sends one only in a drag of the platform
    assert dropped.isAccepted()
    await until(lambda: alone.attached == ["a.txt"])
    assert alone.field.hasFocus()


async def test_who_reads_nothing_of_what_is_attached_is_named_before_it_is_sent(alone: Chat, tmp_path: Path) -> None:
    alone.pane.attach(FileSource(tmp_path / "a", 3))
    await until(lambda: "Guide does not read what is attached." in seen(alone.composer))
    alone.core.settings.change(model="openai/gpt-x")
    await until(lambda: "Guide does not read" not in seen(alone.composer))


def test_many_chips_scroll_and_leave_the_field_its_place(qapp: QApplication, tmp_path: Path) -> None:
    composer = Composer()
    composer.resize(400, 100)
    composer.show()
    composer.attach(*(FileSource(tmp_path / f"file number {number}", 1) for number in range(MOST_ATTACHED)))
    assert composer.sizeHint().height() < 200


def test_folders_are_left_to_the_window_and_text_is_text(qapp: QApplication, tmp_path: Path) -> None:
    composer = Composer()
    words = QMimeData()
    words.setText("words")
    assert not composer.takes(files(tmp_path))
    assert not composer.takes(words)


async def test_chips_are_taken_off_by_keyboard_and_the_field_gets_it_back(alone: Chat, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        alone.pane.attach(FileSource(tmp_path / name, 3))
    await until(lambda: "two" in seen(alone.composer))
    button(alone.composer, "Remove one").setFocus()
    QTest.keyClick(button(alone.composer, "Remove one"), Qt.Key.Key_Delete)
    assert alone.attached == ["two"]
    await until(lambda: (focused := QApplication.focusWidget()) and focused.accessibleName() == "Remove two")
    await until(lambda: QApplication.focusWidget().isVisible())  # type: ignore[union-attr]  # there is one
    QTest.keyClick(button(alone.composer, "Remove two"), Qt.Key.Key_Space)
    assert alone.attached == []
    assert alone.field.hasFocus()


def test_more_than_a_message_takes_is_left_out_and_said(qapp: QApplication, tmp_path: Path) -> None:
    composer = Composer()
    composer.show()
    composer.attach(*(FileSource(tmp_path / str(number), 1) for number in range(MOST_ATTACHED + 2)))
    assert len(composer.draft.attached) == MOST_ATTACHED
    assert "at most 20 attachments" in seen(composer)


async def test_attachments_stay_with_their_conversation(alone: Chat, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    first = alone.pane.conversation
    QTest.keyClicks(alone.field, "draft")
    alone.pane.attach(FileSource(tmp_path / "a", 1))
    alone.pane.open_conversation(type(first)())
    assert alone.composer.draft.is_empty
    alone.pane.open_conversation(first)
    assert (alone.composer.text, alone.attached) == ("draft", ["a"])


async def test_a_template_is_filled_in_with_the_server_s_suggestions_before_it_is_attached(chat: Chat) -> None:
    QTest.keyClicks(chat.field, "@city")
    await until(lambda: chat.composer.completions.labels[:1] == ["city"])
    chat.press(Qt.Key.Key_Tab)
    form = await opened(TemplateForm)
    country, city = form.form.lines["country"], form.form.lines["city"]
    await until(country.hasFocus)
    click(form, "Attach")
    assert "Enter a value, or go on once more to leave it empty." in seen(form)
    country.setText("France")
    city.setFocus()
    QTest.keyClicks(city, "pa")
    await until(lambda: city.suggestions == ["Paris"])  # of the country that is entered above
    city.completer().popup().hide()  # type: ignore[union-attr]  # there is one
    city.setText("Paris")
    await until(lambda: "cities://France/Paris" in seen(form))
    QTest.keyClick(city, Qt.Key.Key_Return)
    await until(lambda: chat.attached == ["cities://France/Paris"])
    chat.press(Qt.Key.Key_Return)
    said = await chat.sent()
    assert isinstance(said.parts[0], Attachment)
    assert "A city in France." in said.parts[0].output.text


async def test_what_failed_of_the_model_is_sent_again_with_its_attachments(alone: Chat) -> None:
    conversation = alone.pane.conversation
    attachment = Attachment("a", "docs", "notes://today", 3, ToolOutput("then"))
    conversation.add(Message("user", [attachment, Text("What is it?")]))
    conversation.add(Message("assistant", [Notice(Diagnostic("model_unreachable", "model"))]))
    alone.pane._show_conversation()
    QTest.keyClicks(alone.field, "meanwhile")
    await until(lambda: "Send again" in seen(alone.pane))
    click(alone.pane, "Send again")
    await until(lambda: len(conversation.messages) > 2)
    assert conversation.messages[2].parts == [attachment, Text("What is it?")]
    assert alone.composer.text == "meanwhile"


async def test_the_catalog_attaches_to_the_message_that_is_being_written(core: Core) -> None:
    async with http_server(friendly()) as url:
        write_servers(core.servers_file, docs={"url": url})
        window = MainWindow(core, core.approvals._approver)  # type: ignore[arg-type]  # the fixture's `PersonAnswers`
        window.show()
        await core.start()
        window.panels.setCurrentWidget(window.catalog)
        await core.catalog.refresh("docs")
        window.catalog.search_box.setText("notes://today")
        await until(lambda: "Attach" in seen(window.catalog.details))
        click(window.catalog.details, "Attach")
        [composer] = window.chat.findChildren(Composer)
        assert [each.content for each in composer.draft.attached] == [ResourceSource("docs", "notes://today", "today")]
        await until(lambda: "Remove today" in [each.accessibleName() for each in composer.findChildren(QToolButton)])
        window.close()
