"""What may be said of an exception: the one place where exceptions of the SDK and the system become diagnostics.

Used by the connection and whatever calls the SDK. Only an exception's type and its protocol code decide, never its text, which
may come from a server or hold a secret.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from typing import cast

import httpx2
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
)
from pydantic import ValidationError

from desktop.errors import AssistantError, Diagnostic, Operation, os_reason
from desktop.host.http_failure import HttpFailure
from desktop.host.large_messages import LARGEST_MESSAGE, MESSAGE_NOT_READ, MESSAGE_TOO_LARGE, MIB

_LONGEST_CHAIN = 4
#: Of the 2025 revisions; later ones use INVALID_PARAMS.
_RESOURCE_NOT_FOUND = -32002
_BY_ERROR: dict[int, str] = {
    REQUEST_TIMEOUT: "timeout",
    CONNECTION_CLOSED: "connection_failed",
    PARSE_ERROR: "protocol_error",
    MISSING_REQUIRED_CLIENT_CAPABILITY: "capability_required",
    UNSUPPORTED_PROTOCOL_VERSION: "protocol_unsupported",
    URL_ELICITATION_REQUIRED: "elicitation_required",
}
_BY_ERROR_AND_OPERATION: dict[tuple[int, Operation], str] = {
    (INVALID_PARAMS, "read"): "resource_not_found",
    (_RESOURCE_NOT_FOUND, "read"): "resource_not_found",
    (INVALID_PARAMS, "complete"): "completion_invalid",
    (INVALID_PARAMS, "prompt"): "prompt_invalid",
    (METHOD_NOT_FOUND, "read"): "resources_unsupported",
    (METHOD_NOT_FOUND, "complete"): "completions_unsupported",
    (METHOD_NOT_FOUND, "prompt"): "prompts_unsupported",
    (METHOD_NOT_FOUND, "connect"): "protocol_error",
}
_BY_STATUS = {401: "authentication_required", 403: "permission_denied"}
_BY_TYPE: tuple[tuple[type[BaseException], str], ...] = (
    (asyncio.CancelledError, "cancelled"),
    (TimeoutError, "timeout"),
    (httpx2.TimeoutException, "timeout"),
    (ssl.SSLCertVerificationError, "certificate_refused"),
    (ValidationError, "protocol_error"),
)
_LESS_TELLING: tuple[tuple[type[BaseException], str], ...] = (
    (httpx2.HTTPError, "connection_failed"),
    (httpx2.StreamError, "connection_failed"),
    (OSError, "connection_failed"),
)
_UNKNOWN_OUTCOME_CODES = ("connection_failed", "server_exited", "timeout")
_OTHERWISE: dict[Operation, str] = {"connect": "connection_failed"}


def classify(exception: BaseException, operation: Operation, server: str | None) -> AssistantError:
    """The error that stands for an exception; one with a diagnostic keeps its code, operation and values.

    The exception and the causes behind it are asked in turn, at most four, and the most telling answers.
    """
    less_telling: str | None = None
    for each in _chain(exception):
        if isinstance(each, AssistantError):
            of = each.diagnostic
            return AssistantError.of(Diagnostic(of.code, of.operation or operation, of.server or server, of.values))
        if isinstance(each, MCPError):
            failure = HttpFailure.of(each)
            if failure is not None:
                return known(failure.code, operation, server, **failure.values)
            return _of_server(each.code, operation, server)
        if isinstance(each, httpx2.HTTPStatusError) and each.response.status_code in _BY_STATUS:
            return known(_BY_STATUS[each.response.status_code], operation, server)
        for type_, code in _BY_TYPE:
            if isinstance(each, type_):
                return known(code, operation, server)
        less_telling = less_telling or next((code for type_, code in _LESS_TELLING if isinstance(each, type_)), None)
    if operation == "configuration":  # whatever was looked for there: it is the definition that names it
        reason = next((os_reason(each) for each in _chain(exception) if isinstance(each, OSError)), "it can't be used")
        return known("configuration_invalid", operation, server, reason=reason)
    return known(less_telling or _OTHERWISE.get(operation, "operation_failed"), operation, server)


def known(code: str, operation: Operation, server: str | None, **values: str | int) -> AssistantError:
    """An error of a code; of a call that broke off it says that its effect is not known."""
    if operation == "call" and code in _UNKNOWN_OUTCOME_CODES:
        values["outcome"] = "; whether the call took effect is not known"
    return AssistantError(code, operation=operation, server=server, **values)


def server_words(exception: BaseException) -> str | None:
    """What a server said of an error that it answered with, for its log alone; None: it said nothing."""
    for each in _chain(exception):
        if isinstance(each, MCPError):
            return None if HttpFailure.of(each) else f"error {each.code}: {each.message}"
    return None


def _of_server(number: int, operation: Operation, server: str | None) -> AssistantError:
    """What an error answer of the protocol means; its number is all that is told of it."""
    if (number, operation) == (INVALID_PARAMS, "call"):
        reason = "the server refused the tool's name or its arguments"
        return AssistantError("arguments_invalid", operation=operation, server=server, reason=reason)
    code = _BY_ERROR_AND_OPERATION.get((number, operation)) or _BY_ERROR.get(number)
    if number == MESSAGE_TOO_LARGE:
        limit = LARGEST_MESSAGE // MIB
        return AssistantError("message_too_large", operation=operation, server=server, limit=limit)
    if number == MESSAGE_NOT_READ:
        reason = "the server's large answer could not be stored"
        return AssistantError("storage_failed", operation=operation, server=server, reason=reason)
    if code is None:
        return AssistantError("server_error", operation=operation, server=server, number=number)
    return known(code, operation, server)


def _chain(exception: BaseException) -> Iterator[BaseException]:
    """An exception and the causes behind it; a group stands for the first of its exceptions."""
    seen: set[int] = set()
    current: BaseException | None = exception
    while current is not None and id(current) not in seen and len(seen) < _LONGEST_CHAIN:
        seen.add(id(current))
        while isinstance(current, BaseExceptionGroup):
            current = cast("BaseExceptionGroup[BaseException]", current).exceptions[0]
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
