"""The servers in a text as some program has it: JSON with or without comments, Codex's TOML, Goose's YAML. Used by the import of
files and by what a person pastes.

Which program's it is shows in its keys: ``mcpServers`` of most, with ``projects`` of Claude Code; ``servers`` of VS Code, also
under ``mcp`` in its settings; ``context_servers`` of Zed; ``mcp_servers`` of Codex; ``extensions`` of Goose.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from desktop.host.commented_json import JsonObject, Lines, NotJson, parse
from desktop.host.foreign_entry import Candidate, candidate
from desktop.host.foreign_programs import codex_candidate, goose_candidate

MOST_SERVERS = 100
LONGEST_TEXT = 1024 * 1024
"""Bytes."""
_DEEPEST = 50
NO_SERVERS = "it has no servers in a form that Deskhand knows"


class NotUnderstood(Exception):
    """A text has no servers that can be read; the message says why, in a text of ours."""


@dataclass(frozen=True)
class Group:
    """Servers that belong together.

    Attributes:
        label: "" for those that always count; the folder for which they do otherwise, untrusted text.
    """

    label: str
    candidates: tuple[Candidate, ...]


def groups_of(text: str, *, folder: Path | None = None, environ: Mapping[str, str] = os.environ) -> list[Group]:
    """All groups that have servers, `MOST_SERVERS` servers at most. Raises NotUnderstood.

    `folder` is the one that ``${workspaceFolder}`` stands for.
    """
    return groups_in(document(text), folder=folder, environ=environ)


def groups_in(
    content: dict[str, Any], *, folder: Path | None = None, environ: Mapping[str, str] = os.environ
) -> list[Group]:
    """The same of a text that was read already."""
    groups = [each for each in _groups(content, folder, environ) if each.candidates]
    if not groups:
        raise NotUnderstood(NO_SERVERS)
    number = sum(len(each.candidates) for each in groups)
    if number > MOST_SERVERS:
        raise NotUnderstood(f"it has {number} servers; {MOST_SERVERS} can be taken over at once")
    return groups


def document(text: str) -> dict[str, Any]:
    """What a text says, its values plain. Raises NotUnderstood."""
    if len(text) > LONGEST_TEXT:
        raise NotUnderstood("it is longer than 1 MiB")
    if text.lstrip().startswith(("{", "[{", "//", "/*")):
        content = _json(text)
    elif re.search(r"^\s*\[+[\w.\"'-]+\]+\s*(?:#.*)?$|^\s*[\w.\"-]+\s*=", text, re.MULTILINE):
        content = _toml(text)
    else:
        content = _yaml(text)
    if not isinstance(content, dict):
        raise NotUnderstood("it is no object")
    return cast("dict[str, Any]", content)


def _groups(content: dict[str, Any], folder: Path | None, environ: Mapping[str, str]) -> Iterator[Group]:
    def common(section: object, label: str = "", inputs: object = None, at: Path | None = folder) -> Group:
        described = _described(inputs)
        entries = cast("dict[str, Any]", section) if isinstance(section, dict) else {}
        found = [candidate(name, each, inputs=described, folder=at, environ=environ) for name, each in entries.items()]
        return Group(label, tuple(_once(entries, found)))

    for key in ("mcpServers", "servers", "context_servers"):
        yield common(content.get(key), inputs=content.get("inputs"))
    mcp = content.get("mcp")
    if isinstance(mcp, dict):
        settings = cast("dict[str, Any]", mcp)
        nested = isinstance(settings.get("servers"), dict)
        yield common(settings["servers"] if nested else settings, inputs=settings.get("inputs"))
    for key, convert in (("mcp_servers", codex_candidate), ("extensions", goose_candidate)):
        section = content.get(key)
        if isinstance(section, dict):
            entries = cast("dict[str, Any]", section)
            converted = [convert(str(name), each, environ) for name, each in entries.items()]
            yield Group("", tuple(each for each in converted if each is not None))
    projects = content.get("projects")
    if isinstance(projects, dict):
        for path, project in cast("dict[str, Any]", projects).items():
            if isinstance(project, dict):
                servers = cast("dict[str, Any]", project).get("mcpServers")
                yield common(servers, label=path, at=Path(path))


def _once(entries: Mapping[str, Any], found: list[Candidate]) -> Iterator[Candidate]:
    """Of a name that is given twice, nobody can say which one counts."""
    repeated = entries.repeated if isinstance(entries, JsonObject) else frozenset[str]()
    for each in found:
        yield Candidate(each.name, {}, "its name is given twice") if each.name in repeated else each


def _described(inputs: object) -> dict[str, str]:
    """What VS Code's ``inputs`` say of themselves, by their id."""
    listed = cast("list[Any]", inputs) if isinstance(inputs, list) else []
    described = [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]
    return {str(each["id"]): str(each.get("description") or "") for each in described if "id" in each}


def _json(text: str) -> object:
    try:
        return parse(text)
    except NotJson as fault:
        if fault.too_deep:
            raise NotUnderstood("its JSON is nested too deeply") from None
        raise NotUnderstood(
            "its JSON is wrong at line {}, column {}".format(*Lines(text).place(fault.position))
        ) from None


def _toml(text: str) -> object:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError):  # its own text would quote the file
        raise NotUnderstood("its TOML is wrong") from None


def _yaml(text: str) -> object:
    """PyYAML reads it: the one reader for Python that is kept and complete; it comes with litellm already. Only plain values
    are made, and anchors are refused: a few lines of them stand for gigabytes."""
    import yaml

    parse_events = cast("Callable[..., Iterator[yaml.Event]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in parse_events(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > _DEEPEST:
                raise NotUnderstood("its YAML has references within, or is nested too deeply")
        return yaml.load(text, Loader=loader)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        raise NotUnderstood("it is neither JSON nor TOML nor YAML that can be read") from None
