"""Text of models and servers as it is shown: nothing loads, nothing is interpreted, nothing opens by itself."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QGuiApplication, QImage, QTextCursor, QTextDocument, QTextFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from desktop import processes
from desktop.ui import theme
from desktop.ui.chat.code_block import LONGEST_LINE, CodeBlock, CodeView
from desktop.ui.chat.link_prompt import LinkPrompt
from desktop.ui.chat.markdown_view import MarkdownView
from desktop.ui.chat.text_view import TextView
from desktop.ui.chat.widgets import plain_tool_tip
from tests.ui.person import click, opened, seen, until, windows

pytestmark = pytest.mark.anyio


def shown(widget: QWidget, width: int = 600) -> QWidget:
    widget.resize(width, 400)
    widget.show()
    return widget


def formats(view: TextView) -> list[tuple[str, QTextFormat]]:
    """Each piece of a view's text with its format."""
    found: list[tuple[str, QTextFormat]] = []
    block = view.document().begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            found.append((iterator.fragment().text(), iterator.fragment().charFormat()))
            iterator += 1
        block = block.next()
    return found


async def test_images_become_links_and_no_file_is_opened(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    image = QImage(20, 20, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    image.save(str(picture))
    os.utime(picture, (1, 1))
    os.chmod(picture, 0)  # would be told as an error, or loaded by root and drawn
    view = TextView()
    view.markdown(
        f"![a picture]({picture}) ![]({picture}) ![x](http://127.0.0.1:1/?q=secret) ![d](data:image/png;base64,AA==)"
    )
    shown(view)
    assert not any(format_.isImageFormat() for _, format_ in formats(view))
    assert "🖼 a picture" in view.toPlainText()
    assert [format_.toCharFormat().anchorHref() for text, format_ in formats(view) if "🖼 a picture" in text] == [
        str(picture)
    ]
    pixels = {
        view.grab().toImage().pixelColor(x, y).name() for x in range(0, 300, 3) for y in range(0, view.height(), 2)
    }
    assert "#ff0000" not in pixels


async def test_a_document_gives_nothing_for_any_resource() -> None:
    view = TextView()
    view.markdown("text")
    for kind in (QTextDocument.ResourceType.ImageResource, QTextDocument.ResourceType.StyleSheetResource):
        assert view.document().resource(kind.value, QUrl("file:///etc/hostname")) is None


@pytest.mark.parametrize(
    "text", ["<b>bold</b>", "<img src='file:///etc/x.png'>", "<script>alert(1)</script>", "a < b & c"]
)
async def test_html_is_shown_as_it_is_written(text: str) -> None:
    view = TextView()
    view.markdown(text)
    assert view.toPlainText() == text
    assert len(formats(view)) == 1


async def test_a_beginning_between_rules_and_underscores_are_no_special_markdown() -> None:
    view = TextView()
    view.markdown("---\ntitle: x\n---\n\n_emphasis_")
    assert "title: x" in view.toPlainText()
    [(_, emphasis)] = [each for each in formats(view) if each[0] == "emphasis"]
    assert emphasis.toCharFormat().fontItalic()
    assert not emphasis.toCharFormat().fontUnderline()


async def test_a_link_has_no_tool_tip_of_the_models() -> None:
    view = TextView()
    view.markdown('[here](https://example.org "<b>x</b>")')
    assert [format_.toCharFormat().toolTip() for _, format_ in formats(view)] == [""]


async def test_a_clicked_link_asks_with_its_host_and_opens_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_by: list[list[str]] = []

    async def hand_over(command: list[str], *, time_limit: float) -> int:
        opened_by.append(command)
        return 0

    monkeypatch.setattr(processes, "hand_over", hand_over)
    view = TextView()
    view.markdown("[click here](https://exаmple.org:8443/path?q=1)")
    shown(view)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(10, 6))
    prompt = await opened(LinkPrompt)
    assert "xn--exmple-4nf.org:8443" in seen(prompt)
    assert "look like others" in seen(prompt)
    assert opened_by == []
    click(prompt, "Open in browser")
    await until(lambda: opened_by)
    assert opened_by[0][-1] == "https://xn--exmple-4nf.org:8443/path?q=1"
    await until(lambda: not windows(LinkPrompt))


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "file:///etc/passwd", "smb://host/share", "ms-msdt:x", "https://user:pw@host/"]
)
async def test_a_link_that_must_not_open_offers_no_way_to(target: str) -> None:
    view = TextView()
    view.markdown(f"[x]({target})")
    shown(view)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(3, 6))
    prompt = await opened(LinkPrompt)
    assert "is not opened" in seen(prompt)
    assert "Open in browser" not in seen(prompt)
    click(prompt, "Cancel")
    await until(lambda: not windows(LinkPrompt))


