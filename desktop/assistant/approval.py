"""Who may run what: the question, the decision, and the standing rules.

The turn asks `Approvals` before each call of a server's tool; ``mcp_tools`` itself is Deskhand's own and asks nobody. Default:
ask for every call. What a server claims of its tools (``readOnlyHint`` …) changes the wording, never the decision.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol
from weakref import WeakValueDictionary

from desktop.assistant import stored_definitions
from desktop.assistant.conversation import ToolCall
from desktop.catalog_entries import ToolDefinition
from desktop.paths import write_private
from desktop.signals import Signal

logger = logging.getLogger(__name__)

Decision = Literal["once", "conversation", "always", "deny", "never"]
"""``conversation`` holds until Deskhand ends; ``always`` and ``never`` are standing rules."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    conversation_id: str
    call: ToolCall
    tool: ToolDefinition
    arguments: dict[str, Any]
    """The very arguments that will be sent if it is allowed."""
    other_servers: frozenset[str] = frozenset()
    """Servers other than the tool's own whose content is in the conversation, and may have led the model to this call."""
    previous: ToolDefinition | None = None
    """Set where the question is another one: whether to accept that the tool's definition changed from this one to `tool`.
    The call is then the ``mcp_tools`` call that wants to activate it, and there are no arguments."""


class Approver(Protocol):
    async def decide(self, request: ApprovalRequest) -> Decision:
        """The person's decision. Cancelled by Stop."""
        ...


class AllowAll:
    """Asks nobody: for a run in which everything was allowed beforehand."""

    async def decide(self, request: ApprovalRequest) -> Decision:
        return "once"


