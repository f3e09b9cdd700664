"""One edit of a file at a time, in this program and in others of Deskhand's. Used by the servers' file."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from desktop.errors import AssistantError

if sys.platform != "win32":
    import fcntl

#: Seconds for another program's edit, which takes some milliseconds.
_LONGEST_WAIT = 5.0
_PAUSE = 0.01
_EDITING = threading.Lock()


@contextmanager
def locked(path: Path) -> Generator[None, None, None]:
    """Keeps other edits away from a file, by whichever path they come: those of other threads, and where a folder can be locked
    those of other programs.

    The folder that holds the file is locked: the file itself is replaced, and a file for the lock would be left behind. Raises
    AssistantError ``storage_failed`` when another program holds the lock for long. Blocks: for a thread.
    """
    with _EDITING, ExitStack() as stack:
        if sys.platform != "win32":
            with suppress(OSError):  # there is no such folder yet, or its file system has no locks
                folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
                stack.callback(os.close, folder)
                deadline = time.monotonic() + _LONGEST_WAIT
                while not _try_lock(folder):
                    if time.monotonic() > deadline:
                        reason = "another program is changing it"
                        raise AssistantError("storage_failed", operation="configuration", reason=reason)
                    time.sleep(_PAUSE)
        yield


def _try_lock(folder: int) -> bool:
    """Raises OSError where the file system has no locks."""
    if sys.platform == "win32":
        raise NotImplementedError
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
