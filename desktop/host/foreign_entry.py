"""A server as another program has it, turned into an entry of Deskhand's file. Used by the import and by what a person pastes.

Nothing is dropped silently: a field that says how a server is reached and that Deskhand doesn't know is a problem, and the entry
can't be taken over; one that concerns the other program alone is named. Values are never run nor repeated in a message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from desktop.host.server_entry import definition_of
from desktop.host.server_references import Invalid, checked_text, secret_names, shown

Entry = dict[str, Any]

#: Fields that Deskhand's own entries have.
_KNOWN = frozenset(
    """
    type command args cwd env url httpUrl serverUrl headers description disabled enabled includeTools
    excludeTools timeoutMs startupTimeoutMs toolTimeoutMs protocol caFile start oauth
    """.split()  # noqa: SIM905
)
#: Fields under other names; where an entry has both, it is refused.
_OTHER_NAMES = {
    "transport": "type",
    "transportType": "type",
    "environment": "env",
    "disabledTools": "excludeTools",
    "enabledTools": "includeTools",
}
#: What concerns the other program alone: its own approvals, its list of extensions, its time limits in units of its own.
_OF_THE_PROGRAM = frozenset(
    """
    alwaysAllow autoApprove trust gallery version dev icon iconPath timeout alwaysLoad name title displayName
    display_name source bundled note notes comment _comment $schema registry tags provider
    supports_parallel_tool_calls
    """.split()  # noqa: SIM905
)
#: What VS Code and Cursor set to what is open in them.
_OF_THE_EDITOR = frozenset(
    """
    file fileWorkspaceFolder relativeFile relativeFileDirname fileBasename fileBasenameNoExtension fileExtname fileDirname
    fileDirnameBasename cwd lineNumber columnNumber selectedText execPath defaultBuildTask workspaceFolderBasename workspaceRoot
    """.split()  # noqa: SIM905
)
_FORM = re.compile(r"\$\{([^{}]*)\}")
_REFERENCE = re.compile(r"(?:env:)?[A-Za-z_][A-Za-z0-9_]*(?::-[^{}]*)?|(?:input|keyring):[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True)
class Candidate:
    """A server that may be taken over.

    Attributes:
        name: As it was found; it may be no valid one.
        entry: As Deskhand's file would have it, not checked where there is a problem.
        problem: Why it can't be taken over, a text of ours; "": it can.
        left_out: Fields of the other program that mean nothing to Deskhand, as they may be shown.
        asked: What has to be entered once: names of secrets that the entry refers to, and what the other program says of them.
        missing: Environment variables that it refers to and that are not set.
    """

    name: str
    entry: Entry
    problem: str = ""
    left_out: tuple[str, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: tuple[str, ...] = ()


def candidate(
    name: str,
    entry: object,
    *,
    inputs: Mapping[str, str] | None = None,
    folder: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Candidate:
    """An entry as most programs write it in JSON.

    `inputs` are what VS Code's ``inputs`` describe, by their id; `folder` is the one that ``${workspaceFolder}`` stands for.
    """
    if not isinstance(entry, dict):
        return Candidate(name, {}, "it is not an object")
    given = cast("dict[str, Any]", entry)
    converted: Entry = {}
    try:
        left_out = _take(given, converted, folder)
    except Invalid as invalid:
        return Candidate(name, converted, reason_of(invalid))
    asked = {each: (inputs or {}).get(each, "") for value in _values(converted) for each in secret_names(value)}
    return checked(Candidate(name, converted, left_out=left_out, asked=asked), environ)


def checked(found: Candidate, environ: Mapping[str, str] = os.environ) -> Candidate:
    """The same with what Deskhand would have against its entry, and with the variables that are not set."""
    try:
        definition_of("checked", found.entry, None)
    except Invalid as invalid:
        return Candidate(found.name, found.entry, found.problem or reason_of(invalid), found.left_out, found.asked)
    texts = [*_values(found.entry), *found.entry.get("args", []), *(str(found.entry.get(key, "")) for key in _TEXTS)]
    names = (match[1].removeprefix("env:") for text in texts for match in _FORM.finditer(text.replace("$$", "")))
    missing = {name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name) and name not in environ}
    return Candidate(found.name, found.entry, found.problem, found.left_out, found.asked, tuple(sorted(missing)))


_TEXTS = ("command", "cwd", "url", "httpUrl", "serverUrl", "caFile")


def reason_of(invalid: Invalid) -> str:
    """A problem in words: the field and the reason."""
    where = str(invalid.diagnostic("").values["where"]).strip()
    reason = str(invalid.values.get("reason") or "a variable is not set")
    return f"{where}: {reason}" if where else reason


def literal(value: str) -> str:
    """A value of ``env`` or ``headers`` that stands for itself alone: ``$`` names no variable, ``!`` no command."""
    escaped = value.replace("$", "$$")
    return f"${escaped}" if escaped.startswith("!") else escaped


def value_itself(value: str) -> str | None:
    """The text that a value of ``env`` or ``headers`` stands for when it refers to nothing; None when it does."""
    if value.startswith("!") or re.search(r"\$(?![$!])", value.replace("$$", "").replace("$!", "")):
        return None
    return re.sub(r"\$([$!])", r"\1", value)


def foreign_text(text: str, *path: str | int, folder: Path | None = None, in_value: bool = False) -> str:
    """A text with the variables of other programs as Deskhand writes them. Raises Invalid for one that it doesn't know.

    `in_value`: of ``env`` or ``headers``, where a lone ``$`` and a leading ``!`` would mean something to Deskhand.
    """
    result: list[str] = []
    end = 0
    for match in _FORM.finditer(text):
        between = text[end : match.start()]
        end = match.end()
        result += [_between(between, in_value, *path), _form(match[1], folder, in_value, *path)]
    whole = "".join([*result, _between(text[end:], in_value, *path)])
    return f"${whole}" if in_value and text.startswith("!") else whole


def _between(text: str, in_value: bool, *path: str | int) -> str:
    if "${" in text:
        raise Invalid("it has a `${` without its end, or one in another", *path)
    return text.replace("$", "$$") if in_value else text


def _form(inner: str, folder: Path | None, in_value: bool, *path: str | int) -> str:
    """What ``${inner}`` is to Deskhand."""
    known = {
        "userHome": str(Path.home()),
        "pathSeparator": os.sep,
        "/": os.sep,
        "workspaceFolder": str(folder) if folder else "",
        "workspaceFolderBasename": folder.name if folder else "",
    }
    if known.get(inner):
        return known[inner].replace("$", "$$") if in_value else known[inner]
    if _REFERENCE.fullmatch(inner) and inner not in _OF_THE_EDITOR:
        return f"${{{inner}}}"  # workspaceFolder, too: Deskhand sets it while a folder is open
    named = f"`${{{inner}}}`" if re.fullmatch(r"[\w:./ -]{1,60}", inner) else "a variable in it"
    raise Invalid(f"Deskhand does not know what {named} stands for", *path)


def _take(given: Entry, converted: Entry, folder: Path | None) -> tuple[str, ...]:
    """Fills `converted`, and returns the fields that are left out. Raises Invalid."""
    given = {key: value for key, value in given.items() if value is not None}
    for other, own in _OTHER_NAMES.items():
        if other in given:
            if own in given:
                raise Invalid(f"it has both `{own}` and `{other}`", other)
            given[own] = given.pop(other)
    if given.get("source") == "extension" or (given.get("settings") and "command" not in given):
        raise Invalid("it is an extension of that program, not a command or an address")
    if isinstance(given.get("settings"), dict) and not given["settings"]:
        del given["settings"]
    command = given.get("command")
    if isinstance(command, list) and command:  # the command and its arguments in one
        words = cast("list[Any]", command)
        given["command"], given["args"] = words[0], [*words[1:], *_list(given.get("args"))]
    elif isinstance(command, dict):
        parts = cast("dict[str, Any]", command)
        if unknown := parts.keys() - {"path", "args", "env"}:
            raise Invalid("Deskhand does not know the field", "command", shown(min(unknown)))
        del given["command"]
        given |= {"command" if key == "path" else key: value for key, value in parts.items() if value is not None}
    if given.get("type") in ("local", "remote"):  # says only whether it is a program
        del given["type"]
    unknown = [key for key in given if key not in _KNOWN and key not in _OF_THE_PROGRAM]
    if unknown:
        raise Invalid(f"Deskhand does not know the field {', '.join(map(shown, unknown[:5]))}")
    for key, value in given.items():
        if key in _KNOWN:
            converted[key] = _converted(key, value, folder)
    _apply_oauth(converted)
    return tuple(shown(key) for key in given if key in _OF_THE_PROGRAM)


def _converted(key: str, value: Any, folder: Path | None) -> Any:
    if key in ("env", "headers") and isinstance(value, dict):
        return {
            name: foreign_text(_text(each, key, name), key, name, folder=folder, in_value=True)
            for name, each in cast("dict[str, Any]", value).items()
            if each is not None
        }
    if key == "args" and isinstance(value, list):
        return [
            foreign_text(_text(each, key, n), key, n, folder=folder) for n, each in enumerate(cast("list[Any]", value))
        ]
    if key in _TEXTS and isinstance(value, str):
        return foreign_text(value, key, folder=folder)
    return json.loads(json.dumps(value))  # plain, and a copy


def _text(value: Any, *path: str | int) -> str:
    """Numbers and truths as other programs pass them on."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, int | float) else checked_text(value, *path, empty=True)


def _apply_oauth(converted: Entry) -> None:
    """Takes what programs write beside Deskhand's own ``oauth``; an empty one asks for nothing."""
    oauth = converted.get("oauth")
    if oauth in ({}, True):
        del converted["oauth"]  # it is found out when the server asks for it
    elif isinstance(oauth, dict) and "scope" in oauth and "scopes" not in oauth:
        given = cast("dict[str, Any]", oauth)
        given["scopes"] = str(given.pop("scope")).split()


def _values(entry: Entry) -> list[str]:
    return [
        value
        for key in ("env", "headers")
        if isinstance(entry.get(key), dict)
        for value in cast("dict[str, Any]", entry[key]).values()
        if isinstance(value, str)
    ]


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
