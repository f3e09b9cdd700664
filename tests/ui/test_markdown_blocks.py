"""How Markdown that streams in is cut into blocks."""

from __future__ import annotations

import random

import pytest

from desktop.ui.chat.markdown_blocks import PROSE_LIMIT, Block, BlockSplitter

SAMPLE = """# Title

Intro text with `code`:
- one
- two

1. Do this:

   ```bash
   ls -l
     indented
   ```

   then that
2. Next

```python title="x"
def f():
    return "```"
```
> ```js
> quoted
> ```

| a | b |
|---|---|
| 1 | 2 |

end"""


def blocks_of(*pieces: str) -> list[Block]:
    splitter = BlockSplitter()
    for piece in pieces:
        splitter.feed(piece)
    splitter.finish()
    return splitter.blocks


def summary(blocks: list[Block]) -> list[tuple[str, str, str]]:
    return [(block.kind, block.source.strip(), block.language) for block in blocks]


def test_fences_become_code_and_what_is_between_them_prose() -> None:
    assert [block.kind for block in blocks_of(SAMPLE)] == ["prose", "code", "prose", "code", "prose"]
    code = [block for block in blocks_of(SAMPLE) if block.kind == "code"]
    assert [(block.language, block.source) for block in code] == [
        ("bash", "ls -l\n  indented"),
        ("python", 'def f():\n    return "```"'),
    ]


def test_a_fence_in_a_quotation_stays_in_it() -> None:
    assert blocks_of(SAMPLE)[-1].source.startswith("> ```js\n> quoted\n> ```\n")


@pytest.mark.parametrize("seed", range(30))
def test_the_blocks_do_not_depend_on_how_the_text_comes(seed: int) -> None:
    pieces, rest, random_ = [], SAMPLE, random.Random(seed)
    while rest:
        length = random_.choice([1, 1, 2, 3, 7, 20])
        pieces.append(rest[:length])
        rest = rest[length:]
    assert summary(blocks_of(*pieces)) == summary(blocks_of(SAMPLE))


def test_finished_blocks_stay_the_same_objects_while_text_comes() -> None:
    splitter = BlockSplitter()
    splitter.feed("before\n\n```py\nx = 1\n```\n")
    finished = [block for block in splitter.blocks if block.finished]
    assert [block.kind for block in finished] == ["prose", "code"]
    splitter.feed("after\n\nmore")
    assert splitter.blocks[:2] == finished
    assert all(one is other for one, other in zip(splitter.blocks[:2], finished, strict=True))
    assert not splitter.blocks[-1].finished


def test_an_open_fence_is_shown_as_code_that_grows() -> None:
    splitter = BlockSplitter()
    splitter.feed("Look:\n```py\nx = 1\n")
    assert summary(splitter.blocks)[-1] == ("code", "x = 1", "py")
    splitter.feed("y = 2")
    assert splitter.blocks[-1].source == "x = 1\ny = 2"
    assert not splitter.blocks[-1].finished


@pytest.mark.parametrize("beginning", ["-", "1", "12.", "==", "``", "**", "> ", "|"])
def test_a_line_that_may_become_something_else_is_held_back(beginning: str) -> None:
    splitter = BlockSplitter()
    splitter.feed(f"A paragraph.\n{beginning}")
    assert splitter.blocks[-1].source == "A paragraph.\n"
    splitter.finish()
    assert splitter.blocks[-1].source == f"A paragraph.\n{beginning}\n"


@pytest.mark.parametrize(
    "text",
    [
        "word " * 20_000,
        "x" * 50_000,
        "- an item\n" * 3_000,
        "| a | b |\n|---|---|\n" + "| 1 | some text |\n" * 3_000,
        "a paragraph of a few words\n\n" * 3_000,
    ],
    ids=["paragraph", "one word", "list", "table", "paragraphs"],
)
def test_a_block_of_prose_is_bounded_and_nothing_is_lost(text: str) -> None:
    blocks = blocks_of(text)
    assert max(len(block.source) for block in blocks) <= 3 * PROSE_LIMIT
    shown = "".join(block.source for block in blocks)
    head = "| a | b |\n|---|---|\n"
    assert "".join(shown.replace(head, "").split()) == "".join(text.replace(head, "").split())


def test_every_part_of_a_long_table_has_the_head() -> None:
    head = "| a | b |\n|---|---|\n"
    blocks = blocks_of(head + "| 1 | some text |\n" * 1_000)
    assert len(blocks) > 1
    assert all(block.source.startswith(head) for block in blocks)


def test_hidden_characters_are_visible_however_they_are_split() -> None:
    assert blocks_of("a\u202e", "b\x1b", "[8m c")[0].source == "a\\u202Eb\\x1B[8m c\n"
    assert blocks_of("one\r", "\ntwo\r", "\n")[0].source.strip() == "one\ntwo"
    assert blocks_of("ab", "\u200d", "c")[0].source == "ab\\u200Dc\n"
    assert blocks_of("👩", "\u200d", "💻")[0].source == "👩\u200d💻\n"
    assert blocks_of("x\ufe0f", "\ufe0f y")[0].source == "x\\uFE0F\\uFE0F y\n"


def test_html_and_indented_text_are_no_blocks_of_their_own() -> None:
    assert summary(blocks_of("<div>\n\n    indented\n\n</div>\n")) == [
        ("prose", "<div>\n\n    indented\n\n</div>", ""),
    ]
