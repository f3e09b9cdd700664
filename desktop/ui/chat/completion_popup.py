"""What is offered while one writes: a list above the word at the cursor, of commands or of resources. Used by ``composer.py``.

A `Source` has a prefix (``/``, ``@``) and an async function that gets what is written after it, up to the cursor, and returns
`Offer` s, best first::

    popup.add_source(Source("@", self.tr("Resources"), offers))
    popup.add_source(Source("/", self.tr("Commands"), offers, whole_line=True))

Of a source's offers the field shows the first `MOST`. Up and Down choose, Enter and Tab take, Esc closes until another word is
begun; while nothing is offered, every key is the field's own. A source may be slow: what was offered stays until there is
something else, and an answer to what is no longer written is never shown. It may raise AssistantError: then nothing is offered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QKeyEvent,
    QPainter,
    QPalette,
    QTextCursor,
)
from PySide6.QtWidgets import (
    QPlainTextEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
)

from desktop.errors import AssistantError
from desktop.ui import icons, list_rows, tasks, theme
from desktop.ui.chat.widgets import Card, plain_tool_tip

#: Offers that are shown.
MOST = 50
_MOST_ROWS = 8
_WIDEST = 560
#: Characters after a prefix; what is longer is no search.
_LONGEST = 500

_Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing to take."""

    label: str
    """What the row says first; shown as it is, so a server's text comes through ``visible_text``."""
    detail: str = ""
    icon: str = ""
    insert: str = ""
    """What takes the place of the prefix and of what was written after it."""
    take: Callable[[], object] | None = None
    """Called once `insert` is there."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where offers come from."""

    prefix: str
    """One character."""
    name: str
    """Of the list, for screen readers."""
    offers: Callable[[str], Awaitable[Sequence[Offer]]]
    """Gets what is written after the prefix, up to the cursor."""
    whole_line: bool = False
    """The prefix counts only as the very first character, and all of the first line is written after it, spaces too. Otherwise
    it begins a word: at the beginning of the text or after a space."""


