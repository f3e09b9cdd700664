"""Fingerprints that are remembered in a private file. Used by the consent to commands and by the memory of protocol eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from desktop.errors import AssistantError, os_reason
from desktop.paths import write_private

_MOST = 1000


class Remembered:
    """A set of fingerprints, read once and written at every change; the oldest are forgotten after the thousandth.

    A file that can't be read is an empty set: whatever was remembered is found out, or asked for, again.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._fingerprints: dict[str, None] = dict.fromkeys(_read(file))

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._fingerprints

    def add(self, fingerprint: str) -> None:
        """Raises AssistantError ``storage_failed`` when the file can't be written; it is then remembered for this run."""
        if fingerprint not in self._fingerprints:
            self._fingerprints[fingerprint] = None
            self._write()

    def discard(self, fingerprint: str) -> None:
        """Raises like `add`."""
        if fingerprint in self._fingerprints:
            del self._fingerprints[fingerprint]
            self._write()

    def _write(self) -> None:
        kept = list(self._fingerprints)[-_MOST:]
        try:
            write_private(self._file, json.dumps(kept, indent=0).encode())
        except OSError as error:
            raise AssistantError("storage_failed", operation="storage", reason=os_reason(error)) from error


def _read(file: Path) -> list[str]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(content, list):
        return []
    return [each for each in cast("list[object]", content) if isinstance(each, str)]
