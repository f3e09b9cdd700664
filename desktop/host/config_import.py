"""Servers of other programs: their files found, read once, and previewed. Used by the import wizard.

Nothing is started, connected or written by looking. What was read is what is saved: a file that changes meanwhile makes no
difference. ``foreign_document`` knows the forms, ``servers_file`` writes.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from desktop.errors import AssistantError, os_reason
from desktop.host.foreign_document import LONGEST_TEXT, NO_SERVERS, Group, NotUnderstood, groups_of

#: Files that belong to a folder, with ``${workspaceFolder}`` for it.
_IN_A_FOLDER = frozenset({".vscode", ".cursor"})


@dataclass(frozen=True)
class Source:
    """What was read of a file.

    Attributes:
        file: None for what was pasted.
        program: Whose it is, "" where that is not known.
        groups: All with servers in them.
        fault: Why it can't be read, a text of ours; "" where it could be.
    """

    file: Path | None
    program: str
    groups: tuple[Group, ...]
    fault: str = ""

    @property
    def count(self) -> int:
        return sum(len(each.candidates) for each in self.groups)


def read_source(
    file: Path, program: str = "", environ: Mapping[str, str] = os.environ, *, own_file: Path | None = None
) -> Source:
    """Reads the servers of another program's file, a regular one of 1 MiB at most; links are followed.

    `own_file` is Deskhand's, which is no source. Raises AssistantError ``import_unreadable``.
    """
    if own_file is not None and _same_file(file, own_file):
        raise unreadable("it is Deskhand's own file")
    try:
        text = read_regular(file, LONGEST_TEXT).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise unreadable("it is not UTF-8 text") from None
    folder = file.absolute().parent
    folder = folder.parent if folder.name in _IN_A_FOLDER else folder if file.name == ".mcp.json" else None
    if folder == Path.home():
        folder = None  # the program's own file in the person's home counts for all folders
    try:
        return Source(file, program, tuple(groups_of(text, folder=folder, environ=environ)))
    except NotUnderstood as reason:
        raise unreadable(str(reason)) from None


def read_regular(file: Path, longest: int) -> bytes:
    """The bytes of a regular file. Never waits, as the opening of a pipe would. Raises AssistantError ``import_unreadable``."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as opened:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise unreadable("it is no regular file")
            content = opened.read(longest + 1)
    except FileNotFoundError:
        raise unreadable("there is no such file") from None
    except (OSError, ValueError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "its name is not valid"
        raise unreadable(reason) from None
    if len(content) > longest:
        raise unreadable(f"it is longer than {longest // 1024 // 1024} MiB")
    return content


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def unreadable(reason: str) -> AssistantError:
    return AssistantError("import_unreadable", operation="configuration", reason=reason)


def find_sources(environ: Mapping[str, str] = os.environ) -> list[Source]:
    """Files with servers where the programs that are known keep them, also those that can't be read."""
    found: list[Source] = []
    for program, file in known_places(environ):
        if not os.path.isfile(file):
            continue
        try:
            found.append(read_source(file, program, environ))
        except AssistantError as error:
            fault = str(error.diagnostic.values["reason"])
            if fault != NO_SERVERS:
                found.append(Source(file, program, (), fault))
    return found


def known_places(
    environ: Mapping[str, str] = os.environ, *, platform: str = sys.platform, home: Path | None = None
) -> Iterator[tuple[str, Path]]:
    """Where programs keep their servers on a system, each with its program's name; most of the files are not there."""
    home = home or Path.home()
    if platform == "win32":
        settings = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        goose = settings / "Block" / "goose" / "config"
        zed = settings / "Zed"
    elif platform == "darwin":
        settings = home / "Library" / "Application Support"
        goose, zed = home / ".config" / "goose", home / ".config" / "zed"
    else:
        settings = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        goose, zed = settings / "goose", settings / "zed"
    codex = Path(environ.get("CODEX_HOME") or home / ".codex")
    yield "Claude Desktop", settings / "Claude" / "claude_desktop_config.json"
    claude = environ.get("CLAUDE_CONFIG_DIR")
    yield "Claude Code", Path(claude) / ".claude.json" if claude else home / ".claude.json"
    yield "Cursor", home / ".cursor" / "mcp.json"
    for name, folder in (("VS Code", "Code"), ("VS Code Insiders", "Code - Insiders"), ("VSCodium", "VSCodium")):
        yield name, settings / folder / "User" / "mcp.json"
        yield name, settings / folder / "User" / "settings.json"
    yield "Codex", codex / "config.toml"
    yield "LM Studio", home / ".lmstudio" / "mcp.json"
    yield "Goose", goose / "config.yaml"
    yield "Windsurf", home / ".codeium" / "windsurf" / "mcp_config.json"
    yield "Zed", zed / "settings.json"
