"""A conversation as Markdown, to be read by people. Used by the history's export."""

from __future__ import annotations

import json
import re
from datetime import datetime

from desktop.assistant.conversation import (
    Attachment,
    Choice,
    Conversation,
    Form,
    Image,
    Message,
    Notice,
    Part,
    Prompt,
    PromptMessage,
    Reasoning,
    Text,
    ToolCall,
    ToolOutput,
)
from desktop.visible_text import visible, visible_line


def to_markdown(conversation: Conversation) -> str:
    """The open branch: what was said, what tools were given and gave, hidden characters made visible."""
    title = visible_line(conversation.title) or "Conversation"
    blocks = [f"# {title}", _time(conversation.created)]
    for message in conversation.messages:
        blocks.append(f"## {_speaker(message)}")
        blocks += [block for part in message.parts if (block := _part(part))]
    return "\n\n".join(blocks) + "\n"


def _speaker(message: Message) -> str:
    name = "You" if message.role == "user" else visible_line(message.model) or "Assistant"
    return f"{name}, {_time(message.created)}"


def _part(part: Part) -> str:
    match part:
        case Text(text):
            return visible(text)
        case Reasoning(text):
            return "\n".join(f"> {line}".rstrip() for line in visible(text).splitlines())
        case Image(mime_type, data):
            return f"![image](data:{visible_line(mime_type)};base64,{data})"
        case Notice(diagnostic):
            said = f"*{visible(f'{diagnostic.message} {diagnostic.hint}').strip()}*"
            return f"{said}\n\n{_fenced(part.summary)}" if part.summary else said
        case ToolCall():
            return _call(part)
        case Choice(question, options, answer):
            lines = [
                f"- {'**' if index == answer else ''}{visible_line(option.label)}"
                for index, option in enumerate(options)
            ]
            lines = [f"{line}**" if line.startswith("- **") else line for line in lines]
            return "\n".join([visible(question), "", *lines])
        case Form():
            answer = (
                "Not answered."
                if part.answer is None
                else _fenced(json.dumps(part.answer, indent=2, ensure_ascii=False), "json")
            )
            return f"Arguments for {visible_line(part.server)} · {visible_line(part.tool)}\n\n{answer}"
        case Attachment():
            about = f"{visible_line(part.server)} · {visible_line(part.uri, 500)}" if part.server else ""
            head = [f"### Attachment {visible_line(part.name)}", *([about] if about else [])]
            return "\n\n".join([*head, *_output(part.output)])
        case Prompt():
            name = f"{visible_line(part.server)} · {visible_line(part.title or part.name)}"
            return "\n\n".join([f"### Prompt {name}", *map(_prompt_message, part.messages)])


def _prompt_message(message: PromptMessage) -> str:
    if message.image is not None:
        return _part(message.image)
    return _fenced(message.left_out or message.text)


def _call(call: ToolCall) -> str:
    name = f"{visible_line(call.server)} · {visible_line(call.tool)}" if call.tool else visible_line(call.name)
    blocks = [f"### {name} ({call.state})", _fenced(call.arguments, "json")]
    if call.output is not None:
        blocks += _output(call.output)
    return "\n\n".join(blocks)


def _output(output: ToolOutput) -> list[str]:
    blocks = [_fenced(output.text)] if output.text else []
    blocks += [_part(image) for image in output.images]
    if output.spilled is not None:
        blocks.append(f"Complete result: `{visible_line(output.spilled.path, 500)}`")
    return blocks


def _fenced(text: str, language: str = "") -> str:
    """A code block, its fence longer than any row of backticks in it."""
    text = visible(text)
    longest = max((len(row) for row in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
