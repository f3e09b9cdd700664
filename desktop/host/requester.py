"""Requests to one server from any task: connected on demand, sent again only where they had no effect, and what went wrong is
noted in the log. Used by the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mcp_types import ServerCapabilities
from pydantic import ValidationError

from desktop.errors import AssistantError, Operation
from desktop.host.diagnostics import known, server_words
from desktop.host.lifecycle import Lifecycle
from desktop.host.sdk_client import SdkClient
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import ServerLog
from desktop.host.time_limits import Limits

#: How often a request waits for a server that takes no more for now.
_MOST_WAITS = 5
_MOST_FAULTS_TOLD = 5

Answer = TypeVar("Answer")


class Requester:
    def __init__(self, definition: ServerDefinition, lifecycle: Lifecycle, log: ServerLog) -> None:
        self._definition = definition
        self._lifecycle = lifecycle
        self._log = log

    async def ask(
        self,
        operation: Operation,
        send: Callable[[SdkClient], Coroutine[Any, Any, Answer]],
        limits: Limits | None = None,
        told_to_wait: Callable[[int], None] = lambda _: None,
    ) -> Answer:
        """Connects if need be and sends a request.

        It is sent again where it had no effect: once to a server that had forgotten us, unless it is a call, and to one that
        takes no more for now, after the seconds it asks for, as long as they are within the limits.
        """
        limits = limits or Limits(self._definition.request_time_limit, self._definition.request_time_limit)
        forgotten = False
        for attempt in range(1 + _MOST_WAITS):
            life = await self._lifecycle.lively()
            try:
                return await life.request(operation, lambda client=life.client: send(client), limits)
            except AssistantError as error:
                self._log_cause(error)
                code, seconds = error.diagnostic.code, error.diagnostic.values.get("seconds")
                if code == "session_lost" and operation != "call" and not forgotten:
                    forgotten = True
                elif (
                    code == "rate_limited"
                    and isinstance(seconds, int)
                    and attempt < _MOST_WAITS
                    and seconds < limits.left()
                ):
                    self._log.append(f"The request is sent again in {seconds} s, as the server asks.")
                    told_to_wait(seconds)
                    await asyncio.sleep(seconds)
                    limits.sign_of_life()
                else:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def require(
        self, operation: Operation, capability: Callable[[ServerCapabilities], object], code: str
    ) -> None:
        """Raises AssistantError `code` where the server doesn't have a capability."""
        life = await self._lifecycle.lively()
        if capability(life.client.server_capabilities) is None:
            raise known(code, operation, self._definition.name)

    def _log_cause(self, error: AssistantError) -> None:
        """A diagnostic has no text of servers; the log may."""
        cause = error.__cause__
        if isinstance(cause, ValidationError):
            self.log_faults(cause)
        elif cause is not None and (words := server_words(cause)) is not None:
            self._log.append(words, "message", "error")

    def log_faults(self, error: ValidationError) -> None:
        """Notes where an answer is outside the protocol; not its values, which may be secret."""
        self._log.extend(
            f"outside the protocol: {'.'.join(map(str, fault['loc']))}: {fault['type']}"
            for fault in error.errors(include_input=False, include_url=False)[:_MOST_FAULTS_TOLD]
        )
