"""Which program a server's command names: whether it is there, where, and of what version.

Used by the rows of failed servers, the servers' editor, reports and ``deskhand doctor``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass

from desktop import processes
from desktop.errors import AssistantError
from desktop.host.environment import child_environment, resolve_command
from desktop.host.runtimes import runtime_of
from desktop.visible_text import visible_line

#: Seconds for a program to say its version.
_LONGEST_ANSWER = 5.0
_LONGEST_VERSION = 80
_MOST_OUTPUT = 65536


@dataclass(frozen=True, slots=True)
class Program:
    """What a command names."""

    command: str
    path: str = ""
    """Empty: it is not there."""
    version: str = ""
    """As the program itself says it; empty where it was not asked or said nothing."""

    def __str__(self) -> str:
        """``npx 10.8.2 (/usr/bin/npx)``, or ``npx: not found``."""
        if not self.path:
            return f"{visible_line(self.command)}: not found"
        named = self.command if self.command != self.path else ""
        place = visible_line(self.path, 400)
        return " ".join(filter(None, (visible_line(named), self.version, f"({place})" if named else place)))


async def find_program(command: str, configured: Mapping[str, str], folder: str | None) -> Program:
    """Looks for the program of a server's command as it would be looked for at the start, with the definition's `configured`
    variables and `folder`. Takes some 10 seconds at most.

    Nothing of a definition is started: asked for its version is only a program of `RUNTIMES` that is found without what the
    definition says, and each only once.
    """
    own = await child_environment({})
    path = await _resolved(command, {**own, **configured}, folder)
    usual = await _resolved(command, own, None) if runtime_of(command) is not None else ""
    return Program(command, path, await _version(path, own) if path and path == usual else "")


async def _resolved(command: str, variables: Mapping[str, str], folder: str | None) -> str:
    try:
        return await asyncio.to_thread(resolve_command, command, variables, folder)
    except AssistantError:
        return ""


#: Path and time of its last change -> version.
_versions: dict[tuple[str, float], str] = {}


async def _version(path: str, variables: Mapping[str, str]) -> str:
    try:
        key = (path, (await asyncio.to_thread(os.stat, path)).st_mtime)
        if key not in _versions:
            ended = await processes.run(
                [path, "--version"], environment=variables, time_limit=_LONGEST_ANSWER, output_limit=_MOST_OUTPUT
            )
            said = ended.output.decode(errors="replace").strip() if ended.status == 0 else ""
            _versions[key] = visible_line(said.partition("\n")[0], _LONGEST_VERSION)
        return _versions[key]
    except (OSError, ValueError, TimeoutError):
        return ""
