"""A conversation and its messages: plain values that the turn writes, the history keeps and the window draws.

A message of the assistant is one answer of the model: reasoning, text and the tool calls it asked for, each call with its
result. A turn is as many such messages as the model needs until it asks for no more tools. Messages form a tree by
`parent_id`; a conversation holds the branch that is open.

Show a new kind of content: add a part here, a line in `part_from_json`, and a line in ``ui/chat/message_widget.py``.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from desktop.errors import Diagnostic

Role = Literal["user", "assistant"]
CallState = Literal["waiting", "running", "done", "failed", "denied", "stopped"]
Value = TypeVar("Value")


def new_id() -> str:
    return uuid.uuid4().hex


@dataclass(slots=True)
class Text:
    """Prose: Markdown of the assistant, or what the person wrote."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(slots=True)
class Reasoning:
    """What a model shows of its reasoning. Kept and shown, sent back only where the provider wants it."""

    text: str
    kind: Literal["reasoning"] = "reasoning"


@dataclass(slots=True)
class Image:
    mime_type: str
    """``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``."""
    data: str
    """Base64."""
    kind: Literal["image"] = "image"


@dataclass(slots=True)
class Notice:
    """Something the person should know, said by Deskhand in the conversation; not sent to the model."""

    diagnostic: Diagnostic
    severity: Literal["info", "warning", "error"] = "error"
    covers: str = ""
    """Id of the last message that the model does not get any more, where the notice tells that."""
    summary: str = ""
    """What it gets in the place of these messages."""
    kind: Literal["notice"] = "notice"


@dataclass(slots=True)
class SpilledFile:
    """A result too large for a conversation: the complete MCP result in a private file."""

    id: str
    """The resource ``result://<id>`` of the built-in server."""
    path: str
    size: int
    """Bytes of the file."""
    characters: int
    """Of the whole text as the limiter would have shown it: what offsets count in."""
    lines: int


@dataclass(slots=True)
class Block:
    """A range of a result's text and what it is, so that the window can format it without a second copy."""

    start: int
    end: int
    mime_type: str = ""
    structured: bool = False
    """The result's structured content."""


@dataclass(slots=True)
class ToolOutput:
    """A tool call's result within the limits of a conversation: the very text that the model gets, and what is shown of it."""

    text: str
    images: list[Image] = field(default_factory=list["Image"])
    reported_error: bool = False
    """The tool itself reports an error (``isError``); the text is its own."""
    diagnostic: Diagnostic | None = None
    """The call failed: by the connection, the protocol, a limit, a refusal or a stop. The text then says so in English."""
    blocks: list[Block] = field(default_factory=list["Block"])
    spilled: SpilledFile | None = None
    warning: str = ""
    """A remark on a result that is shown all the same, such as a mismatch with the tool's output schema."""


@dataclass(slots=True)
class ToolCall:
    id: str
    """The model's; unique in its message."""
    name: str
    """As the model called it: ``mcp_tools`` or a native name."""
    arguments: str
    """JSON text exactly as the model gave it, which may be no JSON at all."""
    server: str = ""
    tool: str = ""
    state: CallState = "waiting"
    output: ToolOutput | None = None
    progress: float | None = None
    """Between 0 and 1, where the server told a total."""
    progress_message: str = ""
    started: float | None = None
    """Seconds since the epoch when it began to run; `finished` when it ended."""
    finished: float | None = None
    activated: list[str] = field(default_factory=list[str])
    """Native names that this call of ``mcp_tools`` activated: what restores a conversation's tools."""
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a call of ``mcp_tools`` did, as JSON: rows of a search and the like for the window, and under ``loaded`` the
    definitions of the tools in `activated` (``assistant/toolbox.py``). Never sent to the model."""
    kind: Literal["tool_call"] = "tool_call"


@dataclass(slots=True)
class ChoiceOption:
    label: str
    detail: str = ""


@dataclass(slots=True)
class Choice:
    """A question with options put to the person (by Guide), and the answer."""

    question: str
    options: list[ChoiceOption]
    answer: int | None = None
    """Index of the chosen option; None: open, or left unanswered."""
    id: str = field(default_factory=new_id)
    kind: Literal["choice"] = "choice"


@dataclass(slots=True)
class Form:
    """A tool's arguments asked of the person (by Guide), and the answer."""

    server: str
    tool: str
    schema: dict[str, Any]
    """The tool's input schema."""
    values: dict[str, Any]
    """What is known already."""
    answer: dict[str, Any] | None = None
    id: str = field(default_factory=new_id)
    kind: Literal["form"] = "form"


@dataclass(slots=True)
class PromptMessage:
    """A message of a server's prompt: a text, an image, or what can't be sent to a model."""

    role: Role
    """Whom the server has say it; never a turn of the conversation."""
    text: str = ""
    uri: str = ""
    """Of an embedded or linked resource."""
    image: Image | None = None
    left_out: str = ""
    """Names content that is not sent, such as ``audio/wav, 1,024 bytes``."""


@dataclass(slots=True)
class Prompt:
    """A server's prompt that the person chose, exactly as it was shown to them (``prompts.py``)."""

    server: str
    name: str
    title: str
    arguments: dict[str, str]
    description: str
    messages: list[PromptMessage]
    kind: Literal["prompt"] = "prompt"


