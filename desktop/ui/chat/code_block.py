"""Code and data in a fixed-width font: coloured by Pygments, bounded in height, with long lines scrolled or broken.

The Markdown view shows fenced code with `CodeBlock`, the tool-call card arguments and results with `CodeView`. Text that grows
is appended, never set anew; colours come when it is complete, worked out in a thread and applied a few lines at a time.
"""

from __future__ import annotations

import asyncio
import math

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontDatabase,
    QKeyEvent,
    QPalette,
    QResizeEvent,
    QShowEvent,
    QTextCharFormat,
    QTextCursor,
    QTextLayout,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from desktop.ui import tasks, theme
from desktop.ui.chat.widgets import Card, CopyButton, ElidedLabel, SlimScrollBars

#: Characters: a longer line is broken where it is shown, since Qt lays out a line as a whole.
LONGEST_LINE = 4000
#: Lines shown at once in a message; more scroll.
_MOST_LINES = 400
#: Characters: longer text keeps one colour.
_LONGEST_COLORED = 200_000
_LINES_A_SLICE = 50
_Policy = Qt.ScrollBarPolicy
#: Kind of token -> colour of `theme.Colors`; the first that a token belongs to.
_TONES = (
    ("Token.Keyword", "running"),
    ("Token.Name.Tag", "running"),
    ("Token.Name.Function", "running"),
    ("Token.Name.Class", "running"),
    ("Token.Name.Builtin", "running"),
    ("Token.Literal.String", "ok"),
    ("Token.Literal.Number", "warning"),
    ("Token.Comment", "muted"),
    ("Token.Generic.Inserted", "ok"),
    ("Token.Generic.Deleted", "error"),
)
#: Start, length, tone: in one line.
Span = tuple[int, int, str]


