"""What differs between two configurations, by names of servers and fields, never by values. Used by the bar that offers to take
over a file that was changed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from desktop.host.server_config import Configuration, ServerDefinition

#: What the file calls a field of a definition; the others are called as they are here. Those that are "" come with the situation.
_NAMES = {
    "kind": "type",
    "include_tools": "includeTools",
    "exclude_tools": "excludeTools",
    "request_time_limit": "timeoutMs",
    "startup_time_limit": "startupTimeoutMs",
    "call_time_limit": "toolTimeoutMs",
    "ca_file": "caFile",
    "folder": "",
    "workspace": "",
}


@dataclass(frozen=True, slots=True)
class ServerChange:
    name: str
    kind: Literal["added", "changed", "removed"]
    fields: tuple[str, ...] = ()
    """Of a changed one, as the file calls them; a variable or a header is ``env.NAME`` or ``headers.NAME``."""


def changes(before: Configuration, after: Configuration) -> tuple[ServerChange, ...]:
    """In the order of the later configuration, what was removed at the end."""
    old = {each.name: each for each in before.definitions}
    new = {each.name: each for each in after.definitions}
    found: list[ServerChange] = []
    for name, definition in new.items():
        if name not in old:
            found.append(ServerChange(name, "added"))
        elif definition != old[name]:
            found.append(ServerChange(name, "changed", tuple(_changed_fields(old[name], definition))))
    found.extend(ServerChange(name, "removed") for name in old if name not in new)
    return tuple(found)


def _changed_fields(old: ServerDefinition, new: ServerDefinition) -> Iterator[str]:
    for each in fields(ServerDefinition):
        before: Any = getattr(old, each.name)
        after: Any = getattr(new, each.name)
        name = _NAMES.get(each.name, each.name)
        if before == after or not name:
            continue
        if each.name in ("env", "headers"):
            yield from (f"{name}.{key}" for key in {**before, **after} if before.get(key) != after.get(key))
        else:
            yield name
