"""The rows of the catalog panel: the item model over entries of any kind, and their words.

Used by ``catalog_panel.py``, ``catalog_details.py`` and the prompt picker. A row costs nothing until it is seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop.catalog_entries import CatalogEntry, Kind, PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition
from desktop.ui import list_rows, server_icons
from desktop.ui.chat.widgets import plain_tool_tip
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

_Index = QModelIndex | QPersistentModelIndex
_LONGEST = 300
#: A word of a name in any style: ``list_open_items``, ``listOpenItems``.
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[^\W\d_a-z]+|\d+")
_ICONS: dict[Kind, str] = {"tool": "tool", "resource": "resource", "template": "file", "prompt": "prompt"}
#: The order of kinds where entries are not ranked.
_ORDER: dict[Kind, int] = {"tool": 0, "resource": 1, "template": 2, "prompt": 3}


def kind_word(kind: Kind) -> str:
    return {
        "tool": tr("Tool"),
        "resource": tr("Resource"),
        "template": tr("Resource template"),
        "prompt": tr("Prompt"),
    }[kind]


def identifier(entry: CatalogEntry) -> str:
    """What an entry is called by: as the server gave it, so that it can be copied; untrusted."""
    match entry:
        case ToolDefinition():
            return entry.identifier
        case ResourceEntry():
            return entry.uri
        case TemplateEntry():
            return entry.template
        case PromptEntry():
            return f"{entry.server}.{entry.name}"


def label(entry: CatalogEntry) -> str:
    """What an entry is called, on one line."""
    return visible_line(entry.title or entry.name or identifier(entry), _LONGEST)


def key(entry: CatalogEntry) -> tuple[int, str, str]:
    """What makes it the same entry when lists were read anew."""
    return _ORDER[entry.kind], entry.server, identifier(entry)


def ordered(entries: Sequence[CatalogEntry]) -> list[CatalogEntry]:
    """By server, kind and name: for a list that nothing ranks."""
    return sorted(entries, key=lambda each: (each.server, _ORDER[each.kind], each.name.casefold(), each.name))


def found_in(name: str, reasons: Sequence[str]) -> list[tuple[int, int]]:
    """The words of a name, as ranges, for which it was found (`SearchResult.reasons`).

    Told by how they begin, since the search knows a word in more forms than it says.
    """
    searched = [word.casefold() for word, _, fields in (reason.partition(": ") for reason in reasons) if fields]
    beginnings = tuple(word[: max(4, len(word) - 3)] for word in searched)
    return [found.span() for found in _WORD.finditer(name) if beginnings and found[0].casefold().startswith(beginnings)]


class CatalogModel(QAbstractListModel):
    """Entries, each a row, in the order they were given."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: Sequence[CatalogEntry] = ()
        self._reasons: Sequence[Sequence[str]] = ()

    def show_entries(self, entries: Sequence[CatalogEntry], reasons: Sequence[Sequence[str]] = ()) -> None:
        """`reasons` as in `SearchResult`, one an entry, or none at all."""
        self.beginResetModel()
        self._entries = entries
        self._reasons = reasons
        self.endResetModel()

    def entry(self, index: _Index) -> CatalogEntry | None:
        return self._entries[index.row()] if index.isValid() else None

    def reasons(self, index: _Index) -> Sequence[str]:
        """Why an entry was found."""
        return self._reasons[index.row()] if index.isValid() and index.row() < len(self._reasons) else ()

    def index_of(self, wanted: CatalogEntry) -> QModelIndex:
        """Where an entry is now; an invalid index where it isn't."""
        sought = key(wanted)
        for number, entry in enumerate(self._entries):
            if entry is wanted or key(entry) == sought:
                return self.index(number)
        return QModelIndex()

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._entries)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        entry = self.entry(index)
        if entry is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return label(entry)
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tool_tip(
                    "\n".join(filter(None, (identifier(entry), visible_line(entry.description, _LONGEST))))
                )
            case Qt.ItemDataRole.AccessibleTextRole:
                return tr("{name}, {kind} of {server}").format(
                    name=label(entry), kind=kind_word(entry.kind), server=visible_line(entry.server)
                )
            case list_rows.ROW:
                name = label(entry)
                words = " · ".join(
                    filter(None, (visible_line(entry.server), visible_line(entry.description, _LONGEST)))
                )
                picture = server_icons.icon_of(entry.icon) if entry.icon else None
                marked = found_in(name, self.reasons(index))
                return list_rows.Row(_ICONS[entry.kind], name, words, marked=marked, picture=picture)
        return None
