"""One tool call of a turn, from what the model asked for to the result it reads. Used by the turn alone.

The order is: is the tool active and still what it was; are the arguments valid; does the person allow it; is it still what it
was; then it is sent, once. Nothing is ever sent a second time.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from desktop.assistant import tool_arguments
from desktop.assistant.approval import ApprovalRequest, Approvals
from desktop.assistant.conversation import Attachment, Conversation, Message, Prompt, ToolCall, ToolOutput, failure
from desktop.assistant.interfaces import Catalog, ToolRunner
from desktop.assistant.mcp_tools import McpTools
from desktop.assistant.toolbox import MCP_TOOLS, Toolbox
from desktop.catalog_entries import ToolDefinition
from desktop.errors import AssistantError, Diagnostic
from desktop.visible_text import one_line

if TYPE_CHECKING:
    from desktop.assistant.results import ResultStore

#: Seconds between two reports of a call's progress.
_REPORT_INTERVAL = 0.1
#: Failures that tell that the call was not carried out; after any other it may have been.
_NOT_CARRIED_OUT = frozenset(
    {
        "server_unknown",
        "server_disabled",
        "command_not_found",
        "runtime_missing",
        "configuration_invalid",
        "authentication_required",
        "permission_denied",
        "busy",
        "tool_unknown",
        "tool_changed",
        "arguments_invalid",
    }
)
_UNCERTAIN = "The call was not repeated and may have taken effect."


class ToolCalls:
    def __init__(
        self, *, catalog: Catalog, runner: ToolRunner, results: ResultStore, approvals: Approvals, mcp_tools: McpTools
    ) -> None:
        self._catalog = catalog
        self._runner = runner
        self._results = results
        self._approvals = approvals
        self._mcp_tools = mcp_tools

    async def run(self, call: ToolCall, conversation: Conversation, on_change: Callable[[], None]) -> None:
        """Runs a call to its result. `on_change` hears of its state and progress, at most ten times a second.

        What goes wrong becomes the call's result; only cancellation and faults of Deskhand's own are raised, and leave the
        call without a result.
        """
        report = _Paced(on_change)
        try:
            if call.name == MCP_TOOLS:
                output = await self._run_mcp_tools(call, conversation, report)
            else:
                output = await self._run_native(call, conversation, report)
        except AssistantError as error:
            output = failure(error.diagnostic)
        finally:
            report.close()
        finish(call, output)

    async def _run_mcp_tools(self, call: ToolCall, conversation: Conversation, report: _Paced) -> ToolOutput:
        toolbox = Toolbox(conversation.messages)

        async def accept(tool: ToolDefinition) -> bool:
            previous = self._approvals.previous(tool, toolbox.find(tool.native_name))
            if previous is None:
                return True
            call.state = "waiting"
            report()
            accepted = await self._approvals.accept(ApprovalRequest(conversation.id, call, tool, {}, previous=previous))
            _begin(call, report)
            return accepted

        _begin(call, report)
        return await self._mcp_tools.execute(call, conversation.id, toolbox, accept)

    async def _run_native(self, call: ToolCall, conversation: Conversation, report: _Paced) -> ToolOutput:
        toolbox = Toolbox(conversation.messages)
        tool = toolbox.find(call.name)
        if tool is None:
            return await self._not_active(call.name, toolbox)
        call.server, call.tool = tool.server, tool.name
        self._require_current(tool)
        arguments = tool_arguments.parse(call.arguments)
        await tool_arguments.check(arguments, tool.input_schema)
        others = servers_heard(conversation.messages) - {tool.server}
        decision = await self._approvals.decide(ApprovalRequest(conversation.id, call, tool, arguments, others))
        if decision == "deny":
            raise AssistantError("denied", operation="call", server=tool.server)
        self._require_current(tool)  # a person may take their time
        _begin(call, report)

        def on_progress(progress: float, total: float | None, message: str | None) -> None:
            known = total is not None and math.isfinite(progress) and math.isfinite(total) and total > 0
            call.progress = min(1.0, max(0.0, progress / total)) if known and total else None
            call.progress_message = one_line(message or ("" if known else f"{progress:g}"))
            report()

        try:
            result = await self._runner.call_tool(tool, arguments, on_progress)
        except AssistantError as error:
            remark = "" if error.diagnostic.code in _NOT_CARRIED_OUT else _UNCERTAIN
            return failure(error.diagnostic, remark)
        return await self._results.output(result, conversation_id=conversation.id, server=tool.server)

    async def _not_active(self, name: str, toolbox: Toolbox) -> ToolOutput:
        """What the model reads when it calls a tool that it was not given: what is meant, if that can be told."""
        lookup = (await self._catalog.look_up([name]))[0]
        if lookup.tool is not None:
            diagnostic = Diagnostic("tool_not_active", "call", lookup.tool.server)
            return failure(diagnostic, f'Next: mcp_tools {{"activate": ["{lookup.tool.native_name}"]}}')
        meant = [tool.native_name for tool in toolbox.tools if name in (tool.name, tool.identifier)]
        near = [one_line(each, 600) for each in (*meant, *lookup.near)][:3]
        diagnostic = Diagnostic("tool_unknown", "call") if meant or lookup.diagnostic is None else lookup.diagnostic
        return failure(diagnostic, f"Nearest: {', '.join(near)}." if near else "")

    def _require_current(self, tool: ToolDefinition) -> None:
        if (diagnostic := self._catalog.current(tool)) is not None:
            raise AssistantError.of(diagnostic)


def finish(call: ToolCall, output: ToolOutput) -> None:
    """Gives a call its result, unless it was stopped meanwhile."""
    if call.output is not None:
        return
    call.output = output
    call.finished = time.time()
    if output.diagnostic is not None and output.diagnostic.code == "denied":
        call.state = "denied"
    else:
        call.state = "failed" if output.reported_error or output.diagnostic is not None else "done"


def servers_heard(messages: Iterable[Message]) -> frozenset[str]:
    """Servers whose content is in a conversation: results of tools, resources, completions, and what the person attached or chose
    of them. What a search lists isn't content."""
    heard: set[str] = set()
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCall(server=server, output=ToolOutput() as output):
                    if output.reported_error or output.diagnostic is None:
                        heard.add(server)
                case Attachment(server=server) | Prompt(server=server):
                    heard.add(server)
                case _:
                    pass
    return frozenset(heard - {""})


def _begin(call: ToolCall, report: _Paced) -> None:
    call.state = "running"
    call.started = call.started or time.time()
    report()


class _Paced:
    """Calls a callable now, then at most once in an interval; the last request is never lost."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._last = -math.inf
        self._later: asyncio.TimerHandle | None = None

    def __call__(self) -> None:
        if self._later is not None:
            return
        loop = asyncio.get_running_loop()
        wait = self._last + _REPORT_INTERVAL - loop.time()
        if wait <= 0:
            self._now()
        else:
            self._later = loop.call_later(wait, self._now)

    def close(self) -> None:
        """What is still to come is not reported any more: the result is."""
        if self._later is not None:
            self._later.cancel()

    def _now(self) -> None:
        self._later = None
        self._last = asyncio.get_running_loop().time()
        self._act()
