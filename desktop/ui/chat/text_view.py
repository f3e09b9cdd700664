"""Read-only text as tall as its content: the one place where text of a model or a server is shown as more than a label.

Used by the Markdown view, messages and cards. Nothing is ever loaded for it (no image, no style sheet, no file), no HTML is
interpreted, and a link asks before it opens (``link_prompt.py``). The wheel and the page keys go to the list around it.
"""

from __future__ import annotations

import math
import re
from urllib.parse import quote, unquote

from PySide6.QtCore import QEvent, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QFontDatabase,
    QGuiApplication,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from desktop.ui import theme
from desktop.ui.chat import link_prompt

_Feature = QTextDocument.MarkdownFeature
_Property = QTextFormat.Property
#: GitHub's Markdown without HTML. Not Qt's front matter (it swallows a beginning between rules) nor its underline by ``_``; and
#: what is indented is no code (md4c's flag 0x10, which Qt passes on): models indent what continues a list item.
_FEATURES = (_Feature.MarkdownDialectGitHub & ~_Feature(0x100000 | 0x4000)) | _Feature.MarkdownNoHTML | _Feature(0x10)
#: What can be clicked where a text has it as code: it opens a dialog, and nothing happens without the person.
COMMAND = re.compile(r"/mcp prompt(?: |$)")
_COMMAND_SCHEME = "deskhand-command"
_HEADING_SIZES = {1: 1.45, 2: 1.25, 3: 1.1}
_QUOTATION_INDENT = 16
_KEPT_BY_FOCUS = (
    Qt.FocusReason.PopupFocusReason,
    Qt.FocusReason.ActiveWindowFocusReason,
    Qt.FocusReason.MenuBarFocusReason,
)


class TextView(QTextBrowser):
    """Plain text or Markdown without fences; its height follows from its width.

    `plain` and `markdown` keep the selection where the text before it stays. Both take text whose hidden characters are
    already visible.

    Signals:
        command_clicked(str): A ``/mcp prompt …`` that the text recommends. Only that command is ever one to click.
    """

    command_clicked = Signal(str)

    def __init__(self, width: int = 400, parent: QWidget | None = None) -> None:
        """`width` is what it will get, as far as is known: text that is laid out twice costs twice."""
        super().__init__(parent)
        self._source = ""
        self._is_markdown = False
        self._has_quotations = False
        self._shown: QTextDocument | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.viewport().setAutoFillBackground(False)
        self.setLineWrapMode(QTextBrowser.LineWrapMode.FixedPixelWidth)
        self.setLineWrapColumnOrWidth(width)
        self.anchorClicked.connect(self._ask_to_open)

    def plain(self, text: str) -> None:
        self._is_markdown = False
        self._source = text
        document = _SafeDocument(self)
        document.setPlainText(text)
        document.setDefaultFont(self.font())
        document.setDocumentMargin(0)
        self._show_document(document)

    def markdown(self, source: str) -> None:
        self._is_markdown = True
        self._source = source
        self._show_document(_markdown_document(source, self.font(), self))

    def width_of_text(self, limit: int) -> int:
        """Pixels the text takes in its width, at most `limit`."""
        self._wrap_at(limit)
        width = min(limit, math.ceil(self.document().idealWidth()) + 1)
        self._wrap_at(width)
        return width

    def _show_document(self, document: QTextDocument) -> None:
        old, cursor = self._shown, self.textCursor()
        self._shown = document
        self.setDocument(document)
        if cursor.hasSelection():
            last = document.characterCount() - 1
            restored = QTextCursor(document)
            restored.setPosition(min(cursor.anchor(), last))
            restored.setPosition(min(cursor.position(), last), QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(restored)
        if old is not None:
            old.deleteLater()
        formats = document.allFormats() if self._is_markdown else []
        links = any(each.isCharFormat() and each.toCharFormat().isAnchor() for each in formats)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if links else Qt.FocusPolicy.ClickFocus)
        self._has_quotations = any(each.hasProperty(_Property.BlockQuoteLevel) for each in formats)
        self._fit()

    def _wrap_at(self, width: int) -> None:
        if width != self.lineWrapColumnOrWidth():
            self.setLineWrapColumnOrWidth(width)
            self._fit()

    def _fit(self) -> None:
        height = max(1, math.ceil(self.document().size().height()))
        if height != self.minimumHeight():
            self.setFixedHeight(height)

    def _ask_to_open(self, url: QUrl) -> None:
        if url.scheme() == _COMMAND_SCHEME:
            command = unquote(bytes(url.toEncoded().data()).decode("ascii", "replace").partition(":")[2])
            if COMMAND.match(command):
                self.command_clicked.emit(command)
            return
        link_prompt.ask(bytes(url.toEncoded().data()).decode("ascii", "replace"), self)

    def minimumSizeHint(self) -> QSize:
        return QSize(24, self.minimumHeight())

    def sizeHint(self) -> QSize:
        return QSize(240, self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():  # a new height comes from `width_of_text`, which measures
            self._wrap_at(self.viewport().width())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange) and self._source:
            (self.markdown if self._is_markdown else self.plain)(self._source)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Home, Qt.Key.Key_End):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() not in _KEPT_BY_FOCUS and self.textCursor().hasSelection():
            cursor = self.textCursor()
            cursor.clearSelection()
            self.setTextCursor(cursor)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._has_quotations:
            painter = QPainter(self.viewport())
            layout = self.document().documentLayout()
            block = self.document().begin()
            while block.isValid():
                for level in range(block.blockFormat().property(_Property.BlockQuoteLevel) or 0):
                    rectangle = layout.blockBoundingRect(block)
                    bar = rectangle.adjusted(0, -theme.SPACING / 2, 0, theme.SPACING / 2)
                    painter.fillRect(
                        int(_QUOTATION_INDENT * level + 2),
                        int(bar.top()),
                        3,
                        int(bar.height()),
                        QColor(theme.colors().border),
                    )
                block = block.next()
            painter.end()
        super().paintEvent(event)


