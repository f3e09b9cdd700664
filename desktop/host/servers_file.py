"""The servers' file, ``mcp.json``: read, checked and edited. Used by the host, the panels and the command line.

The file has the common shape, ``{"mcpServers": {name: {"command": …} or {"url": …}}}``; VS Code's ``servers``, comments and
trailing commas are read as well. An entry that is not valid is left out and named with its field, the reason and the place; the
others work. An edit changes the text of what it is about and nothing else.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from desktop.errors import AssistantError, Diagnostic, os_reason
from desktop.host.commented_json import JsonObject, Lines, NotJson, changed, parse, same_value
from desktop.host.file_lock import locked
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.host.server_entry import definition_of
from desktop.host.server_references import Invalid
from desktop.paths import write_private

_LONGEST_FILE = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


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
    lines = Lines(file.text)
    folder = str(path.absolute().parent)
    for section in _sections(file.content):
        for name, entry in section.items():
            try:
                if name in definitions or name in section.repeated:
                    definitions.pop(name, None)
                    raise Invalid("its name is given twice")
                definitions[name] = definition_of(name, entry, environ, base=base, folder=folder)
            except Invalid as invalid:
                place = lines.place(section.position((name, *invalid.path)))
                faults.append(invalid.diagnostic(name, " (line {}, column {})".format(*place)))
    return Configuration(tuple(definitions.values()), tuple(faults), path)


def add_server(path: Path, name: str, entry: dict[str, Any], *, replace: bool = False) -> None:
    """Writes a definition into the file, which is made where there is none.

    Raises AssistantError: ``configuration_invalid`` (also when the name is taken, without `replace`),
    ``configuration_unreadable``, ``storage_failed``; the file is then as it was.
    """
    _check(name, entry)

    def add(sections: Sequence[dict[str, Any]]) -> None:
        section = next((each for each in sections if name in each), None)
        if section is not None and not replace:
            raise AssistantError.of(Invalid("a server of that name exists").diagnostic(name))
        (sections[0] if section is None else section)[name] = entry

    _edit(path, add)


def check_new(path: Path, name: str, entry: dict[str, Any]) -> None:
    """Raises what `add_server` would before it writes: for what has to be done first, and not in vain."""
    _check(name, entry)
    if name in read_entries(path):
        raise AssistantError.of(Invalid("a server of that name exists").diagnostic(name))


def add_servers(path: Path, entries: Mapping[str, dict[str, Any]], replaced: Mapping[str, Any]) -> None:
    """Writes several definitions, all or none. `replaced` are entries of the file, as they were seen, that new ones of the same
    name take the place of.

    Raises like `add_server`, with ``configuration_invalid`` also when the file's entry of a name is no more what was seen.
    """
    for name, entry in entries.items():
        _check(name, entry)

    def add(sections: Sequence[dict[str, Any]]) -> None:
        for name, entry in entries.items():
            section = next((each for each in sections if name in each), None)
            if section is not None and name not in replaced:
                raise AssistantError.of(Invalid("a server of that name exists").diagnostic(name))
            if name in replaced and (section is None or not same_value(section[name], replaced[name])):
                raise AssistantError.of(Invalid("the server of that name has been changed meanwhile").diagnostic(name))
            (sections[0] if section is None else section)[name] = entry

    _edit(path, add)


def read_entries(path: Path) -> dict[str, Any]:
    """All entries as the file has them, valid or not, by name; none where there is no file.

    Raises AssistantError ``configuration_unreadable``.
    """
    try:
        return {name: entry for section in _sections(_read(path).content) for name, entry in section.items()}
    except FileNotFoundError:
        return {}


def read_entry(path: Path, name: str) -> Any:
    """A server's entry as the file has it, valid or not, for an editor.

    Raises AssistantError: ``server_unknown`` (also when there is no file), ``configuration_unreadable``.
    """
    try:
        return _section_of(name, _sections(_read(path).content))[name]
    except FileNotFoundError:
        raise AssistantError("server_unknown", operation="configuration", server=name) from None


@dataclass(frozen=True)
class Input:
    """What VS Code's ``inputs`` say of a value that ``${input:ID}`` stands for; all of it is text of the file."""

    description: str = ""
    hidden: bool = True
    """Not to be seen while it is typed."""
    default: str = ""


