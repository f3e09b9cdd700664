"""The person's settings: one file, ``settings.json``, read once and written at every change.

Used by the window, the command line and whoever a setting concerns. To add a setting, add a field here and a control in
``ui/dialogs/settings_dialog.py``. Keys of models are not here but in the keyring (``credentials.py``).
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from desktop.paths import write_private
from desktop.signals import Signal

ColorScheme = Literal["system", "light", "dark"]
FolderPolicy = Literal["ask", "always", "never"]


@dataclass(slots=True)
class Values:
    """Each setting with its default; a value of another type in the file is ignored, an unknown key is kept."""

    model: str = ""
    """The chosen model's litellm name; empty: Guide."""
    api_base: str = ""
    recent_models: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """Models chosen before, newest first: ``{"name": …, "api_base": …}``."""
    color_scheme: str = "system"
    font_size: int = 0
    """Points; 0: the platform's."""
    tool_calls_per_turn: int = 50
    notifications_paused: bool = False
    close_to_tray: bool = True
    """Closing the window hides it where there is a tray, instead of quitting."""
    told_of_tray: bool = False
    """The person knows that a closed window is in the tray."""
    folder: str = ""
    """The open folder; empty: none."""
    recent_folders: list[str] = field(default_factory=list[str])
    """Folders opened before, newest first."""
    folder_policy: str = "ask"
    """Whether the servers that a folder brings are used where nothing was answered for it: a `FolderPolicy`."""
    window_geometry: str = ""
    """Base64 of Qt's own form."""
    window_state: str = ""
    side_panes: list[str] = field(default_factory=lambda: ["panels", "conversations"])
    """Those that are shown, the one that goes first where there is room for one only last."""


class Settings:
    """The settings and the file they live in.

    Attributes:
        values: The present values; change them through `change` alone.
        changed: Emitted after a change, with the names of the changed fields.
        fault: Why the file could not be read, or None. Such a file is never overwritten.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.values = Values()
        self.changed: Signal[frozenset[str]] = Signal()
        self.fault: str | None = None
        self._unknown: dict[str, Any] = {}
        self._read()

    def change(self, **changes: Any) -> None:
        """Sets fields and writes the file. Raises OSError when it can't be written; the change then holds for this run."""
        changed = frozenset(name for name, value in changes.items() if getattr(self.values, name) != value)
        if not changed:
            return
        for name in changed:
            setattr(self.values, name, changes[name])
        try:
            if self.fault is None:
                content = self._unknown | dataclasses.asdict(self.values)
                write_private(self.file, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
        finally:
            self.changed.emit(changed)

    def _read(self) -> None:
        try:
            content = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            self.fault = type(error).__name__
            return
        if not isinstance(content, dict):
            self.fault = "not an object"
            return
        known = {field.name: type(getattr(self.values, field.name)) for field in dataclasses.fields(Values)}
        for name, value in content.items():
            if name not in known:
                self._unknown[name] = value
            elif type(value) is known[name]:
                setattr(self.values, name, value)
        if self.values.color_scheme not in get_args(ColorScheme):
            self.values.color_scheme = "system"
        if self.values.folder_policy not in get_args(FolderPolicy):
            self.values.folder_policy = "ask"
