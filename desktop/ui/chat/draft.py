"""A message that is not sent yet: what is written, and what is attached to it. Used by the composer, the pane and its turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from desktop.assistant.attachments import Source
from desktop.assistant.conversation import Attachment, Message, Prompt
from desktop.errors import Diagnostic

#: What can be attached: a source that is read when the message is sent, or a part that was read before.
Content = Source | Attachment | Prompt


@dataclass(slots=True, eq=False)
class Attached:
    """One thing that is attached."""

    content: Content
    fault: Diagnostic | None = None
    """Why it could not be read when the message was to be sent."""


@dataclass(slots=True)
class Draft:
    text: str = ""
    attached: list[Attached] = field(default_factory=list[Attached])

    @property
    def is_empty(self) -> bool:
        return not self.text.strip() and not self.attached

    @classmethod
    def of(cls, message: Message) -> Draft:
        """What was sent, to be sent again: with its attachments as they were read then."""
        parts = [part for part in message.parts if isinstance(part, Attachment | Prompt)]
        return cls(message.text, [Attached(part) for part in parts])

    def before(self, other: Draft) -> Draft:
        """This draft with what was written meanwhile below it."""
        texts = [each for each in (self.text, other.text) if each.strip()]
        return Draft("\n\n".join(texts), [*self.attached, *other.attached])
