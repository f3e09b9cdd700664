"""What counts as a resource's URI, a URI template, and the values for one. Checked before anything is sent to a server.

Used by ``assistant/mcp_tools.py``, which refuses bad arguments before a server is asked, and by the host, which lists,
expands and reads. A URI is only ever sent to an MCP server: ``file:///etc/passwd`` and ``https://…`` are valid, and never
opened by Deskhand.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

#: Characters in a URI, a template, and a value of one.
LIMIT = 4096
_MOST_ARGUMENTS = 100
_LONGEST_NAME = 512
_ARGUMENTS_LIMIT = 64 * 1024

#: Controls, white space, bidirectional controls, and what can't be sent as UTF-8.
_REFUSED = re.compile(r"[\x00-\x20\x7f-\x9f\s\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.*")
_NAME = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*"
#: RFC 6570, section 2.2: an operator, then names, each with its modifier.
_EXPRESSION = re.compile(rf"\{{[+#./;?&]?({_NAME}(?:\*|:[0-9]{{1,4}})?(?:,{_NAME}(?:\*|:[0-9]{{1,4}})?)*)\}}")


def is_uri(text: str) -> bool:
    """Whether it is an absolute URI of at most 4,096 characters without spaces, controls and bidirectional controls."""
    return len(text) <= LIMIT and _REFUSED.search(text) is None and _URI.fullmatch(text) is not None


def is_template(text: str) -> bool:
    """Whether it reads as a URI template (RFC 6570) of at most 4,096 characters. It need not be absolute: its expansion must."""
    if not text or len(text) > LIMIT or _REFUSED.search(text):
        return False
    literals = _EXPRESSION.sub("", text)
    return "{" not in literals and "}" not in literals


def template_variables(template: str) -> tuple[str, ...]:
    """The names of a template's variables in order, each once. Which of them are required no template declares."""
    specifications = [each for found in _EXPRESSION.finditer(template) for each in found[1].split(",")]
    return tuple(dict.fromkeys(re.sub(r"\*$|:[0-9]+$", "", each) for each in specifications))


def are_template_arguments(arguments: object) -> bool:
    """Whether it is a mapping of at most 100 names to a string or a list of strings, within the limits, 64 KiB as JSON."""
    if not isinstance(arguments, dict):
        return False
    values = cast("dict[Any, Any]", arguments)
    if len(values) > _MOST_ARGUMENTS or not all(
        isinstance(name, str) and len(name) <= _LONGEST_NAME and _is_value(value) for name, value in values.items()
    ):
        return False
    return len(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")) <= _ARGUMENTS_LIMIT


def _is_value(value: Any) -> bool:
    texts = cast("list[Any]", value) if isinstance(value, list) else [value]
    return len(texts) <= _MOST_ARGUMENTS and all(isinstance(text, str) and len(text) <= LIMIT for text in texts)