class CompletionPopup(Card):
    """The list. It is a part of the field's window, not a window: the keyboard stays in the field."""

    def __init__(self, field: QPlainTextEdit) -> None:
        super().__init__("card", "border", field)
        self._field = field
        self._sources: list[Source] = []
        self._left: tuple[Source, int] | None = None  # the word that Esc was pressed in
        self._wanted: tuple[Source, int, str] | None = None
        self._shown: tuple[Source, int, str] | None = None  # what the offers that are shown were asked for
        self._moved = False  # the person has chosen by the arrows or the mouse
        self._take_first = False  # Enter was pressed before what was written was answered
        self._asking: asyncio.Task[None] | None = None
        self._model = _Offers(self)
        self._view = list_rows.list_view(self._model, _Delegate(), "")
        self._view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._view.entered.connect(self._point_at)
        self._view.clicked.connect(lambda _: self._take())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[theme.SPACING // 2] * 4)
        layout.addWidget(self._view)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        field.installEventFilter(self)
        field.textChanged.connect(self._look)
        field.cursorPositionChanged.connect(self._look)

    def add_source(self, source: Source) -> None:
        self._sources.append(source)

    def refresh(self) -> None:
        """Asks the source anew, since what it would offer has changed."""
        if self._wanted is not None:
            self._ask()

    @property
    def labels(self) -> list[str]:
        """What is offered now; empty while the list is closed."""
        return [offer.label for offer in self._model.offers] if self.isVisible() else []

    def _look(self) -> None:
        """Finds what is written at the cursor, and asks its source."""
        written = self._written()
        if written is None or written[:2] != self._left:
            self._left = None
        if written is None or self._left is not None or not self._field.hasFocus():
            self._close()
        elif written != self._wanted:
            if self._wanted is None or self._wanted[:2] != written[:2]:
                self._close()
            self._wanted = written
            self._take_first = False
            self._ask()

    def _written(self) -> tuple[Source, int, str] | None:
        """The source whose prefix the cursor is behind, where that is, and what is written after it."""
        cursor = self._field.textCursor()
        if cursor.hasSelection():
            return None
        block = cursor.block()
        before = block.text()[: cursor.positionInBlock()]
        for source in self._sources:
            if source.whole_line:
                start = 0 if block.blockNumber() == 0 and before.startswith(source.prefix) else -1
            else:
                start = max(map(before.rfind, (" ", "\t"))) + 1
                start = start if before[start : start + 1] == source.prefix else -1
            if start >= 0 and len(before) - start <= _LONGEST:
                return source, block.position() + start, before[start + 1 :]
        return None

    def _ask(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = tasks.start(self._offer(), on_error=self._field)

    async def _offer(self) -> None:
        while (wanted := self._wanted) is not None:
            try:
                offers = await wanted[0].offers(wanted[2])
            except AssistantError:
                offers = ()
            if wanted == self._wanted:
                self._show(wanted, offers[:MOST])
                return

    def _show(self, wanted: tuple[Source, int, str], offers: Sequence[Offer]) -> None:
        self._shown = wanted
        if not offers or not self._field.isVisible():
            self.hide()
            return
        source = wanted[0]
        shown, chosen = self.isVisible(), self._model.offer(self._view.currentIndex())
        self._model.show_offers(offers)
        row = 0
        if shown and chosen is not None and self._moved:  # what the person went to stays chosen
            row = next((row for row, offer in enumerate(offers) if offer.label == chosen.label), 0)
        self._moved = self._moved and row > 0
        self._view.setAccessibleName(source.name)
        self._view.setCurrentIndex(self._model.index(row))
        self._place()
        self.show()
        self.raise_()
        if self._take_first:
            self._take()
        elif not shown or chosen is None or chosen.label != offers[row].label:
            self._announce()

    def _place(self) -> None:
        """Above the line that the cursor is in, in the window, within the field's width."""
        window = self._field.window()
        if self.parentWidget() is not window:
            self.setParent(window)
        around = 2 * (theme.SPACING // 2)
        line = self._field.cursorRect()
        corner = self._field.viewport().mapTo(window, line.topLeft())
        left = self._field.mapTo(window, QPoint(0, 0)).x()
        width = min(_WIDEST, self._field.width())
        row = self._view.sizeHintForRow(0)
        room = max(row, corner.y() - 2 * theme.SPACING - around)
        rows = min(_MOST_ROWS, self._model.rowCount(), room // row)
        height = rows * row + around
        x = max(left, min(corner.x() - theme.SPACING, left + self._field.width() - width))
        self.setGeometry(x, corner.y() - height - theme.SPACING // 2, width, height)

    def _close(self) -> None:
        self._wanted = self._shown = None
        self._take_first = False
        self.hide()

    def _point_at(self, index: QModelIndex) -> None:
        self._moved = True
        self._view.setCurrentIndex(index)

    def _move(self, step: int) -> None:
        self._moved = True
        count = self._model.rowCount()
        self._view.setCurrentIndex(self._model.index((self._view.currentIndex().row() + step) % count))
        self._announce()

    def _announce(self) -> None:
        """Has a screen reader say what is chosen, while the keyboard stays in the field."""
        text = self._view.currentIndex().data(Qt.ItemDataRole.AccessibleTextRole)
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._field, text))

    def _is_written(self) -> bool:
        """Whether what is chosen is what is written already: then Enter is the field's."""
        offer = self._model.offer(self._view.currentIndex())
        wanted = self._wanted
        if offer is None or wanted is None or offer.take is not None:
            return False
        return offer.insert.strip() == f"{wanted[0].prefix}{wanted[2]}".strip()

    def _take(self) -> None:
        if self._shown != self._wanted:
            self._take_first = True
            return
        offer, wanted = self._model.offer(self._view.currentIndex()), self._wanted
        if offer is None or wanted is None:
            return
        self._close()
        cursor = self._field.textCursor()
        end = cursor.position()
        cursor.setPosition(wanted[1])
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(offer.insert)
        self._field.setTextCursor(cursor)
        self._field.setFocus()
        if offer.take is not None:
            offer.take()

    def _takes_key(self, event: QKeyEvent) -> bool:
        """Does what a key does while the list is open; whether it was one of the list's."""
        key = event.key()
        if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            return False
        match key:
            case Qt.Key.Key_Up | Qt.Key.Key_Down:
                self._move(1 if key == Qt.Key.Key_Down else -1)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if self._is_written():
                self._close()
                return False
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_Tab:
                self._take()
            case Qt.Key.Key_Escape:
                self._left = self._wanted[:2] if self._wanted is not None else None
                self._close()
            case _:
                return False
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.FocusOut:
            self._close()
        elif kind == QEvent.Type.FocusIn:
            self._look()
        elif self.isVisible() and isinstance(event, QKeyEvent):
            if kind == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:
                event.accept()  # nothing else in the window gets it
                return True
            if kind == QEvent.Type.KeyPress:
                return self._takes_key(event)
        return super().eventFilter(watched, event)


class _Offers(QAbstractListModel):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.offers: Sequence[Offer] = ()

    def show_offers(self, offers: Sequence[Offer]) -> None:
        self.beginResetModel()
        self.offers = offers
        self.endResetModel()

    def offer(self, index: _Index) -> Offer | None:
        return self.offers[index.row()] if index.isValid() else None

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.offers)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        offer = self.offer(index)
        if offer is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return offer.label
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join(filter(None, (offer.label, offer.detail)))
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tool_tip("\n".join(filter(None, (offer.label, offer.detail))))
        return None


class _Delegate(QStyledItemDelegate):
    """Draws an offer on one line: icon, label, and muted what it is."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        model = index.model()
        offer = model.offer(index) if isinstance(model, _Offers) else None
        if offer is None:
            return
        area: QRect = option.rect  # type: ignore[assignment]
        palette: QPalette = option.palette  # type: ignore[assignment]
        state: QStyle.StateFlag = option.state  # type: ignore[assignment]
        direction: Qt.LayoutDirection = option.direction  # type: ignore[attr-defined]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        list_rows.draw_ground(painter, area, state & ~QStyle.StateFlag.State_HasFocus, palette)
        inner = area.adjusted(theme.SPACING, 0, -theme.SPACING, 0)
        left = inner.left()
        if offer.icon:
            size = icons.size()
            mark = QRect(QPoint(left, inner.center().y() - size // 2), QSize(size, size))
            icons.icon(offer.icon, "muted").paint(painter, QStyle.visualRect(direction, inner, mark))
            left += size + theme.SPACING
        detail = painter.fontMetrics().horizontalAdvance(offer.detail)
        room = inner.right() - left
        wide = min(painter.fontMetrics().horizontalAdvance(offer.label) + theme.SPACING, room)
        if detail + wide > room:
            wide = max(room - detail, min(wide, round(room * 0.6)))
        label = QRect(left, inner.top(), wide, inner.height())
        rest = QRect(label.right() + theme.SPACING, inner.top(), room - wide - theme.SPACING, inner.height())
        leading = QStyle.visualAlignment(direction, Qt.AlignmentFlag.AlignLeft) | Qt.AlignmentFlag.AlignVCenter
        painter.setPen(palette.color(QPalette.ColorRole.WindowText))
        list_rows.draw_line(painter, QStyle.visualRect(direction, inner, label), leading, offer.label)
        painter.setPen(QColor(theme.colors().muted))
        list_rows.draw_line(painter, QStyle.visualRect(direction, inner, rest), leading, offer.detail)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(80, max(option.fontMetrics.lineSpacing(), icons.size()) + theme.SPACING)  # type: ignore[attr-defined]
