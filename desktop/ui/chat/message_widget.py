"""A message as a column of parts, one widget a part. Used by ``message_list.py``.

Show a new kind of content: a line in `MessageWidget._make`. Whatever changes in a message, `refresh` draws what is new.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QDateTime, QLocale, Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from desktop.assistant.conversation import (
    Attachment,
    Choice,
    Form,
    Image,
    Message,
    Notice,
    Part,
    Prompt,
    Reasoning,
    Text,
    ToolCall,
)
from desktop.ui import theme
from desktop.ui.chat.attachment_card import AttachmentCard
from desktop.ui.chat.image_view import ImageView
from desktop.ui.chat.markdown_view import MarkdownView
from desktop.ui.chat.message_parts import Bubble, FoldedText, NoticeView, Surroundings, model_label
from desktop.ui.chat.prompt_view import PromptCard
from desktop.ui.chat.question_cards import ChoiceCard, FormCard
from desktop.ui.chat.stack_layout import StackLayout
from desktop.ui.chat.tool_call_card import ToolCallCard
from desktop.ui.chat.widgets import CopyButton, discard
from desktop.ui.labels import PlainLabel


class MessageWidget(QWidget):
    """Attributes:
    message: What it shows.
    """

    def __init__(
        self,
        message: Message,
        surroundings: Surroundings,
        *,
        with_name: bool,
        ends_answer: bool,
        parent: QWidget | None = None,
    ) -> None:
        """`with_name`: the first message of an answer says which model answers. `ends_answer`: the last one has Copy."""
        super().__init__(parent)
        self.message = message
        self._ends_answer = ends_answer
        self._surroundings = surroundings
        self._parts: list[tuple[Part, QWidget]] = []
        self._waiting: PlainLabel | None = None
        self._foot: QWidget | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._layout = StackLayout(self, spacing=12)
        self._fixed = 0
        if message.role == "user":
            self.setAccessibleName(self.tr("You"))
        else:
            name = model_label(message.model)
            self.setAccessibleName(name)
            if with_name:
                self._layout.addWidget(PlainLabel(name, tone="muted", bold=True))
                self._fixed = 1
        self.refresh()

    @property
    def questions(self) -> list[ChoiceCard | FormCard]:
        return [widget for _, widget in self._parts if isinstance(widget, ChoiceCard | FormCard)]

    @property
    def waiting_calls(self) -> list[ToolCallCard]:
        """Cards that ask for the person's decision."""
        return [widget for _, widget in self._parts if isinstance(widget, ToolCallCard) and widget.waits]

    def set_ends_answer(self, ends_answer: bool) -> None:
        self._ends_answer = ends_answer
        self._show_foot()

    def refresh(self) -> None:
        """Draws the message as it is now; what has not changed stays."""
        parts = self.message.parts
        while len(self._parts) > len(parts) or any(
            old is not new for (old, _), new in zip(self._parts, parts, strict=False)
        ):
            discard(self._parts.pop()[1])
        last = len(self._parts) - 1
        for index, (part, widget) in enumerate(self._parts):
            self._update(part, widget, grows=index == last == len(parts) - 1 and not self.message.finished)
        for index in range(len(self._parts), len(parts)):
            widget = self._make(parts[index], grows=index == len(parts) - 1 and not self.message.finished)
            self._parts.append((parts[index], widget))
            self._layout.insert_widget(self._fixed + index, widget)
        self._show_waiting()
        self._show_foot()

    def _make(self, part: Part, *, grows: bool) -> QWidget:
        around = self._surroundings
        match part:
            case Text() if self.message.role == "user":
                return Bubble(part.text, self)
            case Text():
                view = MarkdownView(around.width(), self)
                view.command_clicked.connect(around.run_command)
                view.set_source(part.text, finished=not grows)
                return view
            case Reasoning():
                return FoldedText(self.tr("Reasoning"), lambda: part.text, self)
            case Image():
                return ImageView(part, self)
            case Notice():
                return NoticeView(part, around, self)
            case ToolCall():
                return ToolCallCard(part, around.conversation.id, around.answers, around.remedy, self)
            case Choice():
                return ChoiceCard(part, around.answers, self)
            case Form():
                return FormCard(part, around.answers, self)
            case Prompt():
                return PromptCard(part, self)
            case Attachment():
                return AttachmentCard(part, self)

    def _update(self, part: Part, widget: QWidget, *, grows: bool) -> None:
        if isinstance(widget, MarkdownView) and isinstance(part, Text):
            widget.set_source(part.text, finished=not grows)
        elif isinstance(widget, ToolCallCard | ChoiceCard | FormCard | FoldedText):
            widget.refresh()

    def _show_waiting(self) -> None:
        """A line while nothing of the answer is there yet."""
        waits = self.message.role == "assistant" and not self.message.finished and not self.message.parts
        if waits and self._waiting is None:
            self._waiting = PlainLabel(self.tr("Working on it…"), tone="muted")
            self._layout.addWidget(self._waiting)
        elif not waits and self._waiting is not None:
            discard(self._waiting)
            self._waiting = None

    def _show_foot(self) -> None:
        if self._foot is not None and not self._ends_answer:
            discard(self._foot)
            self._foot = None
            return
        is_answer = self.message.role == "assistant" and self.message.finished
        if self._foot is None and self._ends_answer and is_answer and not self._surroundings.is_running():
            self._foot = _Foot(self.message, self._surroundings.conversation.messages, self)
            self._layout.addWidget(self._foot)


class _Foot(QWidget):
    """Copy and the time, below an answer."""

    def __init__(self, message: Message, messages: Sequence[Message], parent: QWidget) -> None:
        super().__init__(parent)
        time_ = QDateTime.fromSecsSinceEpoch(int(message.created))
        shown = QLocale().toString(time_.time(), QLocale.FormatType.ShortFormat)
        label = PlainLabel(shown, tone="muted", scale=0.9, wrap=False)
        label.setToolTip(QLocale().toString(time_, QLocale.FormatType.LongFormat))
        copy = CopyButton(self.tr("Copy the answer"), lambda: _answer(message, messages), self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING // 2)
        layout.addWidget(copy)
        layout.addWidget(label)
        layout.addStretch()


def _answer(last: Message, messages: Sequence[Message]) -> str:
    """The text of the answer that a message is the end of: a turn has a message before each round of tool calls."""
    texts: list[str] = []
    for message in messages:
        if message.role == "user":
            texts = []
        elif message.text:
            texts.append(message.text)
        if message is last:
            break
    return "\n\n".join(texts)
