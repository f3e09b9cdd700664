"""The workspace: the folder the person has opened, and the servers that count while it is open. Used by the core.

A folder may bring servers of its own in ``.mcp.json`` or ``.vscode/mcp.json``. That file is neither read nor parsed, only known
to exist, until the person trusts the folder; a server of it replaces the person's own one of the same name whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from desktop.errors import AssistantError, Diagnostic, os_reason
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.host.server_entry import definition_of
from desktop.host.server_references import Invalid
from desktop.host.servers_file import read_configuration
from desktop.host.trust import Trust
from desktop.tool_names import fingerprint
from desktop.visible_text import visible_line

FILES = (".mcp.json", ".vscode/mcp.json")
"""Where a folder may have servers, the first that exists counts."""
_VARIABLE = "workspaceFolder"

State = Literal["closed", "plain", "trusted", "refused", "undecided"]
Policy = Literal["ask", "always", "never"]


@dataclass(frozen=True)
class Servers:
    """What was read of the files that count.

    Attributes:
        configuration: The definitions of all, and what could not be used.
        folder_faults: Those of the faults that are of the folder's file.
        replaced: Names of the person's own servers that the folder's replace.
    """

    configuration: Configuration
    folder_faults: tuple[Diagnostic, ...] = ()
    replaced: tuple[str, ...] = ()


class Workspace:
    """The open folder, if there is one.

    Attributes:
        folder: Canonical, or None.
        file: The folder's file of servers as it was looked for last, whether it may be read or not; None: it has none.
        servers: What was read last.
    """

    def __init__(self, own_file: Path, trust: Trust, policy: Callable[[], str], *, default: Path | None) -> None:
        """`policy` says what holds for folders that nothing was answered for; `default` is where servers run while no folder is
        open, None for the folder Deskhand runs in."""
        self.folder: Path | None = None
        self.file: Path | None = None
        self.servers = Servers(Configuration(path=own_file))
        self.trust = trust
        self._own_file = own_file
        self._policy = policy
        self._default = default
        self._readable: dict[Path, Configuration] = {}

    @property
    def state(self) -> State:
        """Whether the folder's file counts; ``plain`` is a folder without one."""
        if self.folder is None:
            return "closed"
        if self.file is None:
            return "plain"
        decision = self.trust.decision(self.folder)
        if decision is not None:
            return "trusted" if decision.trusted else "refused"
        by_policy: dict[str, State] = {"always": "trusted", "never": "refused"}
        return by_policy.get(self._policy(), "undecided")

    @property
    def ignored(self) -> Diagnostic | None:
        """That the folder's file is not used, where it isn't."""
        return Diagnostic("folder_not_trusted", "configuration") if self.state in ("refused", "undecided") else None

    def open(self, folder: Path | None) -> None:
        """Makes a folder the open one; None closes it. Nothing of it is read.

        Raises AssistantError ``folder_unavailable``; the folder that was open stays so.
        """
        if folder is not None:
            try:
                folder = folder.expanduser().resolve(strict=True)
                with os.scandir(folder):  # also tells whether we may look into it
                    pass
            except (OSError, RuntimeError) as error:
                reason = os_reason(error) if isinstance(error, OSError) else "its path is not valid"
                named = visible_line(str(folder), 200)
                raise AssistantError(
                    "folder_unavailable", operation="configuration", folder=named, reason=reason
                ) from error
        if folder != self.folder:
            self._forget_files()
        self.folder = folder
        self.file = servers_file_of(folder)

    def read(self) -> Configuration:
        """Reads the person's file and, of a trusted folder, its own. What can't be read any more counts as it was read last,
        and its fault is told: a whole file, or the entry of a server."""
        self.file = servers_file_of(self.folder)
        self.servers, self._readable = self._look()
        return self.servers.configuration

    def look(self) -> Configuration:
        """What `read` would give now. Nothing is taken over, and a file that the folder has had since is not looked for."""
        return self._look()[0].configuration

    def _look(self) -> tuple[Servers, dict[Path, Configuration]]:
        """What the files hold now, and as what each counts."""
        folder = self.folder
        environ = self._environ()
        own = self._read(self._own_file, environ, "")
        readable = {self._own_file: own}
        own = replace(own, faults=tuple(map(_as_folder_fault, own.faults)))
        theirs = Configuration()
        if folder is not None and self.file is not None and self.state == "trusted":
            if _same_file(self.file, self._own_file):
                theirs = Configuration(faults=(Diagnostic("folder_file_shared", "configuration"),))
            else:
                theirs = readable[self.file] = self._read(self.file, environ, str(folder))
        place = self._place
        named = {each.name for each in theirs.definitions}
        definitions = (
            *(_of_folder(each, str(folder)) for each in theirs.definitions),
            *(_of_person(each, place, folder) for each in own.definitions if each.name not in named),
        )
        servers = Servers(
            Configuration(definitions, (*theirs.faults, *own.faults), self._own_file, folder),
            theirs.faults,
            tuple(each.name for each in own.definitions if each.name in named),
        )
        return servers, readable

    def file_of(self, definition: ServerDefinition) -> Path:
        """The file that a server's definition stands in."""
        return self._own_file if definition.workspace is None or self.file is None else self.file

    def owner_of(self, file: Path) -> str | None:
        """The folder whose file of servers it is; None: the person's own, or another."""
        return str(self.folder) if self.folder is not None and file == self.file and file != self._own_file else None

    def checked(self, name: str, entry: object, file: Path) -> ServerDefinition:
        """What an entry would be in one of the files that count, as it would run now. Raises AssistantError."""
        owner = self.owner_of(file)
        try:
            definition = definition_of(
                name, entry, self._environ(), base=owner or "", folder=str(file.absolute().parent)
            )
        except Invalid as invalid:
            raise AssistantError.of(_as_folder_fault(invalid.diagnostic(name))) from None
        return _of_person(definition, self._place, self.folder) if owner is None else _of_folder(definition, owner)

    @property
    def _place(self) -> Path | None:
        """Where the person's own servers run. A folder that may bring programs nobody has agreed to is no place for others."""
        return self._default if self.folder is None or self.ignored is not None else self.folder

    def _environ(self) -> Mapping[str, str]:
        return os.environ if self.folder is None else {**os.environ, _VARIABLE: str(self.folder)}

    def _forget_files(self) -> None:
        self._readable = {path: each for path, each in self._readable.items() if path == self._own_file}

    def _read(self, path: Path, environ: Mapping[str, str], base: str) -> Configuration:
        configuration = read_configuration(path, environ, base=base)
        before = self._readable.get(path, Configuration()).definitions
        if not any(fault.code == "configuration_unreadable" for fault in configuration.faults):
            faulty = {fault.server for fault in configuration.faults if fault.code == "configuration_invalid"}
            kept = tuple(each for each in before if each.name in faulty)
            return replace(configuration, definitions=(*configuration.definitions, *kept))
        return replace(configuration, definitions=before)


