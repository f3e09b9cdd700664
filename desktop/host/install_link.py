"""Links with which pages install a server in a program: VS Code, Cursor, LM Studio, Goose. Used by ``pasted_text``.

A link only fills the form: it is never registered with the system, and nothing of it runs before the person has seen it whole.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from desktop.host.foreign_document import NotUnderstood

_LONGEST = 64 * 1024
_SCHEMES = re.compile(r"(?:vscode(?:-insiders)?|vscodium|cursor|lmstudio|goose):", re.IGNORECASE)
#: Pages that lead to such a link.
_PAGES = re.compile(r"https://(?:(?:insiders\.)?vscode\.dev/redirect|(?:www\.)?cursor\.com/(?:\w+/)?install-mcp)\b")


def is_install_link(text: str) -> bool:
    return bool(_SCHEMES.match(text) or _PAGES.match(text))


def document_of(link: str) -> dict[str, Any]:
    """What a link installs, as a file of the program would have it: ``servers`` with ``inputs``, or ``extensions`` of Goose.

    Raises NotUnderstood.
    """
    if len(link) > _LONGEST:
        raise NotUnderstood("the link is longer than 64 KiB")
    try:
        parts = urlsplit(link)
        query = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise NotUnderstood("the link is not valid") from None
    given = dict(query)
    if parts.scheme in ("http", "https") and "url" in given and is_install_link(given["url"]):
        return document_of(given["url"])  # a page that redirects
    if parts.scheme.lower() == "goose":
        return {"extensions": dict([_goose(query)])}
    if "config" in given:
        named = _object(given["config"])
    elif parts.scheme.lower().startswith("vscod"):
        named = _object(unquote(parts.query))
    else:
        raise NotUnderstood("the link names no server")
    for key in ("mcpServers", "servers"):
        if isinstance(named.get(key), dict):
            return named
    inputs = named.pop("inputs", None) or _maybe_list(given.get("inputs"))
    name = str(given.get("name") or named.pop("name", "") or "")
    if len(named) == 1 and isinstance(next(iter(named.values())), dict):
        return {"servers": named}
    return {"servers": {name: named}, "inputs": inputs}


def _object(text: str) -> dict[str, Any]:
    """JSON, as it is or in base64. Raises NotUnderstood."""
    for decoded in _readings(text):
        try:
            value = json.loads(decoded)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
    raise NotUnderstood("the link's configuration can't be read")


def _readings(text: str) -> Iterator[str]:
    yield text
    compact = text.strip().replace(" ", "+").replace("-", "+").replace("_", "/").rstrip("=")
    try:
        yield base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return


def _maybe_list(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        raise NotUnderstood("the link's inputs can't be read") from None


def _goose(query: list[tuple[str, str]]) -> tuple[str, dict[str, Any]]:
    """The extension of a ``goose://extension`` link: ``env`` names what has to be entered, and says what it is."""
    given = dict(query)
    entry: dict[str, Any] = {"description": given.get("description", "")}
    keys = [value.partition("=")[0] for key, value in query if key == "env"]
    if "url" in given:
        entry |= {"type": given.get("transport") or given.get("type") or "streamable_http", "uri": given["url"]}
        headers = (value.partition("=") for key, value in query if key == "header")
        entry["headers"] = {name: value for name, _, value in headers}
    elif "cmd" in given:
        entry |= {"type": "stdio", "cmd": given["cmd"], "args": [value for key, value in query if key == "arg"]}
    else:
        raise NotUnderstood("the link names no server")
    entry["env_keys"] = [key for key in keys if key]
    return given.get("id") or given.get("name", ""), entry
