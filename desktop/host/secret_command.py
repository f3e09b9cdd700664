"""Values that a command prints: what ``env`` and ``headers`` hold behind a ``!``. Used by ``transports``.

A command runs each time its server is connected and at no other time; the consent to the server covers it (``consent``). Nothing
of a command or of what it prints becomes part of an error, a log or a cache.
"""

from __future__ import annotations

import asyncio
import os
import sys

from desktop import processes
from desktop.errors import AssistantError
from desktop.host.environment import child_environment
from desktop.host.server_config import ServerDefinition
from desktop.host.server_references import UNFIT_FOR_VALUE, shown

#: Seconds for all commands of a server together; a shorter limit for its requests counts.
_LONGEST = 10.0
_LONGEST_OUTPUT = 64 * 1024


async def printed_values(definition: ServerDefinition) -> dict[str, str]:
    """Runs the definition's commands, one after the other, and returns what they print, without the space around it, by the names
    of variables or headers.

    Each runs by the platform's shell, in the server's ``cwd``, with the whole environment of Deskhand and the PATH of a terminal.
    The folder that is open plays no part: a command that was allowed must not find another program there.
    Raises AssistantError ``secret_lookup_failed`` and ``timeout``; whatever a command started is ended then, also when the
    caller is cancelled.
    """
    commands = definition.secret_commands
    if not commands:
        return {}
    terminal = await child_environment({})
    environment = {**processes.inherited_environment(), "PATH": terminal["PATH"]}
    time_limit = min(definition.request_time_limit, _LONGEST)
    printed: dict[str, str] = {}
    try:
        async with asyncio.timeout(time_limit):
            for name, command in commands.items():
                try:
                    finished = await processes.run(
                        _shell(command),
                        environment=environment,
                        folder=definition.cwd,
                        time_limit=time_limit,
                        output_limit=_LONGEST_OUTPUT,
                    )
                except OSError:
                    raise _failed(definition, name, "it can't be started") from None
                except ValueError:
                    raise _failed(definition, name, "it prints more than 64 KiB") from None
                value = finished.output.decode(errors="replace").strip()
                if reason := _unfit(finished.status, value):
                    raise _failed(definition, name, reason)
                printed[name] = value
    except TimeoutError:
        outcome = "; a command for a secret was still running"
        raise AssistantError("timeout", operation="connect", server=definition.name, outcome=outcome) from None
    return printed


def _unfit(status: int, value: str) -> str:
    """Why what a command printed can't be used, or ""."""
    if status:
        return f"it ended with status {status}"
    if not value:
        return "it prints nothing"
    if "\ufffd" in value:
        return "it prints no UTF-8 text"
    return "it prints several lines, or a character that no process takes" if UNFIT_FOR_VALUE.search(value) else ""


def _shell(command: str) -> list[str]:
    if sys.platform == "win32":
        return [os.environ.get("COMSPEC", "cmd.exe"), "/d", "/s", "/c", command]
    return ["/bin/sh", "-c", command]


def _failed(definition: ServerDefinition, name: str, reason: str) -> AssistantError:
    return AssistantError(
        "secret_lookup_failed", operation="connect", server=definition.name, variable=shown(name), reason=reason
    )