def servers_file_of(folder: Path | None) -> Path | None:
    """The file of servers that a folder has, as far as can be told without opening it."""
    if folder is None:
        return None
    return next((folder / name for name in FILES if os.path.lexists(folder / name)), None)


def secret_name(folder: str | None, name: str) -> str:
    """Where a secret is kept that a server of a folder's file refers to: such a server gets no secret of the person's own,
    whatever its name is. `name` is where it would be kept for a server of the person's file."""
    return name if folder is None else f"folder:{fingerprint(folder)}:{name}"


def _as_folder_fault(fault: Diagnostic) -> Diagnostic:
    """What a person can do about a reference to the open folder is other than about a variable."""
    if fault.code == "variable_missing" and fault.values.get("variable") == _VARIABLE:
        return replace(fault, code="folder_not_open")
    return fault


def _of_folder(definition: ServerDefinition, folder: str) -> ServerDefinition:
    """A server of the folder's file: its command was written for that folder, and is agreed to for it."""
    cwd = definition.cwd or folder if definition.kind == "stdio" else None
    return _with_folder(replace(definition, workspace=folder, cwd=cwd), folder)


def _of_person(definition: ServerDefinition, place: Path | None, folder: Path | None) -> ServerDefinition:
    """One of the person's own: it goes along from folder to folder, unless its command names a file of the folder."""
    if folder is not None:
        definition = _with_folder(definition, str(folder))
    if definition.kind != "stdio" or definition.cwd is not None or place is None:
        return definition
    if os.path.basename(definition.command) != definition.command and not os.path.isabs(definition.command):
        return replace(definition, cwd=str(place))
    return replace(definition, folder=str(place))


def _with_folder(definition: ServerDefinition, folder: str) -> ServerDefinition:
    """Puts the folder's name into what is resolved only when the server is connected."""
    written = folder.replace("$", "$$")

    def named(values: Mapping[str, str]) -> dict[str, str]:
        return {key: value.replace(f"${{{_VARIABLE}}}", written) for key, value in values.items()}

    return replace(definition, env=named(definition.env), headers=named(definition.headers))


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