async def test_a_browser_that_can_not_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hand_over(command: list[str], *, time_limit: float) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(processes, "hand_over", hand_over)
    view = shown(TextView())
    prompt = LinkPrompt("https://example.org/", view)
    prompt.show()
    click(prompt, "Open in browser")
    await until(lambda: "could not be started" in seen(prompt))
    click(prompt, "Copy address")
    assert QGuiApplication.clipboard().text() == "https://example.org/"


async def test_a_view_is_as_high_as_its_text_and_leaves_the_wheel_to_the_list() -> None:
    area = QScrollArea()
    inner = QWidget()
    column = QVBoxLayout(inner)
    view = TextView()
    view.markdown("A paragraph of several words. " * 200)
    column.addWidget(view)
    area.setWidgetResizable(True)
    area.setWidget(inner)
    shown(area, 300)
    await until(lambda: area.verticalScrollBar().maximum() > 200)
    assert view.height() == pytest.approx(view.document().size().height(), abs=1)
    QTest.wheelEvent(area.windowHandle(), QPointF(50, 50), QPoint(0, -120))
    await until(lambda: area.verticalScrollBar().value() > 0)
    height_when_narrow = view.height()
    area.resize(600, 400)
    await until(lambda: view.height() < height_when_narrow)


async def test_a_selection_stays_while_text_is_appended_and_is_copied() -> None:
    view = shown(TextView())
    assert isinstance(view, TextView)
    view.markdown("one two three")
    cursor = view.textCursor()
    cursor.setPosition(4)
    cursor.setPosition(7, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    view.markdown("one two three four")
    assert view.textCursor().selectedText() == "two"
    QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "two"


async def test_markdown_that_streams_in_keeps_the_widgets_that_are_finished() -> None:
    view = shown(MarkdownView())
    assert isinstance(view, MarkdownView)
    text = "First.\n\n```py\nx = 1\n```\n"
    view.set_source(text, finished=False)
    before = await until(lambda: view.findChildren(CodeBlock))
    text += "Second **bold"
    view.set_source(text, finished=False)
    text += "** end."
    view.set_source(text, finished=True)
    # On a busy machine the last block has its turn later.
    await until(lambda: [each.toPlainText() for each in view.findChildren(TextView)] == ["First.", "Second bold end."])
    assert view.findChildren(CodeBlock) == before
    assert before[0].view.text == "x = 1"


async def test_a_long_text_that_is_there_at_once_comes_piece_by_piece_and_whole() -> None:
    view = shown(MarkdownView())
    assert isinstance(view, MarkdownView)
    text = "A paragraph.\n\n" * 3000
    view.set_source(text, finished=True)
    assert sum(len(each.toPlainText()) for each in view.findChildren(TextView)) < len(text) / 2
    await until(lambda: sum(each.toPlainText().count("A paragraph.") for each in view.findChildren(TextView)) == 3000)


async def test_code_gets_colours_when_it_is_complete() -> None:
    block = shown(CodeBlock())
    assert isinstance(block, CodeBlock)
    code = "def f():\n    return 'é😀'  # why\n"
    block.set_code(code[:9], language="python", finished=False)
    await asyncio.sleep(0)
    assert not block.view.document().begin().layout().formats()
    block.set_code(code, language="python", finished=True)
    first = block.view.document().begin()
    await until(lambda: first.layout().formats() and first.next().layout().formats())
    colors = {
        (range_.start, range_.length): range_.format.foreground().color().name()
        for range_ in first.next().layout().formats()
    }
    assert colors[(4, 6)] == QColor(theme.colors().running).name()  # return
    comment = first.next().text().encode("utf-16-le").index("#".encode("utf-16-le")) // 2
    assert colors[(comment, 5)] == QColor(theme.colors().muted).name()


async def test_code_is_copied_as_it_was_and_the_button_says_so() -> None:
    block = shown(CodeBlock())
    assert isinstance(block, CodeBlock)
    code = "x" * (LONGEST_LINE + 10) + "\nsecond"
    block.set_code(code, language="", finished=True)
    click(block, "Copy code")
    assert QGuiApplication.clipboard().text() == code
    assert block.copy.accessibleName() == "Copied"


async def test_code_without_wrapping_scrolls_sideways_and_its_height_is_bounded() -> None:
    view = shown(CodeView(most_lines=10), 200)
    assert isinstance(view, CodeView)
    view.set_text("a long line that does not fit into two hundred pixels\n" * 50)
    await until(lambda: view.horizontalScrollBar().maximum() > 0)
    assert 10 * view.fontMetrics().lineSpacing() <= view.height() < 13 * view.fontMetrics().lineSpacing()
    assert view.verticalScrollBar().maximum() > 0
    view.set_text("short")
    await until(lambda: view.height() < 2.5 * view.fontMetrics().lineSpacing())


async def test_a_line_of_a_megabyte_is_shown_in_bounded_lines() -> None:
    view = shown(CodeView(wrap=True, most_lines=10))
    assert isinstance(view, CodeView)
    view.set_text("x" * 2**20)
    longest = max(len(line) for line in view.toPlainText().split("\n"))
    assert longest == LONGEST_LINE
    assert view.text == "x" * 2**20


async def test_growing_code_is_appended() -> None:
    view = CodeView()
    view.set_text("one\n")
    block = view.document().begin()
    view.set_text("one\ntwo")
    assert block.isValid()
    assert view.toPlainText() == "one\ntwo"
    view.set_text("other")
    assert view.toPlainText() == "other"


def test_a_tool_tip_shows_html_as_text() -> None:
    assert "&lt;img src=x&gt; \\u202E" in plain_tool_tip("<img src=x> \u202e")
    assert plain_tool_tip("") == ""
    document = QTextDocument()
    document.setHtml(plain_tool_tip("<b>a</b> & b\nc"))
    assert document.toPlainText() == "<b>a</b> & b\nc"


@pytest.mark.parametrize(
    ("markdown", "clicked"),
    [
        ('Use `/mcp prompt docs "trip & plan%20"` now', ['/mcp prompt docs "trip & plan%20"']),
        ("Use `/mcp remove docs` now", []),
        ("Use `x /mcp prompt docs` now", []),
        ("Use [this](deskhand-command:/mcp%20remove%20docs) now", []),
        ("Use /mcp prompt docs now", []),
    ],
)
async def test_a_prompt_that_a_text_recommends_as_code_can_be_clicked_and_no_other_command(
    markdown: str, clicked: list[str]
) -> None:
    view = TextView(600)
    view.resize(600, 100)
    heard: list[str] = []
    view.command_clicked.connect(heard.append)
    view.markdown(markdown)
    view.show()
    cursor = view.textCursor()
    cursor.setPosition(8)
    view.anchorClicked.emit(QUrl(view.anchorAt(view.cursorRect(cursor).center())))
    assert heard == clicked
