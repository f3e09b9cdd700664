"""Calls of tools and reads of resources, each checked before anything is sent to a server. Used by the assistant and the window.

What can be refused without a server is refused without connecting to it. Nothing is ever sent a second time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate
from mcp_types import (
    CallToolResult,
    Completion,
    GetPromptResult,
    PromptReference,
    ReadResourceResult,
    ResourceTemplateReference,
)

from desktop.catalog_entries import PromptEntry, TemplateEntry, ToolDefinition
from desktop.errors import AssistantError
from desktop.host.catalog import ServerCatalog
from desktop.host.host import Host
from desktop.host.requests import ProgressCallback
from desktop.uris import LIMIT, are_template_arguments, is_template, is_uri
from desktop.visible_text import one_line

_LONGEST_NAME = 512
_LARGEST_COMPLETION = 64 * 1024
_LARGEST_ARGUMENTS = 64 * 1024


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
        if not is_template(template) or not _can_be_completed(template, name, value, context):
            raise AssistantError("completion_invalid", operation="complete", server=server)
        self._host.connection(server)
        if name not in (await self._template(server, template)).variables:
            raise AssistantError("completion_invalid", operation="complete", server=server)
        return await self._completion(server, ResourceTemplateReference(uri=template), name, value, context)

    async def complete_prompt(
        self, server: str, prompt: str, name: str, value: str, context: Mapping[str, str]
    ) -> Completion:
        """Values the server suggests for an argument of one of its prompts, given those of others; nothing else it says.

        Raises ``completion_invalid``, ``prompt_not_found``, ``completions_unsupported``.
        """
        if not _can_be_completed(prompt, name, value, context):
            raise AssistantError("completion_invalid", operation="complete", server=server)
        entry = await self._prompt(server, prompt)
        if name not in {argument.name for argument in entry.arguments}:
            raise AssistantError("completion_invalid", operation="complete", server=server)
        return await self._completion(server, PromptReference(name=prompt), name, value, context)

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> GetPromptResult:
        """The prompt with these arguments, fetched once; an empty string is a value, too.

        Raises, before it is fetched, ``prompt_not_found``, and ``arguments_invalid`` for one that is missing, unknown, of more
        than 4,096 characters, or where all are more than 64 KiB.
        """
        entry = await self._prompt(server, name)
        if (reason := _fault_of(arguments, entry)) is not None:
            raise AssistantError("arguments_invalid", operation="prompt", server=server, reason=reason)
        return await self._host.connection(server).get_prompt(name, arguments)

    async def _prompt(self, server: str, name: str) -> PromptEntry:
        self._host.connection(server)
        for entry in await self._catalog.listed(server, "prompt"):
            if isinstance(entry, PromptEntry) and entry.name == name:
                return entry
        raise AssistantError("prompt_not_found", operation="prompt", server=server)

    async def _completion(
        self,
        server: str,
        reference: ResourceTemplateReference | PromptReference,
        name: str,
        value: str,
        context: Mapping[str, str],
    ) -> Completion:
        completion = await self._host.connection(server).complete(reference, name, value, context)
        return Completion(values=completion.values, total=completion.total, has_more=completion.has_more)

    async def _template(self, server: str, template: str) -> TemplateEntry:
        for entry in await self._catalog.listed(server, "template"):
            if isinstance(entry, TemplateEntry) and entry.template == template:
                return entry
        raise AssistantError("resource_not_found", operation="read", server=server)


def _can_be_completed(of: str, name: str, value: str, context: Mapping[str, str]) -> bool:
    """Whether the request for a completion is within the limits: 4,096 characters a value, 64 KiB in all."""
    whole = {"of": of, "argument": {"name": name, "value": value}, "arguments": dict(context)}
    return (
        0 < len(name) <= _LONGEST_NAME
        and len(value) <= LIMIT
        and are_template_arguments(whole["arguments"])
        and len(json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass")) <= _LARGEST_COMPLETION
    )


def _fault_of(arguments: Mapping[str, str], prompt: PromptEntry) -> str | None:
    """What is wrong with a prompt's arguments, or None."""
    known = {argument.name for argument in prompt.arguments}
    if unknown := next((name for name in arguments if name not in known), None):
        return f"the prompt has no argument {one_line(unknown, 80)}"
    for argument in prompt.arguments:
        if argument.required and argument.name not in arguments:
            return f"{one_line(argument.name, 80)} is required"
        if len(arguments.get(argument.name, "")) > LIMIT:
            return f"{one_line(argument.name, 80)} has more than {LIMIT:,} characters"
    if len(json.dumps(dict(arguments), ensure_ascii=False).encode("utf-8", "surrogatepass")) > _LARGEST_ARGUMENTS:
        return "together they are larger than 64 KiB"
    return None


def _expanded(template: str, values: dict[str, str | list[str]]) -> str | None:
    """The template filled in (RFC 6570), or None when template or values are not valid."""
    if not is_template(template) or not are_template_arguments(values):
        return None
    try:
        return UriTemplate.parse(template).expand(values)
    except InvalidUriTemplate:
        return None
