"""What a tool-call card shows of a result's text: parts that are JSON laid out for reading, the rest as it is.

Only white space between tokens of JSON changes; everything is bounded, and what breaks a bound is shown as plain text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from desktop.assistant import json_text
from desktop.assistant.conversation import Block, ToolOutput
from desktop.visible_text import visible

#: Characters and lines of all JSON of a result together, laid out.
_CHARACTERS = 50 * 1024
_LINES = 2000


@dataclass(frozen=True, slots=True)
class Section:
    text: str
    """Hidden characters are visible."""
    is_json: bool


def sections(output: ToolOutput) -> list[Section]:
    """The parts of a result's text in their order; one plain part where its blocks don't fit the text."""
    text = output.text
    blocks = output.blocks or [Block(0, len(text))]
    ends = [0, *(block.end for block in blocks)]
    fits = all(0 <= end <= block.start <= block.end <= len(text) for end, block in zip(ends, blocks, strict=False))
    if not fits:
        blocks = [Block(0, len(text), "text/plain")]
    found: list[Section] = []
    characters, lines, position = _CHARACTERS, _LINES, 0
    for block in blocks:
        _add_plain(found, text[position : block.start])
        part, position = text[block.start : block.end], block.end
        laid_out = _laid_out(part, block) if len(part) <= characters else None
        if laid_out is None or len(laid_out) > characters or laid_out.count("\n") >= lines:
            _add_plain(found, part)
        else:
            characters -= len(laid_out)
            lines -= laid_out.count("\n") + 1
            found.append(Section(visible(laid_out), True))
    _add_plain(found, text[position:])
    return [section if section.is_json else Section(section.text.strip("\n"), False) for section in found]


def pretty(text: str) -> str | None:
    """JSON text laid out; None for what is no JSON, a bare value, or too large."""
    return _laid_out(text, Block(0, len(text))) if len(text) <= _CHARACTERS else None


def _laid_out(text: str, block: Block) -> str | None:
    mime_type = block.mime_type.partition(";")[0].strip().lower()
    said = (
        block.structured
        or mime_type in ("application/json", "text/json")
        or (mime_type.startswith("application/") and mime_type.endswith("+json"))
    )
    if not said and (mime_type or text.lstrip()[:1] not in ("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    laid_out = json_text.respaced(text.strip())
    return laid_out if len(laid_out) <= _CHARACTERS else None


def _add_plain(found: list[Section], text: str) -> None:
    if found and not found[-1].is_json:
        found[-1] = Section(found[-1].text + visible(text), False)
    elif text.strip("\n"):
        found.append(Section(visible(text), False))