class DenyAll:
    """Where there is nobody to ask: what no standing rule allows is denied."""

    async def decide(self, request: ApprovalRequest) -> Decision:
        return "deny"


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing decision on one tool, or on all tools that a server had when the rule was made."""

    server: str
    tool: str | None
    """None: the whole server."""
    allowed: bool
    definitions: tuple[ToolDefinition, ...]
    """What the person allowed. A tool whose definition is not among them any more is asked about again; a prohibition
    holds for any definition of the tool."""
    also_after_others: bool = False
    """Holds as well when content of another server is in the conversation."""

    def allows(self, tool: ToolDefinition) -> bool:
        return self.allowed and any(_same(each, tool) for each in self.definitions)

    def forbids(self, tool: ToolDefinition) -> bool:
        return not self.allowed and (self.server, self.tool) == (tool.server, tool.name)


class Approvals:
    """The rules and the file they live in; asks the person where no rule decides.

    Attributes:
        changed: Emitted after a change of the rules.
        fault: Why the file could not be read (an exception's type), or None. There are no rules then, and the file is kept
            under another name when the first new rule is written.
    """

    def __init__(self, file: Path, approver: Approver) -> None:
        self.changed: Signal[()] = Signal()
        self.fault: str | None = None
        self._file = file
        self._approver = approver
        self._rules: tuple[Rule, ...] = ()
        self._in_conversation: set[tuple[str, str, str]] = set()
        self._accepted: set[tuple[str, str]] = set()
        self._asking: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._read()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All standing rules, by server and tool."""
        return self._rules

    async def decide(self, request: ApprovalRequest) -> Decision:
        """What the rules say, or else the person. ``deny`` also stands for ``never``.

        Calls of one tool in one conversation are asked about one after the other, so that the first answer may settle the rest.
        """
        tool = request.tool
        lock = self._asking.setdefault((request.conversation_id, tool.native_name), asyncio.Lock())
        async with lock:
            if any(rule.forbids(tool) for rule in self._rules):
                return "deny"
            if (request.conversation_id, tool.fingerprint, tool.identity) in self._in_conversation:
                return "conversation"
            if any(rule.allows(tool) and (rule.also_after_others or not request.other_servers) for rule in self._rules):
                return "always"
            decision = await self._approver.decide(request)
        match decision:
            case "conversation":
                self._in_conversation.add((request.conversation_id, tool.fingerprint, tool.identity))
            case "always":
                # Asked because of other servers' content, a rule there is already stays as the person marked it.
                if not any(rule.allows(tool) for rule in self._rules):
                    self._set(Rule(tool.server, tool.name, True, (tool,)))
            case "never":
                self._set(Rule(tool.server, tool.name, False, (tool,)))
                return "deny"
            case "once" | "deny":
                pass
        return decision

    def previous(self, tool: ToolDefinition, active: ToolDefinition | None) -> ToolDefinition | None:
        """The definition that the person knew before this one, where it is to be accepted first: that of a standing rule, or the
        one that was `active` in the conversation. None: nothing has changed, or it was accepted in this run.
        """
        known = [each for rule in self._rules if rule.allowed for each in rule.definitions if _named_alike(each, tool)]
        if active is not None:
            known.append(active)
        if (tool.server, tool.fingerprint) in self._accepted or any(
            each.fingerprint == tool.fingerprint for each in known
        ):
            return None
        return known[0] if known else None

    async def accept(self, request: ApprovalRequest) -> bool:
        """Whether the person accepts that `request.previous` became `request.tool`; ``always`` and ``never`` become rules."""
        tool = request.tool
        decision = await self._approver.decide(request)
        if decision == "never":
            self._set(Rule(tool.server, tool.name, False, (tool,)))
        if decision in ("deny", "never"):
            return False
        self._accepted.add((tool.server, tool.fingerprint))
        if decision == "always":
            self._set(Rule(tool.server, tool.name, True, (tool,)))
        return True

    def allow_server(self, server: str, tools: Iterable[ToolDefinition]) -> None:
        """Allows all that a server offers now, for good. A tool that it adds or changes later is asked about."""
        self._set(Rule(server, None, True, tuple(tools)))

    def mark(self, rule: Rule, *, also_after_others: bool) -> None:
        """Sets whether a rule holds when content of other servers is in the conversation."""
        marked = dataclasses.replace(rule, also_after_others=also_after_others)
        self._change(lambda rules: [marked if each == rule else each for each in rules])

    def revoke(self, rule: Rule) -> None:
        """Takes a rule back; one that is not there any more is no error."""
        self._change(lambda rules: [each for each in rules if each != rule])

    def end_conversation(self, conversation_id: str) -> None:
        """Forgets what was allowed in a conversation."""
        self._in_conversation = {each for each in self._in_conversation if each[0] != conversation_id}

    def _set(self, rule: Rule) -> None:
        self._change(
            lambda rules: [*(each for each in rules if (each.server, each.tool) != (rule.server, rule.tool)), rule]
        )

    def _change(self, change: Callable[[Iterable[Rule]], list[Rule]]) -> None:
        """Changes the rules as the file has them now, which another Deskhand may have written meanwhile."""
        self._read()
        rules = tuple(sorted(change(self._rules), key=lambda rule: (rule.server, rule.tool or "")))
        if rules == self._rules:
            return
        self._rules = rules
        try:
            if self.fault is not None:
                self._file.rename(_unused(self._file))
                self.fault = None
            content = {"rules": [_to_json(rule) for rule in rules]}
            write_private(self._file, json.dumps(content, indent=1, ensure_ascii=False).encode("utf-8", "replace"))
        except OSError as error:
            logger.warning("The approvals could not be written and hold for this run only: %s", type(error).__name__)
        self.changed.emit()

    def _read(self) -> None:
        """Takes the rules of the file; all or none, so that no half-read prohibition is lost at the next write."""
        if self.fault is not None:
            return
        try:
            content = json.loads(self._file.read_bytes())
            self._rules = tuple(_from_json(each) for each in content["rules"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            self.fault = type(error).__name__
            logger.warning("%s could not be read; there are no standing approvals: %s", self._file.name, self.fault)


def _named_alike(one: ToolDefinition, other: ToolDefinition) -> bool:
    return (one.server, one.name) == (other.server, other.name)


def _same(one: ToolDefinition, other: ToolDefinition) -> bool:
    return _named_alike(one, other) and (one.fingerprint, one.identity) == (other.fingerprint, other.identity)


def _to_json(rule: Rule) -> dict[str, Any]:
    return {
        "server": rule.server,
        "tool": rule.tool,
        "allowed": rule.allowed,
        "alsoAfterOthers": rule.also_after_others,
        "definitions": [stored_definitions.to_json(each) for each in rule.definitions],
    }


def _from_json(content: Any) -> Rule:
    """Raises ValueError, KeyError or TypeError for what `_to_json` did not write."""
    definitions = tuple(stored_definitions.from_json(each) for each in content["definitions"])
    server, tool, allowed = content["server"], content["tool"], content["allowed"]
    if not isinstance(server, str) or not isinstance(tool, str | None) or not isinstance(allowed, bool):
        raise TypeError("not a rule")
    return Rule(server, tool, allowed, definitions, content.get("alsoAfterOthers") is True)


def _unused(file: Path) -> Path:
    """A name beside the file that nothing has yet."""
    number = 1
    while (name := file.with_name(f"{file.name}.unreadable-{number}")).exists():
        number += 1
    return name
