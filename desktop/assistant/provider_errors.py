"""What a provider's error means, told by types and statuses: the text of an error repeats keys and requests.

Used by ``litellm_model.py`` alone. Text is only searched for known words and for names that Deskhand sent itself.
"""

from __future__ import annotations

import logging
import math
import re
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, cast

from desktop.assistant.conversation import Notice
from desktop.assistant.language_model import ModelRequest, ToolSpec
from desktop.errors import AssistantError, Diagnostic

_log = logging.getLogger(__name__)

#: Statuses with which servers refuse a part of a request. Some local ones say 500 of what they can't do.
_REFUSALS = (400, 404, 415, 422, 500, 501)
_CONTEXT_EXCEEDED = re.compile(r"context (size|length|window)|exceed_context")
_TOLD_WINDOW = re.compile(
    r"(?:context (?:length|size|window)(?: is| of)?(?: only)?|n_ctx)\W{0,4}(\d{3,8})\b|(\d{3,8}) tokens? (?:context|maximum)"
)
_DEFERRAL = re.compile(r"defer_loading|tool[_ ]reference|advanced-tool-use")
_UNKNOWN_MODEL = re.compile(r"llm provider not provided|not a valid model|model_not_found|unknown model")
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance is too low|insufficient (balance|credits?|funds)")
_BY_STATUS = {401: "model_key_refused", 403: "model_not_allowed"}
#: The first that is in the chain tells the reason.
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, "the certificate of its address is not trusted"),
    (ssl.SSLError, "there is no TLS at its address, which may begin with http:// instead"),
    (socket.gaierror, "the name in its address is not known here"),
    (ConnectionRefusedError, "nothing listens at its address"),
)


def diagnosed(error: Exception, *, began: bool, model: str) -> AssistantError:
    """The error as Deskhand tells it; `began`: a part of the answer had come."""
    if isinstance(error, AssistantError):
        return error
    status = _status(error)
    _log.info("%s: the answer failed: %s, status %s", model, type(error).__name__, status)
    if began:
        return AssistantError("model_failed", operation="model")
    code, values = _meaning(error, status)
    return AssistantError(code, operation="model", **values)


def refused_tool(error: Exception, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, str] | None:
    """The tool that a refusal names, by its name or its place in the request, and where in its schema the fault lies.

    The place is the last of the schema's properties that the error names, as `` in NAME``, or "".
    """
    if _status(error) not in _REFUSALS:
        return None
    text = _text(error)
    for place, tool in enumerate(tools):
        named = rf"(?<![\w-]){re.escape(tool.name)}(?![\w-])"
        if re.search(rf"{named}|(?:tools|function_declarations)[.\[]{place}[.\]]", text):
            return tool, _place_in_schema(text, tool)
    return None


def refuses_deferral(error: Exception) -> bool:
    """Whether the model refused deferred tools or a reference to one."""
    return _status(error) in _REFUSALS and bool(_DEFERRAL.search(_text(error).lower()))


def refuses_images(error: Exception, request: ModelRequest) -> bool:
    """Whether the model refused images, and there were some."""
    return _status(error) in _REFUSALS and "image" in _text(error).lower() and _has_images(request)


def told_window(error: Exception) -> int | None:
    """Tokens that the model takes, where its refusal of a long conversation says so."""
    match = _TOLD_WINDOW.search(_text(error).lower())
    return int(match[1] or match[2]) if match else None


def notice(code: str, **values: str) -> Notice:
    """What was set aside, told to the person."""
    return Notice(Diagnostic(code, "model", values=dict(values)), severity="warning")


def _meaning(error: Exception, status: int | None) -> tuple[str, dict[str, str]]:
    """The code of an error and the values of its sentence."""
    kinds = {kind.__name__ for each in _chain(error) for kind in type(each).__mro__}
    text = _text(error).lower()
    if "ContextWindowExceededError" in kinds or status == 413 or _CONTEXT_EXCEEDED.search(text):
        return "model_context_exceeded", {}
    # litellm gives some failures of the network a status, too: a refused connection comes with 500.
    if "HTTPStatusError" not in kinds and kinds & {"TransportError", "OSError", "Timeout"}:
        return "model_unreachable", {"reason": f": {_network_reason(error, kinds)}"}
    if status == 402 or _NO_CREDIT.search(text):
        return "model_credit_exhausted", {}
    if status == 429:
        return "model_rate_limited", {"wait": _wait(error)}
    if status in _BY_STATUS:
        return _BY_STATUS[status], {}
    if "JSONDecodeError" in kinds or (status == 404 and "model" not in text):
        return "model_unreachable", {"reason": ": what answers at its address is no language model"}
    if status == 404 or _UNKNOWN_MODEL.search(text):
        return "model_unknown", {}
    told = {"status": f" (HTTP status {status})" if status else ""}
    return "model_unavailable" if status == 408 or (status or 0) >= 500 else "model_refused_request", told


def _network_reason(error: Exception, kinds: set[str]) -> str:
    """Why there was no connection, or none that lasted, by the types of the exceptions."""
    for kind, reason in _REASONS:
        if any(isinstance(each, kind) for each in _chain(error)):
            return reason
    if "ConnectTimeout" in kinds:
        return "its address doesn't answer"
    if kinds & {"Timeout", "TimeoutError", "TimeoutException"}:
        return "it said nothing for too long"
    return "it broke off before an answer came"


def _wait(error: Exception) -> str:
    """How long the provider asks to wait (``Retry-After``), as the end of a sentence; empty where it doesn't say."""
    for each in _chain(error):
        value = getattr(getattr(each, "response", None), "headers", {}).get("retry-after", "")
        seconds = float(value) if re.fullmatch(r"\d{1,6}(\.\d+)?", value) else _seconds_until(value)
        if seconds is not None:
            many, unit = (math.ceil(seconds), "second") if seconds < 120 else (math.ceil(seconds / 60), "minute")
            return f"; it asks to wait {many} {unit}{'' if many == 1 else 's'}"
    return ""


def _seconds_until(date: str) -> float | None:
    """Seconds until an HTTP date; None where it is none, or past."""
    try:
        seconds = parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came from, nearest first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _status(error: Exception) -> int | None:
    """The HTTP status. litellm's wrapper of errors in streams has one of its own, which nobody sent: it is passed over."""
    for each in _chain(error):
        status = getattr(each, "status_code", None)
        if isinstance(status, int) and type(each).__name__ != "MidStreamFallbackError":
            return status
    return None


def _text(error: Exception) -> str:
    return " ".join(f"{each} {getattr(each, 'code', None) or ''}" for each in _chain(error))


def _place_in_schema(text: str, tool: ToolSpec) -> str:
    places = {
        match.start(): name
        for name in _property_names(tool.schema)
        if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name)
        for match in re.finditer(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    }
    return f" in {places[max(places)]}" if places else ""


def _property_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        content = cast("dict[str, Any]", schema)
        if isinstance(properties := content.get("properties"), dict):
            yield from cast("dict[str, Any]", properties)
        for value in content.values():
            yield from _property_names(value)
    elif isinstance(schema, list):
        for value in cast("list[Any]", schema):
            yield from _property_names(value)


def _has_images(request: ModelRequest) -> bool:
    return any(
        part.kind == "image" or (part.kind == "tool_call" and part.output is not None and part.output.images)
        for message in request.messages
        for part in message.parts
    )
