"""The rows of the catalog panel: the item model over entries of any kind, their words, and how a row is drawn.

Used by ``catalog_panel.py`` and ``catalog_details.py``. A row costs nothing until it is seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from desktop.catalog_entries import CatalogEntry, Kind, PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition
from desktop.ui import icons, list_rows, theme
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
        return None


class CatalogDelegate(QStyledItemDelegate):
    """Draws an icon for the kind, the name, and below it the server and the beginning of the description."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        model = index.model()
        entry = model.entry(index) if isinstance(model, CatalogModel) else None
        if not isinstance(model, CatalogModel) or entry is None:
            return
        colors = theme.colors()
        area: QRect = option.rect  # type: ignore[assignment]
        palette: QPalette = option.palette  # type: ignore[assignment]
        state: QStyle.StateFlag = option.state  # type: ignore[assignment]
        direction: Qt.LayoutDirection = option.direction  # type: ignore[attr-defined]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        list_rows.draw_ground(painter, area, state, palette)
        inner = area.adjusted(theme.SPACING, 0, -theme.SPACING, 0)
        upper = QRect(inner.left(), inner.top(), inner.width(), inner.height() // 2)
        size = icons.size()
        mark = QRect(upper.left(), upper.bottom() - size, size, size)
        icons.icon(_ICONS[entry.kind], "muted").paint(painter, QStyle.visualRect(direction, inner, mark))
        upper = upper.adjusted(size + theme.SPACING, 0, 0, 0)
        lower = upper.translated(0, upper.height())
        leading = QStyle.visualAlignment(direction, Qt.AlignmentFlag.AlignLeft)
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        name = label(entry)
        list_rows.draw_line(
            painter,
            QStyle.visualRect(direction, inner, upper),
            leading | Qt.AlignmentFlag.AlignBottom,
            name,
            found_in(name, model.reasons(index)),
        )
        painter.setPen(QColor(colors.muted))
        words = " · ".join(filter(None, (visible_line(entry.server), visible_line(entry.description, _LONGEST))))
        list_rows.draw_line(
            painter, QStyle.visualRect(direction, inner, lower), leading | Qt.AlignmentFlag.AlignTop, words
        )
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        metrics: QFontMetrics = option.fontMetrics  # type: ignore[attr-defined]
        return QSize(80, 2 * metrics.lineSpacing() + 8)
