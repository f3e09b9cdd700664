"""The ZIP file of a bundle: checked, hashed and unpacked within limits, so that nothing in it leaves its folder. Used by
``bundle``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePosixPath

from desktop.host.config_import import unreadable

_LARGEST_FILE = 512 * 1024 * 1024
_LARGEST_UNPACKED = 1024 * 1024 * 1024
_LARGEST_MANIFEST = 1024 * 1024
"""Bytes."""
_MOST_FILES = 50_000
_LONGEST_NAME = 1000
#: Names that are devices on Windows, whatever follows them.
_DEVICE = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")
_UNFIT_IN_NAME = re.compile(r"[\x00-\x1f<>:\"|?*\\]")


def read(file: Path) -> tuple[str, bytes]:
    """The hash of a bundle and its manifest, as it is. Raises AssistantError ``import_unreadable``."""
    with _faults():
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as opened:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
                raise unreadable("it is no regular file")
            if status.st_size > _LARGEST_FILE:
                raise unreadable(f"it is larger than {_LARGEST_FILE // 1024 // 1024} MiB")
            digest = _digest(opened)
            with zipfile.ZipFile(opened) as archive:
                _check(archive)
                if "manifest.json" not in archive.namelist():
                    raise unreadable("it has no manifest.json")
                with archive.open("manifest.json") as manifest:
                    raw = manifest.read(_LARGEST_MANIFEST + 1)
    if len(raw) > _LARGEST_MANIFEST:
        raise unreadable("its manifest is longer than 1 MiB")
    return digest, raw


def unpack(file: Path, digest: str, folder: Path) -> None:
    """Unpacks a bundle of that hash into a folder, which is made; files are the person's alone, programs stay programs.

    Raises AssistantError ``import_unreadable``, and OSError when something can't be written.
    """
    with _faults(), file.open("rb") as opened:
        if _digest(opened) != digest:
            raise unreadable("it has been changed meanwhile")
        with zipfile.ZipFile(opened) as archive:
            _check(archive)
            folder.mkdir(mode=0o700)
            for entry in archive.infolist():
                _extract(archive, entry, folder.joinpath(*PurePosixPath(entry.filename).parts))


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    if entry.is_dir():
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        return
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = 0o700 if (entry.external_attr >> 16) & 0o111 else 0o600
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with archive.open(entry) as source, os.fdopen(handle, "wb") as written:
        shutil.copyfileobj(source, written)


@contextmanager
def _faults() -> Generator[None, None, None]:
    try:
        yield
    except FileNotFoundError:
        raise unreadable("there is no such file") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error):
        raise unreadable("it is no whole ZIP file, or an encrypted one") from None


def _digest(opened: BufferedReader) -> str:
    opened.seek(0)
    digest = hashlib.file_digest(opened, "sha256").hexdigest()
    opened.seek(0)
    return digest


def _check(archive: zipfile.ZipFile) -> None:
    """Raises AssistantError for what would leave the folder, or is too much."""
    entries = archive.infolist()
    if len(entries) > _MOST_FILES:
        raise unreadable(f"it has more than {_MOST_FILES} files")
    if sum(entry.file_size for entry in entries) > _LARGEST_UNPACKED:
        raise unreadable(f"unpacked it is larger than {_LARGEST_UNPACKED // 1024 // 1024} MiB")
    seen: set[str] = set()
    for entry in entries:
        parts = PurePosixPath(entry.filename).parts
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if (
            not parts
            or entry.filename.startswith("/")
            or any(
                part in ("..", ".") or _UNFIT_IN_NAME.search(part) or _DEVICE.match(part) or part.endswith((".", " "))
                for part in parts
            )
            or len(entry.filename) > _LONGEST_NAME
        ):
            raise unreadable("it has a file with a name that leads elsewhere")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise unreadable("it has a link or a device in it")
        folded = entry.filename.rstrip("/").casefold()
        if folded in seen:
            raise unreadable("it has two files of the same name")
        seen.add(folded)
