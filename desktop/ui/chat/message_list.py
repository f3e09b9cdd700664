"""The messages of a conversation: the newest as widgets, older ones when they are asked for. Used by ``chat_pane.py``.

What changed is drawn at most every 33 ms, and seldomer where drawing takes long. The view follows the end only while it is
there; otherwise what is being read stays where it is, whatever comes, loads or unfolds above it.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QScrollBar, QWidget

from desktop.assistant.conversation import Conversation, Message
from desktop.ui import theme
from desktop.ui.chat.message_parts import Surroundings
from desktop.ui.chat.message_widget import MessageWidget
from desktop.ui.chat.stack_layout import StackLayout
from desktop.ui.chat.widgets import RoundButton, SlimScrollBars, discard, flat_button

#: Messages that are widgets at first, and how many more are loaded at a time.
_NEWEST = 100
_MORE = 50
#: Milliseconds between two drawings, and for building widgets before Qt gets its turn.
_INTERVAL = 33
_SLICE = 4
#: Pixels: the widest column, its least margin, and how near the end is the end.
_WIDEST = 800
_MARGIN = 16
_NEAR = 24


class MessageList(QScrollArea):
    """Shows one conversation at a time.

    Signals:
        grown: Messages were drawn or their size changed.
    """

    grown = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._messages: list[Message] = []
        self._surroundings: Surroundings | None = None
        self._widgets: list[MessageWidget] = []  # of the last of the messages
        self._to_load = 0
        self._dirty: dict[str, Message] = {}
        self._follows = True
        self._anchor: tuple[QWidget, int] | None = None
        self._adjusting = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click in it leaves the focus where the person writes
        self.setAccessibleName(self.tr("Messages"))
        self.viewport().setBackgroundRole(QPalette.ColorRole.Base)
        # Its place is kept, and the column's size is set here: Qt's own way would size it again within its resizing, without end
        # where heights follow from widths and a bar that comes takes some of the width.
        self.setVerticalScrollBar(_Bar())
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        SlimScrollBars(self)
        self._column = _Column()
        self._column.layout_changed.connect(self._fit_column)
        self._layout = StackLayout(self._column, spacing=2 * theme.SPACING)
        self._earlier = flat_button("up", self.tr("Show earlier messages"), text=self.tr("Show earlier messages"))
        self._earlier.clicked.connect(self.load_earlier)
        self._earlier.hide()
        self._layout.addWidget(self._earlier)
        self.setWidget(self._column)
        self._to_end = RoundButton(34, quiet=True, parent=self)
        self._to_end.show_action("down", self.tr("Jump to the end"))
        self._to_end.clicked.connect(self.follow)
        self._to_end.hide()
        self._draw_timer = QTimer(self, singleShot=True)
        self._draw_timer.timeout.connect(self._draw)
        self._load_timer = QTimer(self, singleShot=True, interval=_SLICE)  # the other half is everybody else's
        self._load_timer.timeout.connect(self._load_slice)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)

    def show_conversation(self, conversation: Conversation | None, surroundings: Surroundings | None) -> None:
        """Shows a conversation from its end; None: nothing."""
        self._load_timer.stop()
        self._draw_timer.stop()
        self._dirty.clear()
        self._anchor = None
        for widget in self._widgets:
            discard(widget)
        self._widgets = []
        self._messages = conversation.messages if conversation is not None else []
        self._surroundings = surroundings
        self._to_load = min(_NEWEST, len(self._messages))
        self._set_follows(True)
        self._load_slice()

    def add(self, message: Message) -> None:
        """Shows a message that was added to the conversation."""
        if self.last is not None and self.last.message is message:  # shown with the others meanwhile
            return
        if message.role == "assistant" and self.last is not None:
            self.last.set_ends_answer(False)
        widget = self._make(len(self._messages) - 1, message)
        self._widgets.append(widget)
        self._layout.addWidget(widget)
        if self._follows and len(self._widgets) > _NEWEST + _MORE:
            for old in self._widgets[:_MORE]:
                discard(old)
            del self._widgets[:_MORE]
            self._show_earlier_button()
        self.grown.emit()

    def touch(self, message: Message) -> None:
        """A message changed: it is drawn anew soon."""
        self._dirty[message.id] = message
        if not self._draw_timer.isActive():
            self._draw_timer.start(_INTERVAL)

    def draw_now(self) -> None:
        """Draws what has changed without waiting."""
        self._draw_timer.stop()
        self._draw()

    def follow(self) -> None:
        """Goes to the end, and stays there."""
        self._set_follows(True)
        self._to_the_end()

    def load_earlier(self) -> None:
        """Loads older messages, above what is shown."""
        if not self._to_load:
            self._to_load = min(_MORE, len(self._messages) - len(self._widgets))
            self._load_timer.start()

    def page(self, direction: int) -> None:
        """Scrolls by a page: 1 down, -1 up."""
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + direction * bar.pageStep())

    def show_widget(self, widget: QWidget) -> None:
        """Scrolls so that a card is in view."""
        self._bring_into_view(widget, 4 * theme.SPACING)

    def places(self) -> list[QWidget]:
        """What is in the list, in the order in which it is seen."""
        return [self._earlier, *self._widgets, self._to_end]

    def keep_in_view(self, widget: QWidget) -> None:
        """Scrolls to something in the list that got the focus."""
        if self._column.isAncestorOf(widget):
            self._bring_into_view(widget, 2 * theme.SPACING)

    def in_view(self, widget: QWidget) -> bool:
        """Whether some of a card's lower end can be seen."""
        bottom = widget.mapTo(self.viewport(), QPoint(0, widget.height())).y()
        return 0 < bottom <= self.viewport().height() + widget.height() // 2

    def content_width(self) -> int:
        """Pixels from one side of the column's content to the other."""
        return self._column.width() - self._layout.contentsMargins().left() - self._layout.contentsMargins().right()

    @property
    def last(self) -> MessageWidget | None:
        return self._widgets[-1] if self._widgets else None

    def _load_slice(self) -> None:
        """Builds widgets from the newest on, as long as that takes no noticeable time."""
        started = time.monotonic()
        while self._to_load and (time.monotonic() - started) * 1000 < _SLICE:
            index = len(self._messages) - len(self._widgets) - 1
            widget = self._make(index, self._messages[index])
            self._widgets.insert(0, widget)
            self._layout.insert_widget(1, widget)
            widget.show()  # a layout shows what it was given only later: until then it has no height
            self._to_load -= 1
        self._show_earlier_button()
        self._fit_column()  # before anything is painted, so that what is read stays where it is
        self.grown.emit()
        if self._to_load:
            self._load_timer.start()

    def _make(self, index: int, message: Message) -> MessageWidget:
        assert self._surroundings is not None, "messages come with their surroundings"
        before = self._messages[index - 1] if index > 0 else None
        with_name = before is None or before.role == "user" or before.model != message.model
        ends_answer = index + 1 == len(self._messages) or self._messages[index + 1].role == "user"
        return MessageWidget(
            message, self._surroundings, with_name=with_name, ends_answer=ends_answer, parent=self._column
        )

    def _draw(self) -> None:
        started = time.monotonic()
        for widget in reversed(self._widgets):
            if self._dirty.pop(widget.message.id, None) is not None:
                widget.refresh()
            if not self._dirty:
                break
        self._dirty.clear()  # what is not shown is drawn when it is loaded
        took = (time.monotonic() - started) * 1000
        if took > _INTERVAL / 4:  # leave three quarters of the time to everything else
            self._draw_timer.start(round(4 * took))
        self.grown.emit()

    def _show_earlier_button(self) -> None:
        self._earlier.setVisible(len(self._widgets) + self._to_load < len(self._messages))

    def _bring_into_view(self, widget: QWidget, margin: int) -> None:
        """What is at the end keeps the view there: what comes of it is wanted, too."""
        self._set_follows(False)
        self.ensureWidgetVisible(widget, 0, margin)
        self._scrolled(self.verticalScrollBar().value())

    def _set_follows(self, follows: bool) -> None:
        self._follows = follows
        self._to_end.setVisible(not follows)

    def _scrolled(self, value: int) -> None:
        """The person scrolled, or the content did."""
        if self._adjusting:
            return
        bar = self.verticalScrollBar()
        self._set_follows(value >= bar.maximum() - _NEAR)
        self._take_anchor()
        if value <= bar.minimum() + _NEAR and self._earlier.isVisible():
            self.load_earlier()

    def _take_anchor(self) -> None:
        """Remembers what is at the top of the view, as exactly as its parts allow."""
        self._anchor = None
        if self._follows:
            return
        top = self.verticalScrollBar().value()
        for widget in self._widgets:
            if widget.geometry().bottom() >= top:
                part = widget.childAt(widget.width() // 2, max(0, top - widget.y()))
                while part is not None and part.parentWidget() is not widget:
                    part = part.parentWidget()
                anchor = part or widget
                self._anchor = (anchor, anchor.mapTo(self._column, QPoint(0, 0)).y() - top)
                return

    def _fit_column(self) -> None:
        width = self.viewport().width()
        self._column.resize(width, self._layout.heightForWidth(width))
        self._hold()

    def _hold(self) -> None:
        """After the content changed its size: the end stays the end, or what was at the top stays there."""
        if self._follows:
            self._to_the_end()
        elif self._anchor is not None:
            anchor, offset = self._anchor
            if not anchor.isVisibleTo(self._column):
                self._take_anchor()
                return
            self._adjusting = True
            self.verticalScrollBar().setValue(anchor.mapTo(self._column, QPoint(0, 0)).y() - offset)
            self._adjusting = False

    def _to_the_end(self) -> None:
        self._adjusting = True
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._adjusting = False
        self._anchor = None

    def resizeEvent(self, event: QResizeEvent) -> None:
        side = max(_MARGIN, (self.width() - _WIDEST) // 2)
        beyond = side - (self.width() - self.viewport().width())
        left, right = (side, beyond) if not self.isRightToLeft() else (beyond, side)
        self._layout.setContentsMargins(left, 2 * theme.SPACING, right, 3 * theme.SPACING)
        super().resizeEvent(event)
        self._to_end.move((self.width() - self._to_end.width()) // 2, self.height() - self._to_end.height() - 12)
        self._fit_column()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        match event.key():
            case Qt.Key.Key_Home:
                bar.setValue(bar.minimum())
            case Qt.Key.Key_End:
                self.follow()
            case _:
                super().keyPressEvent(event)


class _Bar(QScrollBar):
    """A scroll bar that shows nothing while there is nothing to scroll."""

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Vertical)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.maximum() > self.minimum():
            super().paintEvent(event)


class _Column(QWidget):
    """Signals:
    layout_changed: What is in it changed its size.
    """

    layout_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)  # growing, it paints nothing but what is new

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            self.layout_changed.emit()
        return handled
