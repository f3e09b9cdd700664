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
from desktop.host.secret_command import printed_values
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import ServerLog
from desktop.host.server_references import SecretSource, resolve
from desktop.host.transport import StdioTransport


class Transports:
    """The transports of one attempt to connect. Secrets are fetched for the first, and serve again for a second one."""

    def __init__(
        self,
        definition: ServerDefinition,
        *,
        log: ServerLog,
        secret: SecretSource,
        read_large: LargeMessageReader | None,
        spool_folder: Path,
        builtin: Server[Any] | None,
    ) -> None:
        self._definition = definition
        self._log = log
        self._secret = secret
        self._read_large = read_large
        self._spool_folder = spool_folder
        self._builtin = builtin
        self._values: dict[str, str] | None = None

    async def open(self) -> Any:
        """One that is not entered yet; of the server nothing is started, and nothing is sent to it.

        Raises AssistantError: ``command_not_found``, ``variable_missing``, ``secret_missing``, ``secret_lookup_failed``,
        ``timeout`` (of commands for secrets), ``configuration_invalid`` and what `secret` raises.
        """
        definition = self._definition
        if definition.kind == "builtin":
            assert self._builtin is not None
            return self._builtin
        folder = definition.cwd or definition.folder
        if folder is not None and not await asyncio.to_thread(os.path.isdir, folder):
            raise AssistantError(
                "configuration_invalid",
                operation="connect",
                server=definition.name,
                where=" at cwd",
                reason="there is no such folder",
            )
        if self._values is None:
            values = definition.env if definition.kind == "stdio" else definition.headers
            printed = await printed_values(definition)
            self._values = await resolve(definition.name, values, self._secret, printed=printed)
        if definition.kind == "stdio":
            environment = await child_environment(self._values)
            command = resolve_command(definition.command, environment, folder)
            return StdioTransport(
                [command, *definition.args],
                environment=environment,
                folder=folder,
                log=self._log,
                read_large=self._read_large,
                spool_folder=self._spool_folder,
            )
        return HttpTransport(
            definition.url,
            headers=self._values,
            ca_file=definition.ca_file,
            log=self._log,
            read_large=self._read_large,
            spool_folder=self._spool_folder,
            sse=definition.kind == "sse",
        )
