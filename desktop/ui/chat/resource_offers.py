"""The resources that ``@`` offers in the composer: those of all servers, searched as the catalog does. For ``chat_pane.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from desktop.assistant.attachments import ResourceSource
from desktop.catalog_entries import CatalogEntry, Kind, ResourceEntry, TemplateEntry
from desktop.errors import AssistantError
from desktop.ui import tasks
from desktop.ui.chat.completion_popup import MOST, Offer, Source
from desktop.ui.dialogs.template_form import TemplateForm
from desktop.ui.panels.catalog_rows import identifier, label, ordered
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core

#: Seconds after which what servers offer is asked for again; the catalog answers from what it has where that is fresh.
_ASKED_EVERY = 60.0
_KINDS: tuple[Kind, ...] = ("resource", "template")


class ResourceOffers(QObject):
    """Attributes:
    source: For the composer's completions.

    Signals:
        chosen(object): A resource is to be attached, a `ResourceSource`.
        changed: More is known than when it was offered last.
    """

    chosen = Signal(object)
    changed = Signal()

    def __init__(self, core: Core, parent: QWidget) -> None:
        super().__init__(parent)
        self._core = core
        self._parent = parent
        self._asked = -_ASKED_EVERY
        self.source = Source("@", self.tr("Resources"), self._offers)

    async def _offers(self, written: str) -> Sequence[Offer]:
        await self._core.ready()
        self._ask_servers()
        catalog = self._core.catalog
        query = written.strip()
        found = await asyncio.to_thread(_named, catalog.entries(), query)
        if query:
            ranked = (await catalog.search_known(query, kind="resources", limit=MOST)).candidates
            found += [each for each in ranked if each not in found]
        return [self._offer(each) for each in found if isinstance(each, ResourceEntry | TemplateEntry)]

    def _offer(self, entry: ResourceEntry | TemplateEntry) -> Offer:
        detail = f"{visible_line(entry.server, 60)} · {visible_line(identifier(entry), 200)}"
        is_template = isinstance(entry, TemplateEntry)
        return Offer(label(entry), detail, "file" if is_template else "resource", take=partial(self.take, entry))

    def take(self, entry: ResourceEntry | TemplateEntry) -> None:
        """Chooses a resource; a template is filled in first."""
        if isinstance(entry, ResourceEntry):
            self.chosen.emit(ResourceSource(entry.server, entry.uri, entry.title or entry.name, entry.size))
        else:
            tasks.start(self._fill_in(entry), on_error=self._window)

    async def _fill_in(self, entry: TemplateEntry) -> None:
        dialog = TemplateForm(self._core, entry, self._window)
        if await tasks.opened(dialog) and dialog.uri:
            self.chosen.emit(ResourceSource(entry.server, dialog.uri, dialog.uri))

    @property
    def _window(self) -> QWidget:
        return self._parent.window()

    def _ask_servers(self) -> None:
        """Has servers list their resources, where that is not known already: whoever writes the prefix looks for one."""
        now = asyncio.get_running_loop().time()
        if now - self._asked >= _ASKED_EVERY:
            self._asked = now
            tasks.start(self._list(), on_error=self._window)

    async def _list(self) -> None:
        asked = [self._listed(each.name, kind) for each in self._core.catalog.servers() for kind in _KINDS]
        await asyncio.gather(*asked)
        self.changed.emit()

    async def _listed(self, server: str, kind: Kind) -> None:
        try:
            await self._core.catalog.listed(server, kind)
        except AssistantError:
            return  # the servers panel says why
        self.changed.emit()


def _named(entries: Sequence[CatalogEntry], beginning: str) -> list[CatalogEntry]:
    """The first of the resources and templates whose name begins so: the search waits for a word that tells something."""
    sought = beginning.casefold()
    resources = [each for each in entries if each.kind in _KINDS]
    return ordered([each for each in resources if (each.title or each.name).casefold().startswith(sought)])[:MOST]
