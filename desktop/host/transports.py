"""The transport for a server's definition: what the SDK's client is entered with. Used by the connection."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from mcp.server import Server

from desktop.errors import AssistantError
from desktop.host.environment import child_environment, resolve_command
from desktop.host.http_transport import HttpTransport
from desktop.host.large_messages import LargeMessageReader
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import ServerLog
from desktop.host.server_references import SecretSource, resolve
from desktop.host.transport import StdioTransport


async def open_transport(
    definition: ServerDefinition,
    *,
    log: ServerLog,
    secret: SecretSource,
    read_large: LargeMessageReader | None,
    spool_folder: Path,
    builtin: Server[Any] | None,
) -> Any:
    """A transport that is not entered yet; nothing is started or sent. Secrets are fetched now, and kept by it alone.

    Raises AssistantError: ``command_not_found``, ``variable_missing``, ``secret_missing``, ``configuration_invalid`` and what
    `secret` raises.
    """
    if definition.kind == "builtin":
        assert builtin is not None
        return builtin
    if definition.kind == "stdio":
        environment = await child_environment(await resolve(definition.name, definition.env, secret))
        folder = definition.cwd or definition.folder
        if folder is not None and not await asyncio.to_thread(os.path.isdir, folder):
            raise AssistantError(
                "configuration_invalid",
                operation="connect",
                server=definition.name,
                where=" at cwd",
                reason="there is no such folder",
            )
        command = resolve_command(definition.command, environment, folder)
        return StdioTransport(
            [command, *definition.args],
            environment=environment,
            folder=folder,
            log=log,
            read_large=read_large,
            spool_folder=spool_folder,
        )
    return HttpTransport(
        definition.url,
        headers=await resolve(definition.name, definition.headers, secret),
        ca_file=definition.ca_file,
        log=log,
        read_large=read_large,
        spool_folder=spool_folder,
        sse=definition.kind == "sse",
    )