class _SafeDocument(QTextDocument):
    def loadResource(self, type: int, name: QUrl | str) -> None:
        """Nothing: neither files nor addresses nor embedded data."""


def _markdown_document(source: str, font: QFont, parent: TextView) -> QTextDocument:
    """Markdown without fences as a document in Deskhand's style.

    Images become links before the document has a layout: Qt's own loads an image's file by its name, whatever
    `loadResource` says.
    """
    document = _SafeDocument(parent)
    document.setUndoRedoEnabled(False)
    document.setDefaultFont(font)
    document.setDocumentMargin(0)
    document.setIndentWidth(24)
    document.setMarkdown(source, _FEATURES)
    colors = theme.colors()
    block = document.begin()
    while block.isValid():
        _style_block(block, colors)
        _style_fragments(document, block, colors, font)
        block = block.next()
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            _style_table(frame, colors)
    if source.strip():
        _trim(document)
    return document


def _style_block(block: QTextBlock, colors: theme.Colors) -> None:
    cursor = QTextCursor(block)
    format_ = QTextBlockFormat()
    written = block.blockFormat()
    gap = 0 if cursor.currentTable() else theme.SPACING
    format_.setTopMargin(2 * theme.SPACING if written.headingLevel() else 0)
    format_.setBottomMargin(gap / 2 if block.textList() and block.next().textList() else gap)
    format_.setLineHeight(120, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    if quotations := written.property(_Property.BlockQuoteLevel):
        format_.setLeftMargin(_QUOTATION_INDENT * quotations)
    if written.hasProperty(_Property.BlockCodeFence):
        format_.setBackground(QColor(colors.code))
        format_.setBottomMargin(0)
        format_.setNonBreakableLines(False)
    if written.hasProperty(_Property.BlockTrailingHorizontalRulerWidth):
        format_.setBackground(QColor(colors.border))  # the colour of the rule
    cursor.mergeBlockFormat(format_)


def _style_fragments(document: QTextDocument, block: QTextBlock, colors: theme.Colors, font: QFont) -> None:
    heading = block.blockFormat().headingLevel()
    fragments: list[tuple[int, int, QTextCharFormat]] = []
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        format_ = fragment.charFormat()
        if format_.fontFixedPitch() and not format_.isAnchor() and COMMAND.match(text := fragment.text()):
            format_.setAnchor(True)
            format_.setAnchorHref(_COMMAND_SCHEME + ":" + quote(text))
        fragments.append((fragment.position(), fragment.length(), format_))
        iterator += 1
    for position, length, format_ in reversed(fragments):
        if not (heading or format_.isImageFormat() or format_.isAnchor() or format_.fontFixedPitch()):
            continue
        cursor = QTextCursor(document)
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        if format_.isImageFormat():
            image = format_.toImageFormat()
            link = QTextCharFormat()
            link.setAnchor(True)
            link.setAnchorHref(image.name())
            _style_link(link)
            text = str(image.property(_Property.ImageAltText) or "") or image.name()
            cursor.insertText(f"🖼 {text[:200]}", link)
            continue
        if format_.isAnchor():
            _style_link(format_)
        if format_.fontFixedPitch():
            format_.setFontFamilies(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).families())
            format_.setBackground(QColor(colors.code))
        if heading:
            format_.clearProperty(_Property.FontSizeAdjustment.value)
            format_.setFontPointSize(font.pointSizeF() * _HEADING_SIZES.get(heading, 1.0))
        cursor.setCharFormat(format_)


def _style_link(format_: QTextCharFormat) -> None:
    format_.setForeground(QGuiApplication.palette().link())
    format_.setFontUnderline(True)
    format_.clearProperty(_Property.TextToolTip.value)  # Qt would show it as HTML


def _style_table(table: QTextTable, colors: theme.Colors) -> None:
    format_ = table.format().toTableFormat()
    format_.setBorder(1)
    format_.setBorderBrush(QColor(colors.border))
    format_.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    format_.setBorderCollapse(True)
    format_.setCellPadding(6)
    format_.setCellSpacing(0)
    format_.setTopMargin(theme.SPACING / 2)
    format_.setBottomMargin(theme.SPACING)
    format_.setWidth(QTextLength())
    table.setFormat(format_)
    head = QTextCharFormat()
    head.setBackground(QColor(colors.code))
    bold = QTextCharFormat()
    bold.setFontWeight(QFont.Weight.Bold)
    for column in range(table.columns()):
        cell = table.cellAt(0, column)
        cell.setFormat(head)
        cursor = cell.firstCursorPosition()
        if cursor.position() != cell.lastCursorPosition().position() and not cursor.block().text():
            cursor.deleteChar()  # after a quotation Qt's importer begins the first cell with an empty paragraph
        cursor.setPosition(cell.lastCursorPosition().position(), QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(bold)


def _trim(document: QTextDocument) -> None:
    """No space before the first block and after the last one: the column around it keeps the distance."""
    for block, trim in (
        (document.firstBlock(), QTextBlockFormat.setTopMargin),
        (document.lastBlock(), QTextBlockFormat.setBottomMargin),
    ):
        format_ = QTextBlockFormat()
        trim(format_, 0)
        QTextCursor(block).mergeBlockFormat(format_)
