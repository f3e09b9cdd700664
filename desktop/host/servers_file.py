"""The servers' file, ``mcp.json``: read, checked and edited. Used by the host, the panels and the command line.

The file has the common shape, ``{"mcpServers": {name: {"command": …} or {"url": …}}}``; VS Code's ``servers``, comments and
trailing commas are read as well. An entry that is not valid is left out and named with its field and the reason; the
others work.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from desktop.errors import AssistantError, Diagnostic, os_reason
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.host.server_entry import JsonObject, definition_of
from desktop.host.server_references import Invalid
from desktop.paths import write_private

_LONGEST_FILE = 1024 * 1024
#: json5 takes some 30 µs a character, and nobody comments more than this.
_LONGEST_FILE_WITH_COMMENTS = 64 * 1024


def read_configuration(path: Path, environ: Mapping[str, str] = os.environ, *, base: str = "") -> Configuration:
    """Reads and checks a file of definitions; never writes. A missing file is an empty configuration.

    Relative paths of definitions begin in the folder `base`, or in Deskhand's.
    """
    try:
        file = _read(path)
    except FileNotFoundError:
        return Configuration(path=path)
    except AssistantError as error:
        return Configuration(faults=(error.diagnostic,), path=path)
    definitions: dict[str, ServerDefinition] = {}
    faults: list[Diagnostic] = []
    for section in _sections(file.content):
        for name, entry in section.items():
            try:
                if name in definitions or name in section.repeated:
                    definitions.pop(name, None)
                    raise Invalid("", "its name is given twice")
                definitions[name] = definition_of(name, entry, environ, base)
            except Invalid as invalid:
                faults.append(invalid.diagnostic(name))
    return Configuration(tuple(definitions.values()), tuple(faults), path)


def add_server(path: Path, name: str, entry: dict[str, Any], *, replace: bool = False) -> None:
    """Writes a definition into the file, which is made where there is none.

    Raises AssistantError: ``configuration_invalid`` (also when the name is taken, without `replace`),
    ``configuration_unreadable``, ``configuration_commented``, ``storage_failed``; the file is then as it was.
    """
    try:
        definition_of(name, entry, None)
    except Invalid as invalid:
        raise AssistantError.of(invalid.diagnostic(name)) from None

    def add(sections: Sequence[dict[str, Any]]) -> bool:
        section = next((each for each in sections if name in each), None)
        if section is not None and not replace:
            raise AssistantError.of(Invalid("", "a server of that name exists").diagnostic(name))
        (sections[0] if section is None else section)[name] = entry
        return True

    _edit(path, add)


def read_entry(path: Path, name: str) -> Any:
    """A server's entry as the file has it, valid or not, for an editor.

    Raises AssistantError: ``server_unknown`` (also when there is no file), ``configuration_unreadable``.
    """
    try:
        return _section_of(name, _sections(_read(path).content))[name]
    except FileNotFoundError:
        raise AssistantError("server_unknown", operation="configuration", server=name) from None


def remove_server(path: Path, name: str) -> None:
    """Takes a definition out of the file. Raises AssistantError ``server_unknown`` and those of `add_server`."""

    def remove(sections: Sequence[dict[str, Any]]) -> bool:
        del _section_of(name, sections)[name]
        return True

    _edit(path, remove)


def set_disabled(path: Path, name: str, disabled: bool) -> None:
    """Disables or enables a server in the file. Raises AssistantError ``server_unknown`` and those of `add_server`."""

    def change(sections: Sequence[dict[str, Any]]) -> bool:
        entry = _section_of(name, sections)[name]
        if not isinstance(entry, dict):
            raise AssistantError.of(Invalid("", "it is not an object").diagnostic(name))
        before = dict(cast("dict[str, Any]", entry))
        if "enabled" in entry:
            entry["enabled"] = not disabled
        if "disabled" in entry or (disabled and "enabled" not in entry):
            entry["disabled"] = disabled
        return entry != before

    _edit(path, change)


@dataclass(frozen=True)
class _File:
    content: JsonObject
    commented: bool
    """Not plain JSON: rewriting would lose comments."""
    repeated: bool
    """Some object gives a key twice: rewriting would lose a value."""


def _read(path: Path) -> _File:
    """Raises FileNotFoundError, and AssistantError ``configuration_unreadable``."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise _unreadable("it is no regular file")
        with path.open("rb") as file:
            raw = file.read(_LONGEST_FILE + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(os_reason(error)) from error
    if len(raw) > _LONGEST_FILE:
        raise _unreadable("it is longer than 1 MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable("it is not UTF-8 text") from None
    objects: list[JsonObject] = []

    def make_object(pairs: Sequence[tuple[str, Any]]) -> JsonObject:
        objects.append(JsonObject(pairs))
        return objects[-1]

    commented = False
    try:
        try:
            content = json.loads(text, object_pairs_hook=make_object)
        except json.JSONDecodeError as error:
            objects.clear()
            content = _loads_commented(text, make_object, error)
            commented = True
    except RecursionError:
        raise _unreadable("it is nested too deeply") from None
    if not isinstance(content, JsonObject):
        raise _unreadable("it is not a JSON object")
    if content.repeated & {"mcpServers", "servers"}:
        raise _unreadable("it gives its servers twice")
    if content and not _sections(content):
        raise _unreadable("it has no object `mcpServers`")
    return _File(content, commented, any(each.repeated for each in objects))


def _loads_commented(text: str, make_object: Callable[..., JsonObject], plain_error: json.JSONDecodeError) -> Any:
    """Only numbers are taken from an error: its text repeats characters of the file."""
    if len(text) > _LONGEST_FILE_WITH_COMMENTS:
        raise _unreadable(f"its JSON is wrong at line {plain_error.lineno}, column {plain_error.colno}") from None
    import json5

    try:
        return json5.loads(text, object_pairs_hook=make_object)
    except ValueError as error:
        position = re.search(r":(\d+) .* at column (\d+)", str(error), re.DOTALL)
        where = " at line {}, column {}".format(*position.groups()) if position else ""
        raise _unreadable(f"its JSON is wrong{where}") from None


def _unreadable(reason: str) -> AssistantError:
    return AssistantError("configuration_unreadable", operation="configuration", reason=reason)


def _sections(content: JsonObject) -> list[JsonObject]:
    """The objects that hold definitions: ``mcpServers``, and VS Code's ``servers``."""
    return [content[key] for key in ("mcpServers", "servers") if isinstance(content.get(key), JsonObject)]


def _section_of(name: str, sections: Sequence[dict[str, Any]]) -> dict[str, Any]:
    for section in sections:
        if name in section:
            return section
    raise AssistantError("server_unknown", operation="configuration", server=name)


#: One edit at a time: each reads, changes and replaces a whole file.
_EDITING = threading.Lock()


def _edit(path: Path, change: Callable[[Sequence[dict[str, Any]]], bool]) -> None:
    """Lets `change` alter the file's sections of definitions, and writes the file if it says that it did."""
    with _EDITING:
        try:
            file = _read(path)
        except FileNotFoundError:
            if path.is_symlink():
                raise _unreadable("it is a link to a file that does not exist") from None
            file = _File(JsonObject([]), commented=False, repeated=False)
        if file.commented:
            raise AssistantError("configuration_commented", operation="configuration")
        if file.repeated:
            raise _unreadable("it gives a key twice")
        if not file.content:
            file.content["mcpServers"] = JsonObject([])
        if not change(_sections(file.content)):
            return
        text = json.dumps(file.content, indent=2, ensure_ascii=False) + "\n"
        try:
            # Half a surrogate pair, which a file can only hold as an escape, becomes that escape again.
            write_private(path, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise AssistantError("storage_failed", operation="configuration", reason=os_reason(error)) from error
