"""A server's prompt as it is sent: for the preview in the prompt picker, and folded away in the message that used it."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop.assistant.conversation import Prompt, PromptMessage
from desktop.ui import icons, theme
from desktop.ui.chat.code_block import CodeView
from desktop.ui.chat.image_view import ImageView
from desktop.ui.chat.widgets import Card, ElidedLabel, discard, flat_button
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible, visible_line

_MOST_LINES = 400


def prompt_label(prompt: Prompt) -> str:
    """What a prompt is called, on one line."""
    return visible_line(prompt.title or prompt.name, 120)


def count_of_messages(prompt: Prompt) -> str:
    count = len(prompt.messages)
    return tr("1 message") if count == 1 else tr("{n} messages").format(n=count)


class PromptContent(QWidget):
    """All messages of a prompt, each under whom the server has say it."""

    def __init__(self, prompt: Prompt, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING)
        if prompt.description:
            layout.addWidget(PlainLabel(visible_line(prompt.description, 600), tone="muted"))
        for message in prompt.messages:
            layout.addWidget(PlainLabel(self._head(message), tone="muted", bold=True))
            layout.addWidget(self._body(message))
        if not prompt.messages:
            layout.addWidget(PlainLabel(self.tr("The prompt is empty."), tone="muted"))

    def _head(self, message: PromptMessage) -> str:
        role = self.tr("As the assistant") if message.role == "assistant" else self.tr("As the person")
        return f"{role} · {visible_line(message.uri, 300)}" if message.uri else role

    def _body(self, message: PromptMessage) -> QWidget:
        if message.image is not None:
            return ImageView(message.image, self)
        if message.left_out:
            text = self.tr("Not sent: {what}").format(what=visible_line(message.left_out, 160))
            return PlainLabel(text, tone="warning")
        view = CodeView(wrap=True, prose=True, most_lines=_MOST_LINES, parent=self)
        view.setAccessibleName(self._head(message))
        view.set_text(visible(message.text))
        return view


class PromptCard(Card):
    """Which prompt of which server was used, and what it says when it is unfolded."""

    def __init__(self, prompt: Prompt, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._prompt = prompt
        self._content: PromptContent | None = None
        name = self.tr("Prompt {prompt} of {server}").format(
            prompt=prompt_label(prompt), server=visible_line(prompt.server, 80)
        )
        self.setAccessibleName(name)
        self._toggle = flat_button("right", self.tr("Show what was sent"))
        self._toggle.clicked.connect(self.toggle)
        about = [visible_line(prompt.server, 80), count_of_messages(prompt)]
        about += [f"{visible_line(name, 80)} = {visible_line(value, 80)}" for name, value in prompt.arguments.items()]
        titles = QVBoxLayout()
        titles.setSpacing(0)
        titles.addWidget(ElidedLabel(prompt_label(prompt), bold=True))
        titles.addWidget(ElidedLabel(" · ".join(about), tone="muted"))
        head = QHBoxLayout()
        head.setSpacing(theme.SPACING)
        head.addWidget(self._toggle)
        head.addLayout(titles, 1)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(theme.SPACING, theme.SPACING, 12, theme.SPACING)
        self._layout.setSpacing(theme.SPACING)
        self._layout.addLayout(head)

    def toggle(self) -> None:
        if self._content is None:
            self._content = PromptContent(self._prompt, self)
            self._layout.addWidget(self._content)
        else:
            discard(self._content)
            self._content = None
        icons.set_icon(self._toggle, "right" if self._content is None else "down")