@dataclass(slots=True)
class Attachment:
    """What the person attached to a message, as it was when it was sent (``attachments.py``)."""

    name: str
    server: str
    """Whose resource it is; empty for a file of the person's or an image they pasted."""
    uri: str
    """Of the resource."""
    size: int
    """Bytes of all that was read; 0 where that isn't known."""
    output: ToolOutput
    """What was read, within the limits."""
    id: str = field(default_factory=new_id)
    """Made once it was read, so that nothing in it can look like its end."""
    kind: Literal["attachment"] = "attachment"


Part = Text | Reasoning | Image | Notice | ToolCall | Choice | Form | Prompt | Attachment


@dataclass(slots=True)
class Usage:
    """Tokens of one answer; None where the provider doesn't tell."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """The part of `input_tokens` that came from the provider's cache."""
    cost: float | None = None
    """US dollars."""


@dataclass(slots=True)
class Message:
    role: Role
    parts: list[Part] = field(default_factory=list["Part"])
    id: str = field(default_factory=new_id)
    parent_id: str | None = None
    created: float = field(default_factory=time.time)
    model: str = ""
    """The model that answered, as it is shown."""
    usage: Usage | None = None
    finished: bool = True
    """False while it streams, and for one that a killed process left behind."""

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [part for part in self.parts if isinstance(part, ToolCall)]


@dataclass(slots=True)
class Conversation:
    """A conversation with its open branch, oldest message first."""

    id: str = field(default_factory=new_id)
    title: str = ""
    created: float = field(default_factory=time.time)
    updated: float = field(default_factory=time.time)
    messages: list[Message] = field(default_factory=list["Message"])

    def add(self, message: Message) -> Message:
        """Appends a message to the open branch."""
        message.parent_id = self.messages[-1].id if self.messages else None
        self.messages.append(message)
        self.updated = time.time()
        return message


def failure(diagnostic: Diagnostic, remark: str = "") -> ToolOutput:
    """The result of a call that failed: the diagnostic, and a remark to the model on what that means."""
    return ToolOutput(f"{diagnostic}\n{remark}" if remark else str(diagnostic), diagnostic=diagnostic)


def interrupt(message: Message) -> bool:
    """Gives each call that has no result one that says it was stopped; whether there was any.

    So a conversation is well-formed (each call has a result) after a stop, after a failure, and when a killed process left a
    message behind. A call that ran may have taken effect: the text tells the model so.
    """
    open_calls = [call for call in message.tool_calls if call.output is None]
    for call in open_calls:
        ran = call.state == "running"
        call.state = "stopped"
        call.finished = call.finished or time.time()
        call.output = ToolOutput(
            "Stopped before it ended. It was not repeated and may have taken effect."
            if ran
            else "Stopped before it ran.",
            diagnostic=Diagnostic("cancelled", "call", call.server or None),
        )
    return bool(open_calls)


def to_json(value: Message | Part) -> dict[str, Any]:
    """The value as JSON, for the history and for exports."""
    return dataclasses.asdict(value)


def message_from_json(content: Mapping[str, Any]) -> Message:
    """The message that `to_json` wrote. Parts and fields of a newer Deskhand are left out."""
    known = {each.name for each in dataclasses.fields(Message)} - {"parts", "usage"}
    message = Message(**{name: value for name, value in content.items() if name in known})
    message.usage = _make(Usage, content["usage"]) if content.get("usage") else None
    message.parts = [part for each in content.get("parts", ()) if (part := part_from_json(each)) is not None]
    return message


def part_from_json(content: Mapping[str, Any]) -> Part | None:
    """The part that `to_json` wrote, or None for a kind that is not known."""
    match content.get("kind"):
        case "text":
            return _make(Text, content)
        case "reasoning":
            return _make(Reasoning, content)
        case "image":
            return _make(Image, content)
        case "notice":
            return _make(Notice, content, diagnostic=_make(Diagnostic, content["diagnostic"]))
        case "tool_call":
            return _make(ToolCall, content, output=_output(content.get("output")))
        case "choice":
            return _make(Choice, content, options=[_make(ChoiceOption, each) for each in content["options"]])
        case "form":
            return _make(Form, content)
        case "attachment":
            return _make(Attachment, content, output=_output(content["output"]))
        case "prompt":
            return _make(Prompt, content, messages=[_prompt_message(each) for each in content["messages"]])
        case _:
            return None


def _prompt_message(content: Mapping[str, Any]) -> PromptMessage:
    image = content.get("image")
    return _make(PromptMessage, content, image=_make(Image, image) if image else None)


def _output(content: Mapping[str, Any] | None) -> ToolOutput | None:
    if content is None:
        return None
    return _make(
        ToolOutput,
        content,
        images=[_make(Image, each) for each in content.get("images", ())],
        diagnostic=_make(Diagnostic, content["diagnostic"]) if content.get("diagnostic") else None,
        blocks=[_make(Block, each) for each in content.get("blocks", ())],
        spilled=_make(SpilledFile, content["spilled"]) if content.get("spilled") else None,
    )


def _make(kind: type[Value], content: Mapping[str, Any], **replaced: Any) -> Value:
    known = {each.name for each in dataclasses.fields(kind)}  # type: ignore[arg-type]  # every caller gives a dataclass
    return kind(**({name: value for name, value in content.items() if name in known} | replaced))
