"""What a ``/mcp`` command says: its words, and the definition that ``/mcp add`` writes. Without Qt; used by ``mcp_commands.py``.

A fault never repeats what was written: it may hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from desktop.ui.messages import tr

_TRANSPORTS = {"http": "http", "sse": "sse", "stdio": "stdio"}
#: What other programs and later versions take, and what is not there yet.
_NOT_YET = ("--oauth-client-id", "--oauth-scope", "--oauth-callback-port", "--oauth-dpop")
OPTIONS = ("--replace", "--transport", "--header", "--env", "--")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class NotUnderstood(Exception):
    """A fault in what was written: a sentence for the person."""


@dataclass(frozen=True, slots=True)
class Addition:
    """What ``/mcp add`` asks for."""

    name: str
    entry: dict[str, Any]
    """As the file of servers takes it; values as they were written, secrets too."""
    replace: bool = False


def split(text: str) -> list[str]:
    r"""Words. Single quotes keep what is in them as it is. In double quotes and outside quotes a backslash takes ``\`` and ``"``
    literally, outside quotes also ``'`` and white space; before anything else it is itself, so that paths of Windows survive.
    Nothing is expanded. Raises NotUnderstood for a quote that isn't closed and for a backslash at the end.
    """
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if quote == "'":
            if character == quote:
                quote = ""
            else:
                word = [*(word or []), character]
        elif character == "\\":
            if position == len(text):
                raise NotUnderstood(tr("A backslash stands at the end."))
            following = text[position]
            if following in '\\"' or (not quote and (following == "'" or following.isspace())):
                position += 1
                character = following
            word = [*(word or []), character]
        elif character == quote:
            quote = ""
        elif character in "\"'" and not quote:
            quote = character
            word = word or []
        elif character.isspace() and not quote:
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = [*(word or []), character]
    if quote:
        raise NotUnderstood(tr("A quotation mark is not closed."))
    if word is not None:
        words.append("".join(word))
    return words


def addition(words: Sequence[str]) -> Addition:
    """What the words after ``/mcp add`` ask for: options, then ``NAME URL`` or ``NAME -- COMMAND ARGUMENTS…``.

    Raises NotUnderstood. Whether the definition is valid is found out when it is written.
    """
    rest = list(words)
    once: dict[str, str] = {}
    replace = False
    pairs: dict[str, dict[str, str]] = {"--header": {}, "--env": {}}
    while rest and rest[0].startswith("--"):
        option = rest.pop(0)
        if option in _NOT_YET:
            raise NotUnderstood(tr("{option} can't be given yet.").format(option=option))
        if option == "--replace":
            replace = True
            continue
        if option not in ("--transport", "--header", "--env"):
            raise NotUnderstood(
                tr("There is an option that is not known; known are {options}.").format(options=_known())
            )
        if not rest:
            raise NotUnderstood(tr("{option} needs a value.").format(option=option))
        value = rest.pop(0)
        if option == "--transport":
            if option in once or value not in _TRANSPORTS:
                raise NotUnderstood(tr("--transport is given once, as http, sse or stdio."))
            once[option] = value
        else:
            _add_pair(option, value, pairs[option])
    if len(rest) < 2 or (rest[1] == "--" and len(rest) < 3) or (rest[1] != "--" and len(rest) > 2):
        raise NotUnderstood(tr("After the options come a name and an address, or a name, -- and a command."))
    name, is_program = rest[0], rest[1] == "--"
    transport = once.get("--transport")
    if is_program:
        if pairs["--header"] or transport not in (None, "stdio"):
            raise NotUnderstood(tr("A command takes no --header and no other --transport than stdio."))
        entry: dict[str, Any] = {"command": rest[2]}
        if rest[3:]:
            entry["args"] = rest[3:]
        if pairs["--env"]:
            entry["env"] = pairs["--env"]
        return Addition(name, entry, replace)
    if pairs["--env"] or transport == "stdio":
        raise NotUnderstood(tr("An address takes no --env and no --transport stdio."))
    entry = {"url": rest[1]}
    if transport == "sse":
        entry["type"] = "sse"
    if pairs["--header"]:
        entry["headers"] = pairs["--header"]
    return Addition(name, entry, replace)


def _add_pair(option: str, value: str, pairs: dict[str, str]) -> None:
    if option == "--env":
        name, sign, rest = value.partition("=")
        if not sign or not _NAME.fullmatch(name):
            raise NotUnderstood(tr("--env takes NAME=value."))
    else:
        name, sign, rest = value.partition(":")
        name, rest = name.strip(), rest.strip()
        if not sign or not _HEADER.fullmatch(name):
            raise NotUnderstood(tr("--header takes 'Name: value', in quotation marks."))
    known = {each.lower() for each in pairs} if option == "--header" else set(pairs)
    if (name.lower() if option == "--header" else name) in known:
        raise NotUnderstood(tr("{option} gives a name twice.").format(option=option))
    pairs[name] = rest


def _known() -> str:
    return ", ".join(OPTIONS[:-1])
