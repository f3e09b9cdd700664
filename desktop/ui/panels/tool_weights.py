"""About how many tokens the tools of each server take together, kept up to date. Used by the servers panel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from desktop.assistant import toolbox
from desktop.catalog_entries import ToolDefinition
from desktop.ui import tasks

if TYPE_CHECKING:
    from desktop.core import Core

#: Seconds in which changes of the catalog gather.
_GATHERED = 0.05


class ToolWeights(QObject):
    """Signals:
    changed(str): What the tools of a server weigh may have changed.
    """

    changed = Signal(str)

    def __init__(self, core: Core, parent: QWidget) -> None:
        super().__init__(parent)
        self._core = core
        self._widget = parent
        self._weights: dict[str, int] = {}
        self._unweighed: set[str] = set()
        self._weighing: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """Begins to follow the catalog, which must be there."""
        self._core.catalog.changed.connect(self._weigh_soon)
        for name in self._core.host.connections:
            self._weigh_soon(name)

    def of(self, server: str) -> int:
        """Tokens; 0 where no tool is known."""
        return self._weights.get(server, 0)

    def _weigh_soon(self, name: str) -> None:
        self._unweighed.add(name)
        if self._weighing is None or self._weighing.done():
            self._weighing = tasks.start(self._weigh(), on_error=self._widget)

    async def _weigh(self) -> None:
        """In a thread, for there may be thousands."""
        while self._unweighed:
            await asyncio.sleep(_GATHERED)
            names, self._unweighed = self._unweighed, set()
            tools: dict[str, list[ToolDefinition]] = {name: [] for name in names}
            for entry in self._core.catalog.entries():
                if isinstance(entry, ToolDefinition) and entry.server in names:
                    tools[entry.server].append(entry)
            self._weights |= await asyncio.to_thread(_weighed, tools)
            for name in names:
                self.changed.emit(name)


def _weighed(tools: Mapping[str, Sequence[ToolDefinition]]) -> dict[str, int]:
    return {name: sum(map(toolbox.weight, each)) for name, each in tools.items()}
