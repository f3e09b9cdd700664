"""A layout that puts widgets side by side and begins a new line where they don't fit: buttons in a narrow panel."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtWidgets import QWidget

from desktop.ui import theme
from desktop.ui.item_layout import ItemLayout


class FlowLayout(ItemLayout):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, theme.SPACING)

    def _arrange(self, rect: QRect, *, move: bool) -> int:
        """Places the items in `rect` and returns the height they take."""
        x, y, line_height = 0, 0, 0
        parent: QWidget | None = self.parentWidget()
        right_to_left = parent is not None and parent.isRightToLeft()
        for item in self._items:
            if item.isEmpty():
                continue
            size = item.sizeHint().boundedTo(QSize(rect.width(), item.sizeHint().height()))
            if x and x + size.width() > rect.width():
                x, y, line_height = 0, y + line_height + self.spacing(), 0
            if move:
                left = rect.right() + 1 - x - size.width() if right_to_left else rect.x() + x
                item.setGeometry(QRect(QPoint(left, rect.y() + y), size))
            x += size.width() + self.spacing()
            line_height = max(line_height, size.height())
        return y + line_height

    def heightForWidth(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), move=False)

    def sizeHint(self) -> QSize:
        hints = [item.sizeHint() for item in self._items if not item.isEmpty()]
        width = sum(hint.width() for hint in hints) + self.spacing() * max(0, len(hints) - 1)
        return QSize(width, max((hint.height() for hint in hints), default=0))

    def minimumSize(self) -> QSize:
        minimums = [item.minimumSize() for item in self._items if not item.isEmpty()]
        return QSize(
            max((size.width() for size in minimums), default=0), max((size.height() for size in minimums), default=0)
        )

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._arrange(rect, move=True)
