"""Files that leave a conversation, saved where the person says, and files that they choose to attach.

Used by images, by the tool-call card and by the composer. A name from a server never becomes a path.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

from PySide6.QtCore import QDir, QStandardPaths
from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from desktop.errors import AssistantError, os_reason
from desktop.ui import tasks
from desktop.ui.messages import tr
from desktop.visible_text import plain

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
_LONGEST_NAME = 80


def safe_name(name: str, suffix: str) -> str:
    """A file name that is nothing but a name on every system: letters, digits, ``-``, ``_``, then the suffix."""
    stem = re.sub(r"[^\w-]+", "_", plain(name[:_LONGEST_NAME])).strip("_")
    return f"{'file' if not stem or _RESERVED.fullmatch(stem) else stem}{suffix}"


async def save_as(content: bytes | Path, name: str, parent: QWidget) -> bool:
    """Asks where to, and writes bytes or copies a file; whether the person went through with it.

    Raises AssistantError ``result_gone`` when the file to copy is gone, ``storage_failed`` when it can't be written.
    """
    dialog = QFileDialog(parent, tr("Save as"))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    folders = QStandardPaths.standardLocations(QStandardPaths.StandardLocation.DownloadLocation)
    dialog.setDirectory(folders[0] if folders and QDir(folders[0]).exists() else QDir.homePath())
    dialog.selectFile(name)
    if await tasks.opened(dialog) != QDialog.DialogCode.Accepted:
        return False
    await asyncio.to_thread(_write, content, Path(dialog.selectedFiles()[0]))
    return True


async def choose(parent: QWidget) -> list[Path]:
    """Asks for files to attach; none where the person gives up."""
    dialog = QFileDialog(parent, tr("Attach files"))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.setDirectory(QDir.homePath())
    if await tasks.opened(dialog) != QDialog.DialogCode.Accepted:
        return []
    return [Path(each) for each in dialog.selectedFiles()]


def _write(content: bytes | Path, target: Path) -> None:
    if isinstance(content, Path) and not content.is_file():
        raise AssistantError("result_gone", operation="storage")
    try:
        if isinstance(content, Path):
            shutil.copyfile(content, target)
        else:
            target.write_bytes(content)
    except OSError as error:
        raise AssistantError("storage_failed", operation="storage", reason=os_reason(error)) from error