class CodeBlock(Card):
    """Code with a head line: its language, and Copy."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("code", "border", parent)
        self._language = ElidedLabel(tone="muted")
        self.view = CodeView(parent=self)
        self.copy = CopyButton(self.tr("Copy code"), lambda: self.view.text, self)
        head = QHBoxLayout()
        head.setContentsMargins(12, 4, 4, 0)
        head.addWidget(self._language, 1)
        head.addWidget(self.copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 0, 1, theme.SPACING)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self.view)

    def set_code(self, code: str, *, language: str, finished: bool) -> None:
        self._language.set_text(language or self.tr("text"))
        self.view.setAccessibleName(self.tr("Code: {language}").format(language=language or self.tr("text")))
        self.view.set_text(code, language=language if finished else "")


class CodeView(QPlainTextEdit):
    """The text itself, as tall as its lines up to `most_lines`.

    `wrap` breaks long lines instead of scrolling them; `prose` takes the font of prose.
    """

    def __init__(
        self,
        *,
        wrap: bool = False,
        prose: bool = False,
        most_lines: int = _MOST_LINES,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._prose = prose
        self.text = ""
        self._most_lines = most_lines
        self._spans: list[list[Span]] = []
        self._language = ""
        self._coloring: asyncio.Task[None] | None = None
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._follow_font()
        theme.theme_changed.connect(self._follow_font)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth if wrap else QPlainTextEdit.LineWrapMode.NoWrap)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._has_slim_bars = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(4)
        self.setViewportMargins(theme.SPACING, 0, theme.SPACING, 0)
        self.setBackgroundRole(QPalette.ColorRole.NoRole)
        self.viewport().setAutoFillBackground(False)
        self.horizontalScrollBar().rangeChanged.connect(self._fit)
        self._fit()

    def set_text(self, text: str, *, language: str = "") -> None:
        """Shows text whose hidden characters are visible; with a language (Pygments' name) it is coloured."""
        if text != self.text:
            shown = text[len(self.text) :] if self.text and text.startswith(self.text) else None
            if shown is not None and len(text) - (text.rfind("\n") + 1) <= LONGEST_LINE:
                cursor = QTextCursor(self.document())
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.insertText(_breakable(shown))
            else:
                self.setPlainText(_breakable(text))
            self.text = text
            self._spans = []
            self._language = ""
            self._fit()
        if language and language != self._language and len(text) <= _LONGEST_COLORED:
            self._language = language
            if self._coloring is not None:
                self._coloring.cancel()
            self._coloring = tasks.start(self._color(language))
            self.destroyed.connect(self._coloring.cancel)

    def _follow_font(self) -> None:
        font = QApplication.font()
        if not self._prose:
            font.setFamilies(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).families())
        self.setFont(font)

    async def _color(self, language: str) -> None:
        text = self.toPlainText()
        spans = await asyncio.to_thread(_spans, text, language)
        if self.toPlainText() == text:
            self._spans = spans
            await self._apply_spans()

    async def _apply_spans(self) -> None:
        formats: dict[str, QTextCharFormat] = {}
        for tone in {tone for _, tone in _TONES}:
            formats[tone] = QTextCharFormat()
            formats[tone].setForeground(QColor(getattr(theme.colors(), tone)))
        document, spans = self.document(), self._spans
        for number, line in enumerate(spans):
            block = document.findBlockByNumber(number)
            if line and block.isValid():
                ranges: list[QTextLayout.FormatRange] = []
                for start, length, tone in line:
                    range_ = QTextLayout.FormatRange()
                    range_.start, range_.length, range_.format = start, length, formats[tone]  # type: ignore[assignment]
                    ranges.append(range_)
                block.layout().setFormats(ranges)
                document.markContentsDirty(block.position(), block.length())
            if number % _LINES_A_SLICE == _LINES_A_SLICE - 1:
                await asyncio.sleep(0)
                if spans is not self._spans:
                    return

    def _fit(self) -> None:
        """Takes the height of the lines, at most `most_lines` of them; more scroll."""
        line = self.fontMetrics().lineSpacing()
        lines, block, layout = 0, self.document().begin(), self.document().documentLayout()
        if self.lineWrapMode() == QPlainTextEdit.LineWrapMode.NoWrap:
            lines = self.blockCount()
        else:
            while block.isValid() and lines <= self._most_lines:
                lines += max(1, round(layout.blockBoundingRect(block).height() / line))
                block = block.next()
        scrolls = lines > self._most_lines
        bar = self.horizontalScrollBar()
        if (scrolls or bar.maximum() > 0) and self.isVisible() and not self._has_slim_bars:
            self._has_slim_bars = True  # most have none to draw, and a style sheet costs
            SlimScrollBars(self)
        self.setVerticalScrollBarPolicy(_Policy.ScrollBarAsNeeded if scrolls else _Policy.ScrollBarAlwaysOff)
        height = min(lines, self._most_lines) * line + math.ceil(2 * self.document().documentMargin())
        height += bar.sizeHint().height() if bar.maximum() > 0 and bar.isVisibleTo(self) else 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if scrolls else Qt.FocusPolicy.ClickFocus)
        if height != self.minimumHeight() or height != self.maximumHeight():
            self.setFixedHeight(height)

    def sizeHint(self) -> QSize:
        return QSize(240, self.minimumHeight())

    def minimumSizeHint(self) -> QSize:
        return QSize(24, self.minimumHeight())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._spans:
            self._spans = list(self._spans)
            tasks.start(self._apply_spans())
        elif event.type() == QEvent.Type.FontChange:
            self._fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta, bar = event.angleDelta(), self.verticalScrollBar()
        sideways = abs(delta.x()) > abs(delta.y()) or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        at_end = bar.value() == (bar.minimum() if delta.y() > 0 else bar.maximum())
        if (at_end and not sideways) or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            event.ignore()  # the list around it scrolls
        else:
            super().wheelEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown) and self.verticalScrollBar().maximum() == 0:
            event.ignore()
        else:
            super().keyPressEvent(event)


def _breakable(text: str) -> str:
    """Text without lines that are too long to lay out."""
    if len(text) <= LONGEST_LINE:
        return text
    return "\n".join(
        line
        if len(line) <= LONGEST_LINE
        else "\n".join(line[start : start + LONGEST_LINE] for start in range(0, len(line), LONGEST_LINE))
        for line in text.split("\n")
    )


def _spans(text: str, language: str) -> list[list[Span]]:
    """The coloured spans of each line; none for a language that Pygments doesn't know. Runs in a thread."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False)  # with a line feed at the end: some need one to know a line
    except ClassNotFound:
        return []
    lines: list[list[Span]] = [[]]
    tones: dict[object, str] = {}
    column = 0
    for token, value in lexer.get_tokens(text):
        tone = tones.get(token)
        if tone is None:
            name = str(token)
            tone = tones[token] = next((tone for kind, tone in _TONES if name.startswith(kind)), "")
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append([])
                column = 0
            length = _utf16_length(piece)
            if tone and length:
                lines[-1].append((column, length, tone))
            column += length
    return lines


def _utf16_length(text: str) -> int:
    """Qt counts in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
