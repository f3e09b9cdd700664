"""The line above the conversation: its title, who answers, the loaded tools, tokens and cost. Used by ``chat_pane.py``."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QLocale, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from desktop.assistant import toolbox
from desktop.assistant.conversation import Conversation
from desktop.catalog_entries import ToolDefinition
from desktop.ui import theme
from desktop.ui.chat.widgets import Card, ElidedLabel, SlimScrollBars, button_text, flat_button, plain_tool_tip
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

_LONGEST_TITLE = 200
_WIDEST_MODEL = 420
#: Pixels of a title and of what is around it, that a model's name leaves.
_NARROWEST_TITLE = 150
#: Pixels below which the line leaves out tokens and cost.
_NARROW = 620


class ChatHeader(QWidget):
    """Attributes:
        model_button: Says who answers; the menu to choose opens below it.

    Signals:
        renamed(str): The person gave the conversation another title.
        model_menu_requested: The model's button was pressed.
        unload_requested(str): A tool, by its native name, is to be unloaded.
    """

    renamed = Signal(str)
    model_menu_requested = Signal()
    unload_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model_name = self._short_name = ""
        self._tools: Sequence[ToolDefinition] = ()
        self._title = _TitleEdit(self)
        self._title.editingFinished.connect(self._rename)
        self.model_button = flat_button("", self.tr("Choose who answers"), text=" ")
        self.model_button.clicked.connect(self.model_menu_requested)
        self._loaded = flat_button("", "", text=" ")
        self._loaded.clicked.connect(self._show_tools)
        self._loaded.hide()
        self._usage = PlainLabel(tone="muted", wrap=False)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 12, 6)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(self._title, 1)
        layout.addWidget(self._usage)
        layout.addWidget(self._loaded)
        layout.addWidget(self.model_button)

    def show_conversation(self, conversation: Conversation | None) -> None:
        """Title, tokens and cost as they are now."""
        self._title.show_title(conversation.title if conversation else "")
        self._title.setEnabled(conversation is not None)
        text, explained = _usage(conversation) if conversation else ("", "")
        self._usage.setText(text)
        self._usage.setToolTip(plain_tool_tip(explained))
        self._arrange()

    def show_model(self, name: str, short: str = "") -> None:
        """`short`: what stands on the button instead of the name."""
        self._model_name, self._short_name = name, short or name
        self._arrange()

    def show_tools(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = tools
        count = len(tools)
        text = self.tr("1 tool loaded") if count == 1 else self.tr("{count} tools loaded").format(count=count)
        self._loaded.setAccessibleName(text)
        self._loaded.setToolTip(self.tr("The tools that the model can call in this conversation"))
        self._loaded.setVisible(count > 0)
        self._arrange()

    def _rename(self) -> None:
        title = " ".join(self._title.text().split())
        if title and self._title.isModified() and title != self._title.shown:
            self._title.show_title(title)
            self.renamed.emit(title)

    def _show_tools(self) -> None:
        popup = ToolsPopup(self._tools, self)
        popup.unload_requested.connect(self.unload_requested)
        popup.adjustSize()
        corner = self._loaded.mapToGlobal(self._loaded.rect().bottomRight())
        left = self.screen().availableGeometry().left()
        popup.move(max(left, corner.x() - popup.width()), corner.y() + theme.SPACING // 2)
        popup.show()
        popup.setFocus()

    def _arrange(self) -> None:
        narrow = self.width() < _NARROW
        count = len(self._tools)
        short = self.tr("1 tool") if count == 1 else self.tr("{count} tools").format(count=count)
        self._loaded.setText(f"{short if narrow else self._loaded.accessibleName()} ▾")
        self._usage.setVisible(not narrow and bool(self._usage.text()))
        taken = self._loaded.sizeHint().width() if count else 0
        widest = max(self.width() // 3, min(_WIDEST_MODEL, self.width() // 2, self.width() - taken - _NARROWEST_TITLE))
        shown = self.model_button.fontMetrics().elidedText(self._short_name, Qt.TextElideMode.ElideRight, widest)
        self.model_button.setText(f"{button_text(shown)} ▾")
        self.model_button.setToolTip(plain_tool_tip(self._model_name))
        self.model_button.setAccessibleName(self.tr("Model: {name}").format(name=self._model_name))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()


class ToolsPopup(Card):
    """The active tools, what each costs in every request, and Unload. Closes with Escape or a click elsewhere.

    Signals:
        unload_requested(str): The native name of a tool.
    """

    unload_requested = Signal(str)

    def __init__(self, tools: Sequence[ToolDefinition], parent: QWidget) -> None:
        super().__init__(parent=parent)
        self.setWindowFlags(Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(self.tr("Loaded tools"))
        self._shown = len(tools)
        rows = QWidget()
        column = QVBoxLayout(rows)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.SPACING // 2)
        for tool in tools:
            column.addWidget(self._row(tool))
        column.addStretch()
        area = QScrollArea()
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.viewport().setAutoFillBackground(False)
        SlimScrollBars(area)
        area.setWidget(rows)
        rows.setAutoFillBackground(False)
        area.setFixedHeight(min(360, rows.sizeHint().height()))
        total = QLocale().toString(sum(map(toolbox.weight, tools)))
        about = self.tr("Together about {count} tokens in every request.").format(count=total)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 12, 12, 12)
        layout.setSpacing(12)
        layout.addWidget(PlainLabel(about, tone="muted"))
        layout.addWidget(area)
        self.setFixedWidth(420)

    def _row(self, tool: ToolDefinition) -> QWidget:
        row = QWidget()
        name = f"{visible_line(tool.server, 80)} · {visible_line(tool.title or tool.name, 120)}"
        unload = flat_button("close", self.tr("Unload {tool}").format(tool=name))
        unload.clicked.connect(lambda: self._unload(tool, row))
        weight = self.tr("≈ {count} tokens").format(count=QLocale().toString(toolbox.weight(tool)))
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(ElidedLabel(name), 1)
        layout.addWidget(PlainLabel(weight, tone="muted", wrap=False))
        layout.addWidget(unload)
        return row

    def _unload(self, tool: ToolDefinition, row: QWidget) -> None:
        row.hide()
        self.unload_requested.emit(tool.native_name)
        self._shown -= 1
        if not self._shown:
            self.close()


class _TitleEdit(QLineEdit):
    """A title that looks like one until it is edited.

    Attributes:
        shown: The title as it is kept.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.shown = ""
        self.setFrame(False)
        self.setMaxLength(_LONGEST_TITLE)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Title of the conversation"))
        self.setPlaceholderText(self.tr("New conversation"))
        font = self.font()
        font.setBold(True)
        self.setFont(font)
        palette = self.palette()
        palette.setColor(palette.ColorRole.Base, Qt.GlobalColor.transparent)
        self.setPalette(palette)

    def show_title(self, title: str) -> None:
        self.shown = title
        self.setToolTip(plain_tool_tip(title))
        if not self.hasFocus():
            self._show_elided()

    def _show_elided(self) -> None:
        line = visible_line(self.shown, _LONGEST_TITLE)
        self.setText(self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, self.width() - 2 * theme.SPACING))
        self.setCursorPosition(0)

    def minimumSizeHint(self) -> QSize:
        return QSize(60, super().minimumSizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.setText(visible_line(self.shown, _LONGEST_TITLE))
            self.clearFocus()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.setText(visible_line(self.shown, _LONGEST_TITLE))
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() not in (Qt.FocusReason.PopupFocusReason, Qt.FocusReason.ActiveWindowFocusReason):
            self._show_elided()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self.hasFocus():
            self._show_elided()


def _usage(conversation: Conversation) -> tuple[str, str]:
    """Tokens and cost of a conversation in short, and explained.

    The cached share is that of what was sent to providers which tell of their cache.
    """
    usages = [message.usage for message in conversation.messages if message.usage is not None]
    sent = sum(usage.input_tokens or 0 for usage in usages)
    received = sum(usage.output_tokens or 0 for usage in usages)
    cached = sum(usage.cached_tokens or 0 for usage in usages)
    told = sum(usage.input_tokens or 0 for usage in usages if usage.cached_tokens is not None)
    costs = [usage.cost for usage in usages if usage.cost is not None]
    if not sent + received:
        return "", ""
    short = [tr("{count} tokens").format(count=_short(sent + received))]
    if costs:
        short.append(f"${sum(costs):.2f}" if sum(costs) >= 0.01 else "< $0.01")
    if cached and told:
        short.append(tr("{share} % cached").format(share=round(100 * cached / told)))
    explained = tr("Sent: {sent} tokens, of which {cached} came from the provider's cache. Received: {received}.")
    locale = QLocale()
    return " · ".join(short), explained.format(
        sent=locale.toString(sent), cached=locale.toString(cached), received=locale.toString(received)
    )


def _short(count: int) -> str:
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"
