"""Cuts Markdown that streams in into blocks which are shown apart: prose, and code with its language.

Used by ``markdown_view.py``. Only the end of the text is parsed again when more comes, and a block of prose is bounded, so the
cost of an update does not grow with the length of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from desktop.visible_text import visible

#: Characters after which a block of prose is closed at the next boundary, and after twice as many without one.
PROSE_LIMIT = 2000
#: Characters that are parsed at a time.
_PIECE = 2000

# Indented code and HTML are no blocks of their own here: models indent what continues a list item, and HTML is shown as text.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["code", "html_block"])
_PARSER.core.ruler.enableOnly(["normalize", "block"])
#: The line that opens a fence, also one that begins list items.
_OPENING = re.compile(r"(?P<before>[ \t]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*)(?P<marker>`{3,}|~{3,})(?P<info>.*)")
#: A last line that may still become something else than it looks like: a list item, a fence, a rule, or the underline that
#: makes a heading of the paragraph before it.
_UNDECIDED = re.compile(r"[ \t]*(?:[-=*_+#>|`~:]+[ \t]*|\d{1,9}[.)]?[ \t]*)\Z")
#: What `visible` judges by its neighbours.
_WAITS_FOR_MORE = re.compile("[\r\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]+\\Z")


@dataclass(slots=True)
class Block:
    kind: Literal["prose", "code"]
    source: str
    """Markdown without fences, or the code itself."""
    language: str = ""
    finished: bool = False
    """It will not change any more."""


class BlockSplitter:
    """The blocks of a text that comes piece by piece.

    Attributes:
        blocks: The blocks so far. Finished ones stay as they are; the last one, where it is not finished, may change with
            every call, and may be gone after it.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._unseen = ""  # raw text whose visible form is not decided
        self._seen_last = ""  # the raw character before it
        self._prose = ""  # the part of the open block of prose that is not parsed again
        self._rest = ""  # what is parsed again when more comes; in a fence, its content so far
        self._fence: _Fence | None = None

    def feed(self, text: str) -> None:
        """Takes more text of a model's or a server's: its hidden characters are made visible."""
        raw = self._unseen + text
        match = _WAITS_FOR_MORE.search(raw)
        end = match.start() if match else len(raw)
        self._unseen = raw[end:]
        self._take(raw[:end])
        self._show_open_block()

    def finish(self) -> None:
        """No more text comes: the last block is closed."""
        self._take(self._unseen + "\n")
        self._unseen = ""
        self._drop_open_block()
        if self._fence is not None:
            self.blocks.append(
                Block("code", self._fence.content(self._rest).removesuffix("\n"), self._fence.language, True)
            )
        else:
            self._prose += self._rest
            self._close_prose()
        self._rest, self._fence = "", None

    def _take(self, raw: str) -> None:
        source = visible(self._seen_last + raw)[len(self._seen_last) :]
        last = raw[-1:] or self._seen_last
        self._seen_last = last if visible(last) == last else ""
        for start in range(0, len(source), _PIECE):
            self._rest += source[start : start + _PIECE]
            while self._advance():
                pass

    def _show_open_block(self) -> None:
        self._drop_open_block()
        if self._fence is not None:
            self.blocks.append(Block("code", self._fence.content(_decided(self._rest)), self._fence.language))
        elif (prose := self._prose + _decided(self._rest)).strip():
            self.blocks.append(Block("prose", prose))

    def _drop_open_block(self) -> None:
        if self.blocks and not self.blocks[-1].finished:
            del self.blocks[-1]

    def _advance(self) -> bool:
        """Takes one step of closing what can be closed; False when the rest is one open block."""
        if self._fence is not None:
            return self._leave_fence(self._fence)
        full = len(self._prose) + len(self._rest) > PROSE_LIMIT
        if not full and "```" not in self._rest and "~~~" not in self._rest:
            return False  # no need to know more: parsing is what costs
        tokens = _PARSER.parse(self._rest)
        lines = self._rest.splitlines(keepends=True)
        fence = _first_fence(tokens)
        if fence is not None and lines[fence].endswith("\n") and (opening := _OPENING.match(lines[fence])):
            self._prose += "".join(lines[:fence])
            self._close_prose()
            self._fence = _Fence(opening["marker"], len(opening["before"]), opening["info"])
            self._rest = "".join(lines[fence + 1 :])
            return True
        boundary = _last_boundary(tokens)
        if boundary > 0:
            self._prose += "".join(lines[:boundary])
            self._rest = "".join(lines[boundary:])
            if full:
                self._close_prose()
        elif len(self._prose) + len(self._rest) > 2 * PROSE_LIMIT:
            self._cut(tokens, lines)
        return False

    def _leave_fence(self, fence: _Fence) -> bool:
        end = fence.end(self._rest)
        if end is None:
            return False
        self._drop_open_block()
        self.blocks.append(Block("code", fence.content(self._rest[: end[0]]).removesuffix("\n"), fence.language, True))
        self._rest, self._fence = self._rest[end[1] :], None
        return True

    def _cut(self, tokens: Sequence[Token], lines: list[str]) -> None:
        """Closes a block of prose although it goes on: a long table, list item or paragraph."""
        repeated = ""
        if tokens and tokens[0].type == "table_open":
            end, repeated = self._rest.rfind("\n") + 1, "".join(lines[:2])  # the next part has the head, too
        else:
            end = max(self._rest.rfind("\n"), self._rest.rfind(" ")) + 1 or len(self._rest)
        if len(self._rest) > PROSE_LIMIT and end > len(repeated):
            self._prose += self._rest[:end]
            self._rest = repeated + self._rest[end:]
        self._close_prose()

    def _close_prose(self) -> None:
        self._drop_open_block()
        if self._prose.strip():
            self.blocks.append(Block("prose", self._prose, finished=True))
        self._prose = ""


class _Fence:
    """A fence that is open: what ends it, and what its content is."""

    def __init__(self, marker: str, indent: int, info: str) -> None:
        self.language = info.strip().split(maxsplit=1)[0].strip("{}.").lower()[:40] if info.strip() else ""
        self._indent = indent
        self._closing = re.compile(rf"^[ \t]{{0,{indent + 3}}}{marker[0]}{{{len(marker)},}}[ \t]*\n", re.MULTILINE)
        self._indentation = re.compile(rf"^[ \t]{{1,{indent}}}", re.MULTILINE) if indent else None
        self._searched = 0

    def end(self, source: str) -> tuple[int, int] | None:
        """Where the closing line starts and ends, once it is there."""
        match = self._closing.search(source, self._searched)
        self._searched = source.rfind("\n") + 1
        return match.span() if match else None

    def content(self, source: str) -> str:
        return self._indentation.sub("", source) if self._indentation else source


def _last_boundary(tokens: Sequence[Token]) -> int:
    """The line where the last block begins, or the last item of a last list: what comes before can't change any more."""
    starts = [
        token.map[0]
        for token in tokens
        if token.map and (token.level == 0 or (token.type == "list_item_open" and token.level == 1))
    ]
    return max(starts, default=0)


def _first_fence(tokens: Sequence[Token]) -> int | None:
    """The line of the first fence that is not in a quotation."""
    quotations = 0
    for token in tokens:
        if token.type in ("blockquote_open", "blockquote_close"):
            quotations += token.nesting
        elif token.type == "fence" and quotations == 0 and token.map:
            return token.map[0]
    return None


def _decided(source: str) -> str:
    start = source.rfind("\n") + 1
    return source[:start] if _UNDECIDED.match(source, start) else source