def read_inputs(path: Path) -> dict[str, Input]:
    """The inputs that a file describes, by the ID; of a file that can't be read none."""
    try:
        inputs: Any = _read(path).content.get("inputs")
    except (FileNotFoundError, AssistantError):
        return {}
    found: dict[str, Input] = {}
    for each in cast("list[Any]", inputs) if isinstance(inputs, list) else []:
        if isinstance(each, JsonObject) and isinstance(id_ := each.get("id"), str):
            description, default = each.get("description"), each.get("default")
            found[id_] = Input(
                description if isinstance(description, str) else "",
                each.get("password") is True,
                default if isinstance(default, str) else "",
            )
    return found


def remove_server(path: Path, name: str) -> None:
    """Takes a definition out of the file. Raises AssistantError ``server_unknown`` and those of `add_server`."""

    def remove(sections: Sequence[dict[str, Any]]) -> None:
        del _section_of(name, sections)[name]

    _edit(path, remove)


def set_disabled(path: Path, name: str, disabled: bool) -> None:
    """Disables or enables a server in the file. Raises AssistantError ``server_unknown`` and those of `add_server`."""

    def change(sections: Sequence[dict[str, Any]]) -> None:
        entry = _section_of(name, sections)[name]
        _check(name, entry)
        if "enabled" in entry:
            entry["enabled"] = not disabled
        if "disabled" in entry or (disabled and "enabled" not in entry):
            entry["disabled"] = disabled

    _edit(path, change)


def _check(name: str, entry: object) -> None:
    """Raises AssistantError ``configuration_invalid``. Whether variables are set is not asked: they may be where it is used."""
    try:
        definition_of(name, entry, None)
    except Invalid as invalid:
        raise AssistantError.of(invalid.diagnostic(name)) from None


@dataclass(frozen=True)
class _File:
    text: str
    content: JsonObject
    begins_with_bom: bool = False


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
    return _parsed(raw)


def _parsed(raw: bytes) -> _File:
    """Raises AssistantError ``configuration_unreadable``."""
    if len(raw) > _LONGEST_FILE:
        raise _unreadable("it is longer than 1 MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable("it is not UTF-8 text") from None
    try:
        content = parse(text)
    except NotJson as fault:
        reason = "it is nested too deeply" if fault.too_deep else "its JSON is wrong"
        raise _unreadable("{} at line {}, column {}".format(reason, *Lines(text).place(fault.position))) from None
    if not isinstance(content, JsonObject):
        raise _unreadable("it is not a JSON object")
    if content.repeated & {"mcpServers", "servers"}:
        raise _unreadable("it gives its servers twice")
    if content and not _sections(content):
        raise _unreadable("it has no object `mcpServers`")
    return _File(text, content, raw.startswith(_BOM))


def _unreadable(reason: str) -> AssistantError:
    return AssistantError("configuration_unreadable", operation="configuration", reason=reason)


Section = TypeVar("Section", bound="dict[str, Any]")


def _sections(content: dict[str, Section]) -> list[Section]:
    """The objects that hold definitions: ``mcpServers``, and VS Code's ``servers``."""
    return [content[key] for key in ("mcpServers", "servers") if isinstance(content.get(key), dict)]


def _section_of(name: str, sections: Sequence[dict[str, Any]]) -> dict[str, Any]:
    for section in sections:
        if name in section:
            return section
    raise AssistantError("server_unknown", operation="configuration", server=name)


def _edit(path: Path, change: Callable[[Sequence[dict[str, Any]]], None]) -> None:
    """Lets `change` alter the file's sections of definitions, and writes the file if they differ then."""
    with locked(path):
        try:
            file = _read(path)
        except FileNotFoundError:
            if path.is_symlink():
                raise _unreadable("it is a link to a file that does not exist") from None
            file = _File("{}\n", cast("JsonObject", parse("{}\n")))
        content: dict[str, Any] = json.loads(json.dumps(file.content))
        if not content:
            content["mcpServers"] = {}
        change(_sections(content))
        if same_value(content, file.content):
            return
        text = changed(file.text, file.content, content)
        # Half a surrogate pair, which a file can only hold as an escape, becomes that escape again.
        raw = (_BOM if file.begins_with_bom else b"") + text.encode("utf-8", "backslashreplace")
        if not same_value(_parsed(raw).content, content):
            raise _unreadable("the change can't be written into it")
        try:
            write_private(path, raw)
        except OSError as error:
            raise AssistantError("storage_failed", operation="configuration", reason=os_reason(error)) from error
