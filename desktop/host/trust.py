"""Which folders' own servers the person trusts. Used by the workspace; the settings list and revoke what was answered.

A decision holds for the folder and all below it until a folder below has one of its own: a refusal there wins over the trust
in a parent. Folders are known by their canonical path, so a link is what it leads to.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from desktop.errors import AssistantError, os_reason
from desktop.paths import write_private


@dataclass(frozen=True)
class Decision:
    folder: Path
    """Canonical; the one that was decided on."""
    trusted: bool
    until_quit: bool


class Trust:
    def __init__(self, file: Path) -> None:
        """Answers for good are remembered in a private file; of one that can't be read, everything is asked again."""
        self._file = file
        self._kept = _read(file)
        self._until_quit: dict[str, bool] = {}

    @property
    def decisions(self) -> list[Decision]:
        """All that hold, by folder."""
        holding = {**self._kept, **self._until_quit}
        return [Decision(Path(path), holding[path], path in self._until_quit) for path in sorted(holding)]

    def decision(self, folder: Path) -> Decision | None:
        """The one that holds for a canonical folder: its own, or that of the nearest folder above."""
        for each in (folder, *folder.parents):
            path = str(each)
            if path in self._until_quit:
                return Decision(each, self._until_quit[path], until_quit=True)
            if path in self._kept:
                return Decision(each, self._kept[path], until_quit=False)
        return None

    def decide(self, folder: Path, trusted: bool, *, until_quit: bool) -> None:
        """Raises AssistantError ``storage_failed`` when it can't be written; the answer then holds until Deskhand quits."""
        path = str(folder)
        self._until_quit[path] = trusted
        if not until_quit:
            self._kept[path] = trusted
            self._write()
            del self._until_quit[path]

    def revoke(self, folder: Path) -> None:
        """Forgets what was answered for a folder. Raises AssistantError ``storage_failed``; it is forgotten for this run then."""
        self._until_quit.pop(str(folder), None)
        if self._kept.pop(str(folder), None) is not None:
            self._write()

    def _write(self) -> None:
        try:
            write_private(self._file, json.dumps(self._kept, indent=2, sort_keys=True).encode() + b"\n")
        except OSError as error:
            raise AssistantError("storage_failed", operation="storage", reason=os_reason(error)) from error


def _read(file: Path) -> dict[str, bool]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {path: value for path, value in cast("dict[str, object]", content).items() if isinstance(value, bool)}
