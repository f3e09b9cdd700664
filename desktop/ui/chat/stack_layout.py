"""A column of widgets, each as high as it is at the column's width. Used by the messages and by what they consist of.

Unlike a box layout it never squeezes: while its widget has yet to get the height that one grown in it needs, everything keeps
its place, so that what streams in at the end does not move, and paint anew, what stands above it.
"""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import QLayoutItem, QWidget

from desktop.ui.item_layout import ItemLayout


class StackLayout(ItemLayout):
    def __init__(self, parent: QWidget | None = None, *, spacing: int = 0) -> None:
        super().__init__(parent, spacing)
        self._height: tuple[int, int] | None = None  # for a width

    def insert_widget(self, index: int, widget: QWidget) -> None:
        self.addWidget(widget)
        self._items.insert(index, self._items.pop())

    def heightForWidth(self, width: int) -> int:
        if self._height is None or self._height[0] != width:
            margins = self.contentsMargins()
            inner = width - margins.left() - margins.right()
            heights = [_height(item, inner) for item in self._items if not item.isEmpty()]
            gaps = self.spacing() * max(0, len(heights) - 1)
            self._height = width, sum(heights) + gaps + margins.top() + margins.bottom()
        return self._height[1]

    def sizeHint(self) -> QSize:
        width = max((item.sizeHint().width() for item in self._items if not item.isEmpty()), default=0)
        return self._around(width)

    def minimumSize(self) -> QSize:
        width = max((item.minimumSize().width() for item in self._items if not item.isEmpty()), default=0)
        margins = self.contentsMargins()
        return QSize(width + margins.left() + margins.right(), 0)

    def invalidate(self) -> None:
        self._height = None
        super().invalidate()

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        margins = self.contentsMargins()
        y, width = rect.top() + margins.top(), rect.width() - margins.left() - margins.right()
        for item in self._items:
            if not item.isEmpty():
                height = _height(item, width)
                item.setGeometry(QRect(rect.left() + margins.left(), y, width, height))
                y += height + self.spacing()

    def _around(self, width: int) -> QSize:
        margins = self.contentsMargins()
        width += margins.left() + margins.right()
        return QSize(width, self.heightForWidth(width))


def _height(item: QLayoutItem, width: int) -> int:
    return item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height()
