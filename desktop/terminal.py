"""The person at a terminal: approves calls and answers Guide's questions on standard input. Used by ``deskhand ask``.

Questions go to standard error, so that standard output holds the answer alone.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import sys
import threading
import unicodedata
from typing import Any

from desktop.assistant.approval import ApprovalRequest, Decision
from desktop.assistant.conversation import Choice, Form
from desktop.catalog_entries import ToolDefinition
from desktop.visible_text import visible, visible_line


class Terminal:
    """Approver and Asker on the terminal. One question at a time, in the order they come."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def decide(self, request: ApprovalRequest) -> Decision:
        async with self._turn:
            if request.previous is not None:
                say(f"\n{visible_line(request.tool.identifier)} has changed since it was accepted:")
                say(_change(request.previous, request.tool))
            else:
                say(f"\nThe model asks to run {visible_line(request.tool.identifier)} with:")
                say(visible(json.dumps(request.arguments, indent=2, ensure_ascii=False)))
                if request.other_servers:
                    names = ", ".join(visible_line(each) for each in sorted(request.other_servers))
                    say(f"Content of {names} is in this conversation and may have led to this call.")
            while True:
                answer = await ask("Allow? [o]nce, in this [c]onversation, [a]lways, [d]eny: ")
                for decision in ("once", "conversation", "always", "deny"):
                    if answer and decision.startswith(answer.lower()):
                        return decision
                if answer is None:  # end of input: nobody is there to allow it
                    return "deny"

    async def choose(self, choice: Choice) -> int | None:
        async with self._turn:
            say(f"\n{visible(choice.question)}")
            for number, option in enumerate(choice.options, 1):
                say_row(f"  {number}. {visible_line(option.label)}  {visible_line(option.detail)}")
            while True:
                answer = await ask(f"Number, 1 to {len(choice.options)}, or nothing for none: ")
                if not answer:
                    return None
                if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(choice.options):
                    return int(answer) - 1

    async def fill(self, form: Form) -> dict[str, Any] | None:
        """Asks for each property that the tool needs, offering what is known already; nothing for a needed one gives up."""
        async with self._turn:
            say(f"\n{visible_line(form.server)}.{visible_line(form.tool)} needs:")
            values = dict(form.values)
            properties: dict[str, Any] = form.schema.get("properties") or {}
            required: list[str] = form.schema.get("required") or []
            for name in [*required, *(name for name in values if name not in required)] or list(properties):
                schema: dict[str, Any] = properties[name] if isinstance(properties.get(name), dict) else {}
                detail = visible_line(str(schema.get("description") or ""))
                say(f"  {visible_line(name)}{': ' + detail if detail else ''}")
                known = f" [{visible_line(str(values[name]))}]" if name in values else ""
                while True:
                    answer = await ask(f"  {visible_line(name)}{known} = ")
                    if not answer and name in required and name not in values:
                        return None
                    if not answer:
                        break
                    try:
                        values[name] = typed(answer, schema)
                    except ValueError:
                        say(f"  That is no {schema.get('type')}.")
                        continue
                    break
            return values


def _change(before: ToolDefinition, after: ToolDefinition) -> str:
    """The lines in which two definitions of a tool differ."""
    old, new = (
        json.dumps([each.description, each.annotations, each.input_schema], indent=1, ensure_ascii=False).splitlines()
        for each in (before, after)
    )
    return visible("\n".join(difflib.unified_diff(old, new, "before", "now", lineterm="", n=1)))


def typed(text: str, schema: dict[str, Any]) -> Any:
    """A typed line as a value of the schema's type. Raises ValueError where it can't be one."""
    match schema.get("type"):
        case "string" | None:
            return text
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "boolean":
            if text.lower() in ("true", "yes", "y", "1"):
                return True
            if text.lower() in ("false", "no", "n", "0"):
                return False
            raise ValueError(text)
        case "array" if not text.lstrip().startswith("["):
            items = schema.get("items")
            return [typed(each.strip(), items if isinstance(items, dict) else {}) for each in text.split(",")]
        case _:
            return json.loads(text)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def say_row(text: str) -> None:
    """Says a line, cut to one row of the terminal; whole where standard error is no terminal."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    say(row(text, columns) if columns else text)


def row(text: str, columns: int) -> str:
    """The beginning of a line that takes at most so many columns, the last an ellipsis where it was cut."""
    if sum(map(_columns, text)) <= columns:
        return text
    kept, left = "", columns - 1
    for character in text:
        left -= _columns(character)
        if left < 0:
            break
        kept += character
    return f"{kept}…" if columns > 0 else ""


def _columns(character: str) -> int:
    """How many columns of a terminal a character takes (UAX 11): none what stands on the one before it, two a wide one."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


async def ask(question: str) -> str | None:
    """A line from standard input without its end; None at the end of input.

    Read in a daemon thread: a read can't be cancelled, and must not keep a stopped program from ending.
    """
    print(question, end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        text = sys.stdin.readline()
        loop.call_soon_threadsafe(lambda: line.done() or line.set_result(text))

    threading.Thread(target=read, name="standard input", daemon=True).start()
    text = await line
    return text.strip() if text else None
