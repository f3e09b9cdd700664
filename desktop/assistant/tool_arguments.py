"""The arguments that a model gives a tool: read from its JSON text and checked against the tool's schema before a person is
asked about them.

Used by ``tool_calls.py`` and ``mcp_tools.py``. Both model and server are untrusted: a schema is checked in a thread, within a
time limit, and without the keywords whose cost nobody can bound. What is not checked here, the server checks.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import Any, cast

from desktop.errors import AssistantError
from desktop.visible_text import one_line

logger = logging.getLogger(__name__)

#: Seconds for a check; a schema that takes longer checks nothing.
_TIME_LIMIT = 1.0
_ERRORS_COMPARED = 50
_deadline: ContextVar[float] = ContextVar("deadline")

Keyword = Callable[[Any, Any, Any, Any], "Iterable[Any] | None"]


def parse(text: str) -> dict[str, Any]:
    """The arguments; empty text stands for none. Raises AssistantError ``arguments_invalid``."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair can't be sent
    except json.JSONDecodeError as error:
        reason = f"no valid JSON at line {error.lineno}, column {error.colno}"
        raise AssistantError("arguments_invalid", operation="call", reason=reason) from error
    except (ValueError, RecursionError) as error:
        raise AssistantError("arguments_invalid", operation="call", reason="no valid JSON") from error
    if not isinstance(value, dict):
        raise AssistantError("arguments_invalid", operation="call", reason="the JSON must be an object")
    return cast("dict[str, Any]", value)


async def check(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    """Checks arguments against a tool's schema. Raises AssistantError ``arguments_invalid`` that names the place and the reason.

    It errs on the side of the server: it may let invalid arguments pass, and never refuses valid ones.
    """
    fault = await asyncio.to_thread(_fault, arguments, schema)
    if fault is not None:
        where, reason = fault
        raise AssistantError("arguments_invalid", operation="call", where=where, reason=reason)


def _fault(arguments: dict[str, Any], schema: dict[str, Any]) -> tuple[str, str] | None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match  # type: ignore[reportUnknownVariableType]
    from jsonschema.validators import validator_for  # type: ignore[reportUnknownVariableType]
    from jsonschema_specifications import REGISTRY  # type: ignore[reportMissingTypeStubs]

    _deadline.set(time.monotonic() + _TIME_LIMIT)
    try:
        kind: Any = validator_for(schema, default=Draft202012Validator)
        # The registry holds the drafts alone: a schema elsewhere is never fetched.
        errors = _bounded(kind)(schema, registry=REGISTRY).iter_errors(arguments)
        error = cast("Any", best_match(islice(errors, _ERRORS_COMPARED)))
    except Exception as fault:  # whatever a malformed schema provokes: it checks nothing
        logger.debug("A tool's schema can't be used for checking: %s", type(fault).__name__)
        return None
    return None if error is None else _worded(error)


@cache
def _bounded(kind: Any) -> Any:
    """The draft's validator with a time limit at each step, and lenient where a keyword can't be bounded.

    A pattern of a server's could match for ever and hold the interpreter's lock meanwhile, so no pattern is tried; the
    keywords that would refuse something because a part of them was not tried are left out with it.
    """
    from jsonschema import validators

    known: dict[str, Keyword] = kind.VALIDATORS
    bounded = {name: _with_deadline(check) for name, check in known.items()}
    for name in _UNCHECKED & known.keys():
        bounded[name] = _nothing
    if "oneOf" in known:
        bounded["oneOf"] = _with_deadline(known["anyOf"])
    if "additionalProperties" in known:
        bounded["additionalProperties"] = _without_patterns(known["additionalProperties"])
    return validators.extend(kind, bounded)  # type: ignore[reportUnknownMemberType]


_UNCHECKED = frozenset(
    {
        "pattern",
        "patternProperties",
        "uniqueItems",  # compares each with each
        "unevaluatedProperties",
        "unevaluatedItems",
        "not",
        "disallow",
        "if",
        "contains",
    }
)


def _with_deadline(check: Keyword) -> Keyword:
    def bounded(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        if time.monotonic() > _deadline.get():
            raise TimeoutError
        return check(validator, value, instance, schema)

    return bounded


def _without_patterns(check: Keyword) -> Keyword:
    def unless_patterns(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        return None if "patternProperties" in schema else check(validator, value, instance, schema)

    return _with_deadline(unless_patterns)


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    return None


def _worded(error: Any) -> tuple[str, str]:
    """Place and reason in our own words: the library's would repeat the value and texts of the server's schema."""
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.absolute_path).lstrip(".")
    where = f" at `{one_line(path, 120)}`" if path else ""
    value: Any = error.validator_value
    several: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    match error.validator:
        case "required":
            return where, f"missing {_names([each for each in several if each not in error.instance])}"
        case "type":
            return where, f"must be of type {' or '.join(map(str, several))}"
        case "enum":
            return where, "must be one of the values that the schema lists"
        case "const":
            return where, "must be the value that the schema gives"
        case "additionalProperties" if value is False:
            known: Any = error.schema.get("properties", {})
            return where, f"unknown property {_names([each for each in error.instance if each not in known])}"
        case "anyOf" | "oneOf":
            return where, "fits none of the forms that the schema allows"
        case keyword if isinstance(value, int | float):
            return where, f"breaks `{keyword}` {value}"
        case keyword:
            return where, f"breaks `{keyword}`"


def _names(names: list[Any]) -> str:
    return ", ".join(f"`{one_line(str(each), 80)}`" for each in names[:10])


def _refuse(constant: str) -> None:
    raise ValueError(constant)
