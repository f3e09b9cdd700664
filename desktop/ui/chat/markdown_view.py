"""Markdown of a model as a column of prose and code, drawn while it streams in. Used by ``message_widget.py``.

Blocks that are finished stay as they were drawn; an update draws the last one anew.
"""

from __future__ import annotations

import time

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QWidget

from desktop.ui import theme
from desktop.ui.chat.code_block import CodeBlock
from desktop.ui.chat.markdown_blocks import Block, BlockSplitter
from desktop.ui.chat.stack_layout import StackLayout
from desktop.ui.chat.text_view import TextView
from desktop.ui.chat.widgets import discard

#: Characters that are taken at a time, so that a long text that is there at once doesn't hold up the window.
_PIECE = 8000
#: Milliseconds after which the next block waits for its turn.
_SLICE = 4


class MarkdownView(QWidget):
    """Shows a text that only ever grows.

    Signals:
        command_clicked(str): See `TextView`.
    """

    command_clicked = Signal(str)

    def __init__(self, width: int = 400, parent: QWidget | None = None) -> None:
        """`width` is what it will get, as far as is known."""
        super().__init__(parent)
        self._expected_width = width
        self._splitter = BlockSplitter()
        self._source = ""
        self._taken = 0
        self._is_last = False
        self._finished = False
        self._blocks: list[TextView | CodeBlock] = []
        self._drawn_finished = 0
        self._next_piece = QTimer(self, singleShot=True, interval=0)
        self._next_piece.timeout.connect(self._take_piece)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._layout = StackLayout(self, spacing=theme.SPACING)

    def set_source(self, source: str, *, finished: bool) -> None:
        """`source` begins with what was shown before; `finished`: it will not grow any more."""
        self._source, self._is_last = source, finished
        if not self._finished and not self._next_piece.isActive():
            self._take_piece()

    def _take_piece(self) -> None:
        piece = self._source[self._taken : self._taken + _PIECE]
        if piece:
            self._taken += len(piece)
            self._splitter.feed(piece)
        if self._taken < len(self._source):
            self._next_piece.start()
        elif self._is_last and not self._finished:
            self._splitter.finish()
            self._finished = True
        self._draw()

    def _draw(self) -> None:
        blocks, started = self._splitter.blocks, time.monotonic()
        for index in range(self._drawn_finished, len(blocks)):
            if (time.monotonic() - started) * 1000 > _SLICE:
                self._next_piece.start()  # the others have their turn first
                break
            self._draw_block(index, blocks[index])
            if blocks[index].finished:
                self._drawn_finished = index + 1
        while len(self._blocks) > len(blocks):
            discard(self._blocks.pop())

    def _draw_block(self, index: int, block: Block) -> None:
        kind = TextView if block.kind == "prose" else CodeBlock
        if index < len(self._blocks) and not isinstance(self._blocks[index], kind):
            discard(self._blocks[index])
            del self._blocks[index]
        if index == len(self._blocks) or not isinstance(self._blocks[index], kind):
            expected = self.width() if self.isVisible() else self._expected_width
            made = self._make_prose(expected) if kind is TextView else CodeBlock(self)
            self._blocks.insert(index, made)
            self._layout.insert_widget(index, self._blocks[index])
        view = self._blocks[index]
        if isinstance(view, CodeBlock):
            view.set_code(block.source, language=block.language, finished=block.finished)
        else:
            view.markdown(block.source)

    def _make_prose(self, width: int) -> TextView:
        view = TextView(width, self)
        view.command_clicked.connect(self.command_clicked)
        return view
