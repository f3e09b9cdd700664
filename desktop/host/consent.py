"""Which commands the person has allowed to start. Used by the host before it starts a server's process.

A command is known by the fingerprint of all that decides what runs: program, arguments, variables and folder; for a server that
is reached by its address, whose headers hold commands, also where their output goes. Whatever changes one of them asks again; the
server's name plays no part, so that an allowed name can't carry another command.
"""

from __future__ import annotations

from pathlib import Path

from desktop.host.remembered import Remembered
from desktop.host.server_config import ServerDefinition
from desktop.tool_names import fingerprint


class Consent:
    def __init__(self, file: Path | None, *, own_allowed: bool = False) -> None:
        """Consent is remembered in a private file; None: everything is allowed, and nothing is written.

        `own_allowed`: the servers of the person's file need none, for it was named on the command line; those of the open
        folder's file do.
        """
        self._remembered = None if file is None else Remembered(file)
        self._own_allowed = own_allowed

    @classmethod
    def for_everything(cls) -> Consent:
        """For a configuration that the person named on the command line: naming it is consent for that run."""
        return cls(None)

    def given(self, definition: ServerDefinition) -> bool:
        """Whether the server may be connected; always so for one that starts no process of its own."""
        starts_something = definition.kind == "stdio" or definition.secret_commands
        if not starts_something or self._remembered is None:
            return True
        return (self._own_allowed and definition.workspace is None) or _command(definition) in self._remembered

    def give(self, definition: ServerDefinition) -> None:
        """Raises AssistantError ``storage_failed`` when it can't be written; the consent then holds for this run."""
        if self._remembered is not None:
            self._remembered.add(_command(definition))


def _command(definition: ServerDefinition) -> str:
    if definition.kind == "stdio":
        return fingerprint([definition.command, definition.args, dict(definition.env), definition.cwd])
    return fingerprint([definition.url, dict(definition.headers)])
