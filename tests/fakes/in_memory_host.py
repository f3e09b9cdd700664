"""What the host gives the assistant, in memory: servers whose tools are Python functions. For tests of the assistant alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_types import CallToolResult, Completion, ReadResourceResult, TextContent, TextResourceContents

from desktop.assistant.interfaces import ProgressCallback
from desktop.catalog_entries import CatalogEntry, KindFilter, SearchResult, ServerEntry, ToolDefinition, ToolLookup
from desktop.errors import AssistantError, Diagnostic
from desktop.tool_names import fingerprint, native_name

Body = Callable[[Mapping[str, Any], ProgressCallback], Awaitable[CallToolResult]]


def tool(
    server: str, name: str, *, description: str = "", schema: dict[str, Any] | None = None, **more: Any
) -> ToolDefinition:
    schema = schema or {"type": "object"}
    return ToolDefinition(
        server,
        name,
        native_name(server, name),
        description,
        schema,
        fingerprint([name, description, schema, more.get("annotations", {})]),
        fingerprint(server),
        **more,
    )


def text_result(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)


@dataclass
class Servers:
    """Satisfies Catalog, ToolRunner and ResourceReader.

    Attributes:
        entries: What is offered; a test changes it as it likes.
        bodies: What a tool does, by identifier; one without a body answers with its arguments.
        calls: Arguments of the calls that arrived, by identifier.
        cancelled: Identifiers of the calls that were cancelled while they ran.
        running: Set while a call runs.
        asked: Names of servers (or "*") that a search or a lookup contacted.
    """

    entries: list[CatalogEntry] = field(default_factory=list)
    names: list[ServerEntry] = field(default_factory=list)
    bodies: dict[str, Body] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    running: asyncio.Event = field(default_factory=asyncio.Event)
    searches: list[tuple[str, KindFilter, str | None, int]] = field(default_factory=list)
    not_searched: tuple[tuple[Diagnostic, tuple[str, ...]], ...] = ()
    near: tuple[str, ...] = ()
    disabled: set[str] = field(default_factory=set)
    reads: list[tuple[str, str]] = field(default_factory=list)
    fault: AssistantError | None = None
    """Raised by every read, expansion and completion."""
    lookup_gate: asyncio.Event | None = None
    """Where there is one, lookups wait for it."""

    @property
    def tools(self) -> list[ToolDefinition]:
        return [entry for entry in self.entries if isinstance(entry, ToolDefinition)]

    def redefine(self, identifier: str, **changes: Any) -> ToolDefinition:
        """Gives a tool another definition."""
        old = next(each for each in self.tools if each.identifier == identifier)
        changed = replace(old, **changes)
        changed = replace(
            changed,
            fingerprint=fingerprint([changed.name, changed.description, changed.input_schema, changed.annotations]),
        )
        self.entries[self.entries.index(old)] = changed
        return changed

    def servers(self) -> Sequence[ServerEntry]:
        return self.names or [ServerEntry(name) for name in sorted({entry.server for entry in self.entries})]

    async def search(
        self, query: str, *, kind: KindFilter = "all", server: str | None = None, limit: int = 5
    ) -> SearchResult:
        self.searches.append((query, kind, server, limit))
        if server is not None and server not in {each.name for each in self.servers()}:
            raise AssistantError("server_unknown", operation="search")
        found = [entry for entry in self.entries if server in (None, entry.server)][:limit]
        reasons = tuple(("identifier",) for _ in found)
        return SearchResult(tuple(found), tuple(float("inf") for _ in found), reasons, self.not_searched)

    async def look_up(self, identifiers: Sequence[str]) -> list[ToolLookup]:
        if self.lookup_gate is not None:
            await self.lookup_gate.wait()
        return [self._look_up(identifier) for identifier in identifiers]

    def _look_up(self, identifier: str) -> ToolLookup:
        for each in self.tools:
            if identifier in (each.identifier, each.native_name):
                if each.server in self.disabled:
                    return ToolLookup(identifier, diagnostic=Diagnostic("server_disabled", "activate", each.server))
                return ToolLookup(identifier, each)
        return ToolLookup(identifier, diagnostic=Diagnostic("tool_unknown", "activate"), near=self.near)

    def current(self, tool: ToolDefinition) -> Diagnostic | None:
        if tool.server in self.disabled:
            return Diagnostic("server_disabled", "call", tool.server)
        return None if tool in self.tools else Diagnostic("tool_changed", "call", tool.server)

    async def call_tool(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], on_progress: ProgressCallback
    ) -> CallToolResult:
        self.calls.append((tool.identifier, dict(arguments)))
        body = self.bodies.get(tool.identifier)
        self.running.set()
        try:
            return await body(arguments, on_progress) if body else text_result(f"{tool.name}: {dict(arguments)}")
        except asyncio.CancelledError:
            self.cancelled.append(tool.identifier)
            raise

    async def read(self, server: str, uri: str) -> ReadResourceResult:
        self._fail()
        self.reads.append((server, uri))
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=f"content of {uri}")])

    async def expand(self, server: str, template: str, arguments: Mapping[str, str | Sequence[str]]) -> str:
        self._fail()
        for name, value in arguments.items():
            template = template.replace(f"{{{name}}}", value if isinstance(value, str) else ",".join(value))
        return template

    async def complete(
        self, server: str, template: str, name: str, value: str, context: Mapping[str, str]
    ) -> Completion:
        self._fail()
        return Completion(values=[f"{value}{each}" for each in ("1", "2\u202e")], total=2, has_more=False)

    def _fail(self) -> None:
        if self.fault is not None:
            raise self.fault
