"""The only ways text of a server, a model or a file is shown or sent: nothing hidden stays hidden in it.

Used by every widget that shows such text, by the command line, the logs, and what enters a request to a model. The marks
follow the table of hidden characters that terminals and browsers are attacked with: C0 and C1 controls, escape sequences,
bidirectional controls, zero-width characters, tag characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
#: Everything that is not shown as itself. Zero-width joiner and variation selectors stay where emoji and scripts
#: need them: only a run of two or more selectors, or a joiner beside ASCII, hides something.
_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_HIDDEN = re.compile(f"[{_CONTROLS}]|(?<=[\x20-\x7e])[\u200c\u200d]+|[{_SELECTORS}]{{2,}}")
#: A run of characters of which any may be hidden. Its first element is a plain set, which `re` looks for ten times as fast
#: as for the alternatives above; these then see the run alone.
_SUSPECTS = re.compile(f"[{_CONTROLS}\u200c\u200d{_SELECTORS}][{_CONTROLS}\u200c\u200d{_SELECTORS}]*")
#: Bytes of UTF-8 that no hidden character has in it, or only behind one that is not here.
_HARMLESS_BYTES = bytes({0x09, 0x0A, *range(0x20, 0x7F), *range(0x80, 0x100)} - {0xC2, 0xE2, 0xED, 0xEF, 0xF3})


def visible(text: str) -> str:
    r"""Text for a person: every hidden character as a mark such as ``\u202E``; tab and line feed stay, CR LF becomes LF."""
    if _harmless(text):
        return text
    return _without_hidden(text.replace("\r\n", "\n"), lambda hidden: "".join(map(_mark, hidden[0])))


def plain(text: str) -> str:
    """Text for a model: escape sequences and hidden characters removed; tab and line feed stay, CR LF becomes LF."""
    if _harmless(text):
        return text
    return _without_hidden(_ESCAPE_SEQUENCE.sub("", text.replace("\r\n", "\n")), lambda hidden: "")


def one_line(text: str, limit: int = 160) -> str:
    """`plain` text on one line, at most `limit` characters, the last an ellipsis where it was cut."""
    line = " ".join(plain(text[: 20 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def visible_line(text: str, limit: int = 160) -> str:
    """`visible` text on one line, at most `limit` characters, the last an ellipsis where it was cut."""
    line = " ".join(visible(text[: 20 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _harmless(text: str) -> bool:
    """Whether nothing can be hidden in it, for what bytes it is made of: told at a fifth of the cost of looking."""
    return not text.encode(errors="surrogatepass").translate(None, _HARMLESS_BYTES)


def _without_hidden(text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    def clean(run: re.Match[str]) -> str:
        before = text[max(0, run.start() - 1) : run.start()]  # what a joiner stands beside
        return _HIDDEN.sub(replacement, before + run[0])[len(before) :]

    return _SUSPECTS.sub(clean, text)


def _mark(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
