"""Controls of a form that Qt has not: text that grows in the frame of a line edit, a list that the wheel leaves alone."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFontDatabase, QKeyEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import QComboBox, QFrame, QPlainTextEdit, QStyle, QStyleOptionFrame, QWidget

#: Lines of a text shown at once; more scroll.
_MOST_LINES = 12


class Lines(QPlainTextEdit):
    """Text that grows with its lines, in the frame of a line edit. Enter submits and Shift+Enter begins a line, or Ctrl+Enter
    submits; Tab goes on.
    """

    submitted = Signal()

    def __init__(self, parent: QWidget, *, enter_submits: bool = True, fixed: bool = False) -> None:
        super().__init__(parent)
        self._enter_submits = enter_submits
        self._fewest = 1 if enter_submits else 3
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setViewportMargins(2, 2, 2, 2)
        self.viewport().setAutoFillBackground(False)
        if fixed:
            self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        wanted = round(self.document().size().height())
        lines = min(_MOST_LINES, max(self._fewest, wanted))
        bars = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(bars.ScrollBarAsNeeded if wanted > lines else bars.ScrollBarAlwaysOff)
        height = lines * self.fontMetrics().lineSpacing() + 2 * int(self.document().documentMargin()) + 4
        if height != self.minimumHeight():
            self.setFixedHeight(height)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:  # of the widget itself, around the viewport
            option = QStyleOptionFrame()
            option.initFrom(self)
            option.lineWidth = 1  # type: ignore[assignment]
            option.state |= QStyle.StateFlag.State_Sunken  # type: ignore[assignment, operator]
            painter = QPainter(self)
            self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
            painter.end()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            plain = modifiers == Qt.KeyboardModifier.NoModifier
            if modifiers == Qt.KeyboardModifier.ControlModifier or (plain and self._enter_submits):
                self.submitted.emit()
                return
        if event.key() == Qt.Key.Key_Escape:
            event.ignore()
            return
        super().keyPressEvent(event)


class Options(QComboBox):
    """A list that the wheel changes only while it has the focus: a form scrolls under the pointer."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(12)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
