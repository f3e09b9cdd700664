"""Servers' tools as they were listed last, kept on disk for a day so that a search needs no server. Used by the catalog.

A file a server, named by the identity of its definition: one that is reached otherwise is another server. It holds what the
server itself said of its tools and the definition's filters, and nothing else. Whatever is wrong with a file, it counts as none.
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from mcp_types import Tool

from desktop.errors import AssistantError, os_reason
from desktop.host.admission import Admitted, admit_tools
from desktop.host.server_config import ServerDefinition
from desktop.paths import private_folder, write_private

LIFETIME = 24 * 3600.0
"""Seconds, by the file's time."""
_LARGEST = 4 * 1024 * 1024
"""Bytes."""
_MOST_TOOLS = 10_000
_KEPT = {"name", "title", "description", "input_schema", "output_schema", "annotations"}


class ToolCache:
    """The files of all servers, in one private folder. Its methods take time: they are for threads, several at once."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` tells seconds as the times of files do. Nothing is made before something is kept."""
        self.clock = clock
        self._folder = folder
        self._lock = threading.Lock()

    def read(self, definition: ServerDefinition) -> tuple[Admitted, float] | None:
        """A server's tools, admitted anew as its definition is now, and their age in seconds; None where none can be used."""
        file = self._file(definition)
        try:
            content, age = self._content(file)
            kept = cast("dict[str, Any]", json.loads(content))
            is_old = kept["lifetime"] is not None and age >= kept["lifetime"]
            if is_old or kept["filters"] != _filters(definition) or len(kept["tools"]) > _MOST_TOOLS:
                return None
            tools = [Tool.model_validate(each) for each in kept["tools"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return admit_tools(definition, [tool for tool in tools if definition.offers(tool.name)]), age

    def write(
        self,
        definition: ServerDefinition,
        tools: Sequence[Tool],
        lifetime: float | None,
        is_current: Callable[[], bool],
    ) -> None:
        """Keeps a server's tools as they were listed, for `lifetime` seconds where that is less than a day.

        More than 4 MiB or 10,000 are not kept, nor are tools of which `is_current` says that they have changed; it is asked when
        nothing can come between any more.

        Raises AssistantError ``storage_failed``.
        """
        try:
            listed = [tool.model_dump(mode="json", by_alias=True, include=_KEPT, exclude_none=True) for tool in tools]
            content = json.dumps({"filters": _filters(definition), "lifetime": lifetime, "tools": listed}).encode()
        except (ValueError, RecursionError):  # what JSON has no form for: it is listed each time
            return
        with self._lock:
            if not is_current() or len(content) > _LARGEST or len(tools) > _MOST_TOOLS:
                return
            try:
                file = private_folder(self._folder) / self._file(definition).name
                file.unlink(missing_ok=True)  # what was there may be a link, or readable by others
                write_private(file, content)
            except OSError as error:
                server, reason = definition.name, os_reason(error)
                raise AssistantError("storage_failed", operation="storage", server=server, reason=reason) from error

    def remove(self, definition: ServerDefinition) -> None:
        """Forgets a server's tools; a file that can't be removed is too old after a day."""
        with self._lock, suppress(OSError):
            self._file(definition).unlink()

    def _file(self, definition: ServerDefinition) -> Path:
        return self._folder / f"{definition.identity}.json"

    def _content(self, file: Path) -> tuple[bytes, float]:
        """A file's bytes and age. Raises OSError, and ValueError for one that is no file of ours, too large or too old."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(file, flags), "rb") as opened:
            status = os.fstat(opened.fileno())
            age = self.clock() - status.st_mtime
            ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            if not stat.S_ISREG(status.st_mode) or not ours or status.st_size > _LARGEST or not 0 <= age < LIFETIME:
                raise ValueError("not a file to use")
            return opened.read(_LARGEST), age


def _filters(definition: ServerDefinition) -> list[Any]:
    """What was let through when the tools were listed: with other filters, others may be missing."""
    include = definition.include_tools
    return [None if include is None else list(include), list(definition.exclude_tools)]
