"""Calls of tools and reads of resources, each checked before anything is sent to a server. Used by the assistant and the window.

What can be refused without a server is refused without connecting to it. Nothing is ever sent a second time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate
from mcp_types import CallToolResult, Completion, ReadResourceResult

from desktop.catalog_entries import TemplateEntry, ToolDefinition
from desktop.errors import AssistantError
from desktop.host.catalog import ServerCatalog
from desktop.host.host import Host
from desktop.host.requests import ProgressCallback
from desktop.uris import LIMIT, are_template_arguments, is_template, is_uri

_LONGEST_NAME = 512
_LARGEST_COMPLETION = 64 * 1024


class ServerAccess:
    """What is asked of servers for a conversation. Raises AssistantError alone; cancelling cancels on the wire."""

    def __init__(self, host: Host, catalog: ServerCatalog) -> None:
        self._host = host
        self._catalog = catalog

    async def call_tool(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], on_progress: ProgressCallback
    ) -> CallToolResult:
        """Calls a tool once, under the name its server knows.

        Where the server's tools are not known from this very connection, or were said to have changed, they are listed first:
        what was kept on disk is not enough for a call. Raises
        ``tool_changed``, ``server_disabled`` and ``server_unknown`` before anything is called.
        """
        await self._catalog.listed(tool.server, "tool", live=True)
        if (diagnostic := self._catalog.current(tool)) is not None:
            raise AssistantError.of(diagnostic)
        return await self._host.connection(tool.server).call_tool(tool.name, arguments, on_progress)

    async def read(self, server: str, uri: str) -> ReadResourceResult:
        """Reads exactly that URI from that server, listed or not. Raises ``resource_invalid`` before it connects."""
        connection = self._host.connection(server)
        if not is_uri(uri):
            raise AssistantError("resource_invalid", operation="read", server=server)
        return await connection.read_resource(uri)

    async def expand(self, server: str, template: str, arguments: Mapping[str, str | Sequence[str]]) -> str:
        """The URI that one of the server's own templates gives with these arguments. One that is missing expands to nothing.

        Raises ``resource_invalid`` when that is no valid URI, before it connects, and ``resource_not_found`` when the server
        has no such template.
        """
        self._host.connection(server)
        values = {name: value if isinstance(value, str) else list(value) for name, value in arguments.items()}
        uri = _expanded(template, values)
        if uri is None or not is_uri(uri):
            raise AssistantError("resource_invalid", operation="read", server=server)
        await self._template(server, template)
        return uri

    async def complete(
        self, server: str, template: str, name: str, value: str, context: Mapping[str, str]
    ) -> Completion:
        """Values the server suggests for a variable of one of its templates, given those of others; nothing else it says.

        Raises ``completion_invalid``, ``resource_not_found`` when the server has no such template, ``completions_unsupported``.
        """
        invalid = AssistantError("completion_invalid", operation="complete", server=server)
        whole = {"template": template, "argument": {"name": name, "value": value}, "arguments": dict(context)}
        if (
            not is_template(template)
            or not 0 < len(name) <= _LONGEST_NAME
            or len(value) > LIMIT
            or not are_template_arguments(whole["arguments"])
            or len(json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass")) > _LARGEST_COMPLETION
        ):
            raise invalid
        connection = self._host.connection(server)
        if name not in (await self._template(server, template)).variables:
            raise invalid
        completion = await connection.complete(template, name, value, context)
        return Completion(values=completion.values, total=completion.total, has_more=completion.has_more)

    async def _template(self, server: str, template: str) -> TemplateEntry:
        for entry in await self._catalog.listed(server, "template"):
            if isinstance(entry, TemplateEntry) and entry.template == template:
                return entry
        raise AssistantError("resource_not_found", operation="read", server=server)


def _expanded(template: str, values: dict[str, str | list[str]]) -> str | None:
    """The template filled in (RFC 6570), or None when template or values are not valid."""
    if not is_template(template) or not are_template_arguments(values):
        return None
    try:
        return UriTemplate.parse(template).expand(values)
    except InvalidUriTemplate:
        return None
