"""What a tool call is called where it is shown: ``mcp discover · words``, ``server · tool``. Used by the tool-call card.

These names are Deskhand's vocabulary, the same in every language.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from desktop.assistant import mcp_tools_arguments as forms
from desktop.assistant import tool_arguments
from desktop.assistant.conversation import ToolCall
from desktop.assistant.toolbox import MCP_TOOLS
from desktop.errors import AssistantError
from desktop.visible_text import visible_line

#: Characters of arguments that are looked at for one line.
_LONGEST_READ = 20_000
_LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class CallTitle:
    name: str
    summary: str = ""
    """Arguments on one line."""


def call_title(call: ToolCall) -> CallTitle:
    """All text in it is on one line, its hidden characters visible."""
    if call.name == MCP_TOOLS:
        return _of_mcp_tools(call)
    name = f"{visible_line(call.server, 80)} · {visible_line(call.tool)}" if call.server else visible_line(call.name)
    return CallTitle(name, _one_line(call.arguments))


def _of_mcp_tools(call: ToolCall) -> CallTitle:
    try:
        operation = forms.operation(tool_arguments.parse(call.arguments))
    except AssistantError:
        return CallTitle("mcp tools", _one_line(call.arguments))
    match operation:
        case forms.Query():
            server = f" · {visible_line(operation.server)}" if operation.server else ""
            return CallTitle(f"mcp discover · {visible_line(operation.query)}{server}")
        case forms.Activate():
            return CallTitle("mcp activate")
        case forms.Read():
            return CallTitle("mcp read")
        case forms.Complete():
            return CallTitle("mcp complete", f"{visible_line(operation.server)} · {visible_line(operation.name)}")


def _one_line(arguments: str) -> str:
    """``key=value`` of each argument, or the beginning of the text where it is something else."""
    try:
        values = json.loads(arguments) if len(arguments) <= _LONGEST_READ else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return visible_line(arguments)
    shown = (
        f"{visible_line(name, 40)}="
        + visible_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
        for name, value in values.items()
    )
    return visible_line("  ".join(shown))
