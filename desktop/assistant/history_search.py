"""Which words of a message a search of the history finds, and what a search means. Used by ``history.py`` alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from desktop.visible_text import one_line

#: Scripts that are written without spaces. SQLite takes a whole run of them for one word, so each character becomes one.
_WITHOUT_SPACES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CHARACTER = re.compile(f"([{_WITHOUT_SPACES}])")
_SPACED = re.compile(f"(?<=[{_WITHOUT_SPACES}]) +(?=[{_WITHOUT_SPACES}])")


def searched_text(message: Mapping[str, Any]) -> str:
    """What people said and what tools were given and gave, as it is put into the index; of a message as JSON."""
    texts: list[str] = []
    for part in message["parts"]:
        if part["kind"] == "text":
            texts.append(part["text"])
        elif part["kind"] == "tool_call":
            output = part["output"]["text"] if part["output"] else ""
            texts += [part["name"], part["server"], part["tool"], part["arguments"], output]
    return _CHARACTER.sub(r" \1 ", "\n".join(filter(None, texts))).replace("\0", " ")


def match_expression(words: Sequence[str]) -> str:
    """The FTS5 expression for what a person typed: every word, the last one as far as it is typed; "" where there is none.

    Nothing in it has a meaning of its own: each word is a quoted string.
    """
    quoted = ['"' + _CHARACTER.sub(r" \1 ", word).replace('"', '""') + '"' for word in words if re.search(r"\w", word)]
    return " ".join(quoted) + "*" if quoted else ""


def shown_snippet(snippet: str) -> str:
    """A snippet of the index as text again, on one line."""
    return _SPACED.sub("", one_line(snippet, 200))
