"""Who may run what: the question, the decision, and the standing rules.

The turn asks `Approvals` before each call of a server's tool; ``mcp_tools`` itself is Deskhand's own and asks nobody. Default:
ask for every call. What a server claims of its tools (``readOnlyHint`` …) changes the wording, never the decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from desktop.assistant.conversation import ToolCall
from desktop.catalog_entries import ToolDefinition

Decision = Literal["once", "conversation", "always", "deny"]


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    conversation_id: str
    call: ToolCall
    tool: ToolDefinition
    arguments: dict[str, Any]
    """The very arguments that will be sent if it is allowed."""


class Approver(Protocol):
    async def decide(self, request: ApprovalRequest) -> Decision:
        """The person's decision. Cancelled by Stop."""
        ...
