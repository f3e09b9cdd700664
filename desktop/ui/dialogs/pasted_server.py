"""What a person pastes to add a server: a command line, a URL, or JSON in any of the usual shapes. Used by the server editor.

Only the shape is found out here; whether an entry is valid is for ``host/server_entry.py`` to say.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any
from urllib.parse import urlsplit

from desktop.ui.messages import tr

_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PROMPT = re.compile(r"\s*[$>]\s+")
#: Words in front of or behind a name that say only that it is a server.
_DECORATION = re.compile(r"(?:^(?:mcp[-_])?server[-_]|^mcp[-_]|[-_]mcp(?:[-_]server)?$|[-_]server$)")
_RUNNERS = frozenset(
    {"npx", "npx.cmd", "uvx", "uv", "bunx", "pnpm", "dlx", "run", "exec", "node", "python", "python3", "-m", "tool"}
)


class NotUnderstood(Exception):
    """The text is none of the shapes; the message says why, for the person."""


def parse(text: str) -> dict[str, dict[str, Any]]:
    """Entries by name, as ``mcp.json`` has them; a name that can't be guessed is "". Raises NotUnderstood."""
    text = text.strip()
    if text.startswith(("{", '"')):
        return _from_json(text)
    if re.match(r"https?://", text):
        if len(text.split()) > 1:
            raise NotUnderstood(tr("A URL has no spaces."))
        return {_from_host(text): {"url": text}}
    return _from_command(text)


def command_line(entry: dict[str, Any]) -> str:
    """The command of an entry as one would type it."""
    return shlex.join([str(entry.get("command", "")), *map(str, entry.get("args", ()))])


def _from_json(text: str) -> dict[str, dict[str, Any]]:
    text = text.rstrip(",")
    content = _load(text if text.startswith("{") else "{" + text + "}")
    if not isinstance(content, dict):
        raise NotUnderstood(tr("This JSON is no object."))
    for key in ("mcpServers", "servers"):
        if isinstance(content.get(key), dict):
            content = content[key]
            break
    if {"command", "url", "httpUrl", "serverUrl"} & content.keys():
        named = content.pop("name", "")
        return {str(named) or _guess(content): content}
    if not content or not all(isinstance(entry, dict) for entry in content.values()):
        raise NotUnderstood(tr("There is no server in this JSON: it needs a “command” or a “url”."))
    return content


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    import json5

    try:
        if len(text) > 64 * 1024:  # json5 is slow
            raise ValueError
        return json5.loads(text)
    except (ValueError, RecursionError):
        raise NotUnderstood(tr("This begins like JSON, but is not valid.")) from None


def _from_command(text: str) -> dict[str, dict[str, Any]]:
    text = _PROMPT.sub("", text, count=1) if _PROMPT.match(text) else text
    text = re.sub(r"\\\r?\n", " ", text)  # a line that goes on
    try:
        words = shlex.split(text)
    except ValueError:
        raise NotUnderstood(tr("A quotation mark is missing.")) from None
    variables: dict[str, str] = {}
    while words and (match := _VARIABLE.fullmatch(words[0])):
        variables[match[1]] = match[2]
        words = words[1:]
    if not words:
        raise NotUnderstood(tr("There is no command in it."))
    entry: dict[str, Any] = {"command": words[0]}
    if words[1:]:
        entry["args"] = words[1:]
    if variables:
        entry["env"] = variables
    return {_guess(entry): entry}


def _guess(entry: dict[str, Any]) -> str:
    for key in ("url", "httpUrl", "serverUrl"):
        if key in entry:
            return _from_host(str(entry[key]))
    for word in [entry.get("command", ""), *entry.get("args", ())]:
        name = re.split(r"[/\\]", str(word))[-1]
        name = re.sub(r"(?<=.)@.*$|\.(?:exe|cmd|js|mjs|py)$|[=<>~].*$", "", name)
        if name and name.lower() not in _RUNNERS and not name.startswith("-"):
            return _clean(name)
    return ""


def _from_host(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    parts = [part for part in host.split(".") if part not in ("www", "mcp", "api")]
    return _clean(parts[-2] if len(parts) > 1 and not parts[-1].isdigit() else host)


def _clean(name: str) -> str:
    bare = _DECORATION.sub("", name)
    return re.sub(r"[^A-Za-z0-9_-]+", "-", bare or name).strip("-_")[:80]
