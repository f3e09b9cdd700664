"""What a tool-call card shows of a result's text: parts that are JSON laid out for reading, the rest as it is.

Only white space between tokens of JSON changes; everything is bounded, and what breaks a bound is shown as plain text.
"""

from __future__ import annotations

from dataclasses import dataclass

from desktop import json_text
from desktop.assistant.conversation import Block, ToolOutput
from desktop.visible_text import visible

#: Characters and lines of all JSON of a result together, laid out; of its characters also before that.
_CHARACTERS = 50 * 1024
_LINES = 2000


@dataclass(frozen=True, slots=True)
class Section:
    text: str
    """Hidden characters are visible."""
    is_json: bool


def sections(output: ToolOutput) -> list[Section]:
    """The parts of a result's text in their order; one plain part where its blocks don't fit the text.

    What is JSON is laid out, unless that is too long of all of it together: then everything stays as it is.
    """
    text = output.text
    blocks = output.blocks or [Block(0, len(text))]
    ends = [0, *(block.end for block in blocks)]
    fits = all(0 <= end <= block.start <= block.end <= len(text) for end, block in zip(ends, blocks, strict=False))
    laid_out = [(block, _laid_out(text[block.start : block.end], block)) for block in blocks] if fits else []
    found = [(block, each) for block, each in laid_out if each is not None]
    lines = sum(each.count("\n") + 1 for _, each in found)
    if lines > _LINES or sum(len(each) for _, each in found) > _CHARACTERS:
        found = []
    parts: list[Section] = []
    position = 0
    for block, each in found:
        _add_plain(parts, text[position : block.start])
        parts.append(Section(visible(each), True))
        position = block.end
    _add_plain(parts, text[position:])
    return [part if part.is_json else Section(part.text.strip("\n"), False) for part in parts]


def pretty(text: str) -> str | None:
    """JSON text laid out; None for what is no JSON, a bare value, or too large."""
    return _laid_out(text, Block(0, len(text)))


def _laid_out(text: str, block: Block) -> str | None:
    mime_type = block.mime_type.partition(";")[0].strip().lower()
    said = (
        block.structured
        or mime_type in ("application/json", "text/json")
        or (mime_type.startswith("application/") and mime_type.endswith("+json"))
    )
    if len(text) > _CHARACTERS or (not said and (mime_type or text.lstrip()[:1] not in ("{", "["))):
        return None
    try:
        json_text.parse(text)
    except ValueError:
        return None
    laid_out = json_text.respaced(text.strip())
    return laid_out if len(laid_out) <= _CHARACTERS else None


def _add_plain(parts: list[Section], text: str) -> None:
    if text.strip("\n"):
        parts.append(Section(visible(text), False))
