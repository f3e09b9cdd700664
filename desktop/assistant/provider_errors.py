"""What a provider's error means, told by types and statuses: the text of an error repeats keys and requests.

Used by ``litellm_model.py`` alone. Text is only searched for known words and for names that Deskhand sent itself.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from desktop.assistant.conversation import Notice
from desktop.assistant.language_model import ModelRequest, ToolSpec
from desktop.errors import AssistantError, Diagnostic

_log = logging.getLogger(__name__)

#: Statuses with which servers refuse a part of a request. Some local ones say 500 of what they can't do.
_REFUSALS = (400, 404, 415, 422, 500, 501)
_CONTEXT_EXCEEDED = re.compile(r"context (size|length|window)|exceed_context")
_DEFERRAL = re.compile(r"defer_loading|tool[_ ]reference|advanced-tool-use")
_UNKNOWN_MODEL = re.compile(r"llm provider not provided|not a valid model|model_not_found|unknown model")


def diagnosed(error: Exception, *, began: bool, model: str) -> AssistantError:
    """The error as Deskhand tells it; `began`: a part of the answer had come."""
    if isinstance(error, AssistantError):
        return error
    status = _status(error)
    _log.info("%s: the answer failed: %s, status %s", model, type(error).__name__, status)
    return AssistantError("model_failed" if began else _code(error, status), operation="model")


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


def notice(code: str, **values: str) -> Notice:
    """What was set aside, told to the person."""
    return Notice(Diagnostic(code, "model", values=dict(values)), severity="warning")


def _code(error: Exception, status: int | None) -> str:
    kinds = {kind.__name__ for each in _chain(error) for kind in type(each).__mro__}
    text = _text(error).lower()
    if "ContextWindowExceededError" in kinds or _CONTEXT_EXCEEDED.search(text):
        return "model_context_exceeded"
    # A refused connection comes as litellm's InternalServerError with status 500.
    if kinds & {"TransportError", "OSError", "Timeout"} or status in (502, 503, 504):
        return "model_unreachable"
    if status in (401, 403):
        return "model_key_refused"
    if status in (429, 529):
        return "model_rate_limited"
    if status == 404 and "model" not in text:
        return "model_unreachable"  # the server is there, but not at this path
    if status == 404 or _UNKNOWN_MODEL.search(text):
        return "model_unknown"
    return "model_refused_request"


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
    return " ".join(str(each) for each in _chain(error))


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
