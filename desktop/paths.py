"""Where Deskhand keeps its files, and the two ways a private file is made. Used by whatever reads or writes one.

Folders are the platform's (``platformdirs``); ``DESKHAND_HOME`` puts everything under one folder.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

NAME = "deskhand"


@dataclass(frozen=True, slots=True)
class Paths:
    config: Path
    """``mcp.json`` and ``settings.json``."""
    data: Path
    """``history.db``."""
    cache: Path
    logs: Path
    results: Path
    """Spilled results: one folder a conversation, private."""

    @classmethod
    def for_user(cls) -> Paths:
        """The folders of the person who runs Deskhand; none is created yet."""
        if home := os.environ.get("DESKHAND_HOME"):
            root = Path(home).expanduser().absolute()
            return cls(root / "config", root / "data", root / "cache", root / "logs", root / "results")
        return cls(
            Path(platformdirs.user_config_dir(NAME, appauthor=False)),
            Path(platformdirs.user_data_dir(NAME, appauthor=False)),
            Path(platformdirs.user_cache_dir(NAME, appauthor=False)),
            Path(platformdirs.user_log_dir(NAME, appauthor=False)),
            # One folder directly in the shared temporary one: whose it is can then be told from the folder itself.
            Path(tempfile.gettempdir()) / f"{NAME}-results-{os.getuid() if hasattr(os, 'getuid') else os.getlogin()}",
        )

    @property
    def servers_file(self) -> Path:
        return self.config / "mcp.json"

    @property
    def settings_file(self) -> Path:
        return self.config / "settings.json"

    @property
    def history_file(self) -> Path:
        return self.data / "history.db"


def private_folder(folder: Path) -> Path:
    """Makes a folder (and its parents) that only its owner may enter, and returns it.

    Raises OSError when it can't be made, and PermissionError when another user owns it or it is a link (laid in a shared
    temporary folder to catch our files).
    """
    if not folder.parent.exists():
        private_folder(folder.parent)
    folder.mkdir(exist_ok=True, mode=0o700)
    if hasattr(os, "getuid"):
        status = folder.lstat()
        if status.st_uid != os.getuid() or stat.S_ISLNK(status.st_mode):
            raise PermissionError(errno.EPERM, "the folder belongs to another user or is a link", str(folder))
        if status.st_mode & 0o077:
            folder.chmod(0o700)
    return folder


def write_private(path: Path, content: bytes) -> None:
    """Replaces a file's content atomically; a new file is readable by its owner alone, an old one keeps its mode.

    A symbolic link is followed, so that a file kept elsewhere stays there. Raises OSError; then the old file is as it was.
    """
    path = path.resolve()
    if not path.parent.exists():
        private_folder(path.parent)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # exclusive, 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
