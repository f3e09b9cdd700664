"""What the assistant needs of the outside, as small protocols: ``host`` satisfies them, ``core.py`` joins the two.

Each raises `AssistantError` for what went wrong with a server, and lets cancellation through: cancelling the awaiting task
is how a call is stopped, also on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from desktop.catalog_entries import KindFilter, SearchResult, ServerEntry, ToolDefinition, ToolLookup
from desktop.errors import Diagnostic

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Completion, ReadResourceResult

#: progress, total (None: unknown), message
ProgressCallback = Callable[[float, "float | None", "str | None"], None]


class Catalog(Protocol):
    """What all enabled servers offer. Connects to a server on first need, at most four at a time."""

    def servers(self) -> Sequence[ServerEntry]:
        """The enabled servers in sorted order, the built-in one included."""
        ...

    async def search(
        self, query: str, *, kind: KindFilter = "all", server: str | None = None, limit: int = 5
    ) -> SearchResult:
        """The `limit` (1 to 50) best entries for a query. Raises ``server_unknown`` and ``server_disabled`` for `server`."""
        ...

    async def look_up(self, identifiers: Sequence[str]) -> list[ToolLookup]:
        """The tools that identifiers stand for, exactly and case-sensitively; one answer an identifier, in their order."""
        ...

    def current(self, tool: ToolDefinition) -> Diagnostic | None:
        """Why a tool that was looked up earlier must not be called any more (changed, removed, server disabled), or None."""
        ...


class ToolRunner(Protocol):
    async def call_tool(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], on_progress: ProgressCallback
    ) -> CallToolResult:
        """Calls a tool once; never again by itself. A result that doesn't match the tool's output schema is returned all the
        same, with the key ``deskhand/schemaMismatch`` in its ``_meta``."""
        ...


class ResourceReader(Protocol):
    async def read(self, server: str, uri: str) -> ReadResourceResult: ...

    async def expand(self, server: str, template: str, arguments: Mapping[str, str | Sequence[str]]) -> str:
        """The URI that one of the server's own templates gives. Raises ``resource_not_found``, ``resource_invalid``."""
        ...

    async def complete(
        self, server: str, template: str, name: str, value: str, context: Mapping[str, str]
    ) -> Completion:
        """Values the server suggests for a variable of one of its templates."""
        ...
