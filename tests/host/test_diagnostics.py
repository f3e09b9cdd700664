"""What may be said of an exception: by its type and protocol code alone, whatever its text."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl

import httpx2
import mcp_types
import pytest
from mcp import MCPError
from pydantic import TypeAdapter, ValidationError

from desktop.errors import AssistantError, Operation
from desktop.host.diagnostics import classify

SECRET = "s3cr3t text of a server"


def caused(outer: BaseException, *causes: BaseException) -> BaseException:
    """An exception with a chain of causes."""
    current = outer
    for cause in causes:
        current.__cause__ = cause
        current = cause
    return outer


def invalid() -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(int).validate_python(SECRET)
    return raised.value


def status(number: int) -> httpx2.HTTPStatusError:
    request = httpx2.Request("POST", "http://127.0.0.1/")
    return httpx2.HTTPStatusError(SECRET, request=request, response=httpx2.Response(number, request=request))


@pytest.mark.parametrize(
    ("exception", "operation", "code"),
    [
        (TimeoutError(SECRET), "read", "timeout"),
        (httpx2.ReadTimeout(SECRET), "read", "timeout"),
        (MCPError(mcp_types.REQUEST_TIMEOUT, SECRET), "call", "timeout"),
        (asyncio.CancelledError(SECRET), "call", "cancelled"),
        (MCPError(mcp_types.CONNECTION_CLOSED, SECRET), "call", "connection_failed"),
        (MCPError(mcp_types.INVALID_PARAMS, SECRET), "call", "arguments_invalid"),
        (MCPError(mcp_types.INVALID_PARAMS, SECRET), "read", "resource_not_found"),
        (MCPError(-32002, SECRET), "read", "resource_not_found"),
        (MCPError(-32002, SECRET), "call", "server_error"),
        (MCPError(mcp_types.INVALID_PARAMS, SECRET), "complete", "completion_invalid"),
        (MCPError(mcp_types.INVALID_PARAMS, SECRET), "prompt", "prompt_invalid"),
        (MCPError(mcp_types.METHOD_NOT_FOUND, SECRET), "read", "resources_unsupported"),
        (MCPError(mcp_types.METHOD_NOT_FOUND, SECRET), "complete", "completions_unsupported"),
        (MCPError(mcp_types.METHOD_NOT_FOUND, SECRET), "prompt", "prompts_unsupported"),
        (MCPError(mcp_types.UNSUPPORTED_PROTOCOL_VERSION, SECRET), "connect", "protocol_unsupported"),
        (MCPError(mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY, SECRET), "call", "capability_required"),
        (MCPError(mcp_types.URL_ELICITATION_REQUIRED, SECRET), "call", "elicitation_required"),
        (MCPError(mcp_types.PARSE_ERROR, SECRET), "call", "protocol_error"),
        (MCPError(12345, SECRET), "call", "server_error"),
        (invalid(), "read", "protocol_error"),
        (status(401), "connect", "authentication_required"),
        (status(403), "call", "permission_denied"),
        (status(500), "call", "connection_failed"),
        (httpx2.ConnectError(SECRET), "connect", "connection_failed"),
        (caused(httpx2.ConnectError(SECRET), ssl.SSLCertVerificationError(SECRET)), "connect", "certificate_refused"),
        (ConnectionResetError(SECRET), "call", "connection_failed"),
        (FileNotFoundError(SECRET), "connect", "connection_failed"),
        (ValueError(SECRET), "connect", "connection_failed"),
        (ValueError(SECRET), "configuration", "configuration_invalid"),
        (ValueError(SECRET), "read", "operation_failed"),
        (ExceptionGroup(SECRET, [ExceptionGroup(SECRET, [status(401)])]), "connect", "authentication_required"),
        (caused(RuntimeError(SECRET), ValueError(), KeyError(), TimeoutError()), "read", "timeout"),
        (
            caused(RuntimeError(SECRET), ValueError(), KeyError(), OSError(), TimeoutError()),
            "read",
            "connection_failed",
        ),
    ],
)
def test_an_exception_is_told_by_type_and_protocol_code(
    exception: BaseException, operation: Operation, code: str
) -> None:
    error = classify(exception, operation, "files")
    assert (error.diagnostic.code, error.diagnostic.operation, error.diagnostic.server) == (code, operation, "files")
    assert SECRET not in str(error) and SECRET not in repr(error.diagnostic)


def test_a_chain_that_leads_back_to_itself_ends() -> None:
    first, second = RuntimeError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert classify(first, "read", None).diagnostic.code == "operation_failed"


def test_a_context_that_was_hidden_is_not_looked_at() -> None:
    error = RuntimeError()
    error.__context__ = TimeoutError()
    assert classify(error, "read", None).diagnostic.code == "timeout"
    error.__suppress_context__ = True
    assert classify(error, "read", None).diagnostic.code == "operation_failed"


@pytest.mark.parametrize(
    "error",
    [
        *map(OSError, (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ECONNREFUSED, errno.ECONNRESET), [SECRET] * 5),
        socket.gaierror(socket.EAI_NONAME, SECRET),
        ssl.SSLError(1, SECRET),
        OSError(SECRET),
    ],
    ids=lambda error: f"{type(error).__name__}-{error.errno}",
)
def test_what_the_system_refused_is_the_connection_s_fault_or_the_definition_s(error: OSError) -> None:
    expected: dict[Operation, str] = {"connect": "connection_failed", "configuration": "configuration_invalid"}
    for operation, code in expected.items():
        for raised in (error, caused(RuntimeError(SECRET), error), caused(httpx2.ConnectError(SECRET), error)):
            found = classify(raised, operation, "files")
            assert found.diagnostic.code == code
            assert SECRET not in str(found)
    assert classify(OSError(errno.ETIMEDOUT, SECRET), "connect", None).diagnostic.code == "timeout"


def test_why_a_definition_can_t_be_used_is_said_in_words_of_ours() -> None:
    found = classify(PermissionError(errno.EACCES, SECRET), "configuration", "files")
    assert "The server's definition is not valid: there is no permission." in str(found)


def test_more_telling_causes_come_first_and_a_known_error_before_all() -> None:
    inner = AssistantError("secret_missing", operation="configuration", variable="TOKEN")
    assert (
        classify(caused(httpx2.ConnectError(SECRET), OSError(), inner), "connect", "a").diagnostic.code
        == "secret_missing"
    )
    assert classify(caused(OSError(), httpx2.ReadError(SECRET), status(401)), "read", "a").diagnostic.code == (
        "authentication_required"
    )


def test_an_exception_that_merely_looks_like_one_of_the_protocol_is_not_trusted() -> None:
    class Lookalike(Exception):
        code = mcp_types.REQUEST_TIMEOUT

    assert classify(Lookalike(), "read", None).diagnostic.code == "operation_failed"


def test_a_known_error_keeps_its_code_operation_and_values_and_gets_what_it_lacks() -> None:
    error = classify(
        caused(RuntimeError(), AssistantError("message_too_large", operation="call", limit=64)), "read", "files"
    )
    assert str(error).startswith("files: [message_too_large] The server sent a message of more than 64 MiB.")
    assert error.diagnostic.operation == "call"


def test_a_call_that_broke_off_says_that_its_effect_is_not_known() -> None:
    assert "whether the call took effect is not known" in str(classify(TimeoutError(), "call", "files"))
    assert "took effect" not in str(classify(TimeoutError(), "read", "files"))
    assert "took effect" not in str(classify(MCPError(mcp_types.INVALID_PARAMS, ""), "call", "files"))
    asked = classify(MCPError(mcp_types.URL_ELICITATION_REQUIRED, ""), "call", "files")  # before anything was done
    assert asked.diagnostic.code == "elicitation_required" and "took effect" not in str(asked)


def test_an_error_of_the_server_is_told_by_its_number_alone() -> None:
    assert "error -32050" in str(classify(MCPError(-32050, SECRET, {"data": SECRET}), "call", "files"))
