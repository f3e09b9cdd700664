"""One server: what can be asked of it, from any task. Used by the host, the catalog and whoever talks to servers.

A connection is made on first need (`lifecycle.py`). Everything raises AssistantError alone. A tool call is sent once and never
again; whoever stops waiting for an answer cancels the request on the wire.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp import MCPError
from mcp.client.session import IncomingMessage
from mcp.server import Server
from mcp_types import (
    CallToolResult,
    Completion,
    ElicitCompleteNotification,
    GetPromptResult,
    LoggingMessageNotification,
    Prompt,
    PromptListChangedNotification,
    PromptReference,
    ReadResourceResult,
    Resource,
    ResourceListChangedNotification,
    ResourceTemplate,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    ServerCapabilities,
    Tool,
    ToolListChangedNotification,
)

from desktop.errors import AssistantError
from desktop.host.consent import Consent
from desktop.host.exact_json import EXACT_META
from desktop.host.large_messages import LargeMessageReader
from desktop.host.lifecycle import BACKOFF, SETTLED_AFTER, Lifecycle
from desktop.host.list_changes import listen_for_list_changes
from desktop.host.list_reading import ListReading
from desktop.host.output_schema import OutputSchema
from desktop.host.own_meta import OwnMeta
from desktop.host.remembered import Remembered
from desktop.host.requester import Requester
from desktop.host.requests import Life, Progress, ProgressCallback
from desktop.host.roots import Roots, tell_of_change
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import Level, ServerLog
from desktop.host.server_questions import Desk, ServerQuestions
from desktop.host.server_references import SecretSource
from desktop.host.server_state import ServerState
from desktop.host.subscriptions import Subscriptions
from desktop.host.time_limits import Limits
from desktop.host.transports import Transports
from desktop.signals import Signal

_LONGEST_CALL = 3600.0
"""Seconds, however much progress a call reports."""
_MISMATCH_META = "deskhand/schemaMismatch"
#: The protocol's levels; those that are not here are worse than an error.
_LEVELS: dict[str, Level] = {"debug": "debug", "info": "info", "notice": "info", "warning": "warning"}


class Connection:
    """A server's connection.

    Attributes:
        definition: As configured; a changed definition is another connection.
        log: The server's error output and notices.
        state_changed: Emitted soon after each change of `state`.
        list_changed: Emitted with ``tools``, ``resources`` or ``prompts`` when the server says so, and with each of them
            when it has been connected anew.
        subscriptions: Its resources that are watched.
        keeping: How a list that was read last may be kept, by kind.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        *,
        log: ServerLog,
        consent: Consent,
        legacy_servers: Remembered,
        secret: SecretSource,
        read_large: LargeMessageReader | None,
        spool_folder: Path,
        desk: Desk | None = None,
        roots: Roots | None = None,
        builtin: Server[Any] | None = None,
        backoff: Sequence[float] = BACKOFF,
        settled_after: float = SETTLED_AFTER,
        longest_call: float = _LONGEST_CALL,
    ) -> None:
        """`legacy_servers` remembers which servers need the older handshake; `builtin` is the server of a definition of that
        kind. Nothing is started yet."""
        self.definition = definition
        self.log = log
        self.list_changed: Signal[str] = Signal()
        self._longest_call = longest_call
        self._own_meta = OwnMeta(read_large)
        self._output_schemas: dict[str, OutputSchema] = {}
        self.subscriptions = Subscriptions(
            definition.name,
            lambda send: self._requester.ask("subscribe", send),
            longest_wait=definition.request_time_limit,
        )
        self._questions = ServerQuestions(definition.name, desk or Desk(), log)
        self._lifecycle = Lifecycle(
            definition,
            log=log,
            consent=consent,
            legacy_servers=legacy_servers,
            transports=lambda: Transports(
                definition,
                log=log,
                secret=secret,
                read_large=self._own_meta.read_large,
                spool_folder=spool_folder,
                builtin=builtin,
            ),
            heard=self._heard,
            asked=self._questions.elicit if self._questions.can_ask else None,
            roots=roots or Roots(),
            connected=self._connected,
            backoff=backoff,
            settled_after=settled_after,
        )
        self._requester = Requester(definition, self._lifecycle, log)
        self._lists = ListReading(definition, self._lifecycle, self._requester)
        self.state_changed = self._lifecycle.state_changed
        self.keeping = self._lists.keeping

    @property
    def state(self) -> ServerState:
        return self._lifecycle.state

    @property
    def capabilities(self) -> ServerCapabilities | None:
        """What the server says it can do; None while it is not connected."""
        life = self._lifecycle.life
        return life.client.server_capabilities if life else None

    async def connect(self) -> None:
        """Connects unless it is connected; whoever asks meanwhile shares the attempt, and a cancelled one doesn't end it.

        Raises AssistantError: ``server_disabled``, ``consent_required``, ``cancelled`` (closed meanwhile), and what went wrong.
        """
        await self._lifecycle.connect()

    async def reconnect(self) -> None:
        """Leaves the server, whatever it is doing, and connects anew. Raises like `connect`."""
        await self.close()
        await self.connect()

    async def close(self, *, for_good: bool = False) -> None:
        """Leaves the server within some 6 seconds; whoever waits for an answer gets ``cancelled``. It may be connected again,
        unless it was closed `for_good`."""
        await self._lifecycle.close(for_good=for_good)

    def consent_changed(self) -> None:
        """Takes notice of consent that was given meanwhile."""
        self._lifecycle.consent_changed()

    def roots_changed(self) -> None:
        """Tells the server, if it is connected and can ask, that another folder is open."""
        if (life := self._lifecycle.life) is not None:
            life.accompany(tell_of_change(life.client))

    async def list_tools(self) -> list[Tool]:
        """All tools that the definition's filters let through."""
        tools: list[Tool] = await self._lists.read(
            "tool",
            lambda offered: offered.tools,
            lambda tool: tool.name,
            lambda tool: self.definition.offers(tool.name),
        )
        schemas = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}
        life = self._lifecycle.life
        schemas |= life.client.bad_output_schemas if life else {}
        self._output_schemas = {name: OutputSchema(schema) for name, schema in schemas.items()}
        return tools

    async def list_resources(self) -> list[Resource]:
        return await self._lists.read("resource", lambda offered: offered.resources, lambda resource: str(resource.uri))

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        return await self._lists.read(
            "template", lambda offered: offered.resources, lambda template: template.uri_template
        )

    async def list_prompts(self) -> list[Prompt]:
        return await self._lists.read("prompt", lambda offered: offered.prompts, lambda prompt: prompt.name)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], on_progress: ProgressCallback | None = None
    ) -> CallToolResult:
        """Calls a tool once. `on_progress` hears at most ten times a second.

        The text of its structured content, as the server wrote it, is under ``deskhand/structuredText`` in its ``_meta``. A
        result that doesn't fit the tool's output schema, as it was listed last, says so under ``deskhand/schemaMismatch``; one
        whose message was too large to come whole is not checked.
        """
        limits = Limits(self.definition.call_time_limit, self._longest_call)
        progress = Progress(limits, on_progress)
        with self._questions.call(limits):
            try:
                result, exact_text = await self._requester.ask(
                    "call",
                    lambda client: client.call(name, dict(arguments), progress.noticed, self._requester.log_faults),
                    limits,
                    lambda seconds: progress.report(0, None, f"The server takes the next request in {seconds} s."),
                )
            except AssistantError as error:
                if error.diagnostic.code != "elicitation_required" or not isinstance(error.__cause__, MCPError):
                    raise
                raise await self._questions.pages(error, error.__cause__.error.data) from error.__cause__
            finally:
                progress.end()
        large = self._own_meta.keep(result)
        if exact_text is not None:
            result.meta = {**(result.meta or {}), EXACT_META: exact_text}
        schema = self._output_schemas.get(name)
        if schema is not None and not large and not result.is_error:
            reason = await schema.mismatch(result)
            if reason is not None:
                result.meta = {**(result.meta or {}), _MISMATCH_META: reason}
        return result

    async def read_resource(self, uri: str) -> ReadResourceResult:
        await self._requester.require("read", lambda capabilities: capabilities.resources, "resources_unsupported")
        result = await self._requester.ask("read", lambda client: client.read(uri, self._requester.log_faults))
        self._own_meta.keep(result)
        return result

    async def complete(
        self,
        reference: ResourceTemplateReference | PromptReference,
        argument_name: str,
        value: str,
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """Values the server suggests for a template's variable or a prompt's argument, given those of others."""
        await self._requester.require(
            "complete", lambda capabilities: capabilities.completions, "completions_unsupported"
        )
        argument = {"name": argument_name, "value": value}
        result = await self._requester.ask(
            "complete",
            lambda client: client.complete(reference, argument, dict(context) if context else None),
        )
        return result.completion

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> GetPromptResult:
        await self._requester.require("prompt", lambda capabilities: capabilities.prompts, "prompts_unsupported")
        told = self._requester.log_faults
        return await self._requester.ask("prompt", lambda client: client.prompt(name, dict(arguments or {}), told))

    def _connected(self, life: Life, anew: bool) -> None:
        life.accompany(listen_for_list_changes(life.client, self._all_lists_changed))
        life.accompany(self.subscriptions.serve(life.client))
        if anew:
            self._all_lists_changed()

    async def _heard(self, message: IncomingMessage) -> None:
        """What the server says unasked, and what could not be understood."""
        match message:
            case ToolListChangedNotification():
                self._list_changed("tools")
            case ResourceListChangedNotification():
                self._list_changed("resources")
            case PromptListChangedNotification():
                self._list_changed("prompts")
            case LoggingMessageNotification(params=params):
                text = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
                self.log.append(f"{params.level}: {text}", "message", _LEVELS.get(params.level, "error"))
            case ResourceUpdatedNotification(params=params):
                self.subscriptions.noticed(str(params.uri))
            case ElicitCompleteNotification(params=params):
                self._questions.completed(params.elicitation_id)
            case Exception():
                self.log.append(f"not understood: {type(message).__name__}", level="warning")
            case _:
                pass

    def _list_changed(self, which: str) -> None:
        # Soon and not now: what a watcher raises must reach the loop's hook, not the SDK.
        asyncio.get_running_loop().call_soon(self.list_changed.emit, which)

    def _all_lists_changed(self) -> None:
        for which in ("tools", "resources", "prompts"):
            self._list_changed(which)
