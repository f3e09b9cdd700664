"""Whether a tool's structured result fits the schema its server declared. Used by the connection after each call.

A schema comes from a server and may be made to run for ever, so the check is bounded: it follows no reference out of the schema,
tries no regular expression and nothing that compares all items with each other, and gives up after a second, in a thread. What is
left unchecked is never held against a result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal, cast

from mcp_types import CallToolResult

Mismatch = Literal[
    "the structured content is missing", "the structured content does not fit", "the schema is not valid"
]
Keyword = Callable[[Any, Any, Any, Any], "Iterator[Any] | None"]

#: Seconds; the longest step between two looks at the clock is one keyword.
_LONGEST_CHECK = 1.0
#: Seconds that the loop may stand still for a check: enough for nearly all, and a thread would take longer to begin.
_LONGEST_ON_LOOP = 0.005
_UNCHECKED = ("pattern", "patternProperties", "unevaluatedProperties", "uniqueItems")
_deadline: ContextVar[float] = ContextVar("deadline of the check that runs in this context")


class OutputSchema:
    """A tool's output schema, compiled at the first check."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator: Any = None

    async def mismatch(self, result: CallToolResult) -> Mismatch | None:
        """Why a result does not fit, or None; takes about a second at most."""
        if result.structured_content is None and "structured_content" not in result.model_fields_set:
            return "the structured content is missing"
        try:
            if self._validator is not None:
                try:
                    return self._check(result.structured_content, _LONGEST_ON_LOOP)
                except _GivenUp:
                    pass
            return await asyncio.to_thread(self._check, result.structured_content, _LONGEST_CHECK)
        except (_GivenUp, RecursionError):
            return None

    def _check(self, value: Any, time_limit: float) -> Mismatch | None:
        """Raises _GivenUp and RecursionError."""
        from jsonschema.validators import validator_for
        from referencing import Registry

        _deadline.set(time.monotonic() + time_limit)
        try:
            if self._validator is None:
                nothing_else = cast("Callable[[], Any]", Registry)()
                self._validator = _bounded(validator_for(self._schema))(self._schema, registry=nothing_else)
            fits = next(self._validator.iter_errors(value), None) is None
        except (_GivenUp, RecursionError):
            raise
        except Exception:  # whatever a schema that isn't one makes the library raise
            return "the schema is not valid"
        return None if fits else "the structured content does not fit"


class _GivenUp(Exception):
    """The check takes too long."""


@cache
def _bounded(validator_class: Any) -> Any:
    """The validator of a revision of JSON Schema, made to look at the clock at every keyword."""
    import attrs
    import jsonschema.validators

    library: Any = jsonschema.validators

    def bounded(keyword: Keyword) -> Keyword:
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if time.monotonic() > _deadline.get():
                raise _GivenUp
            yield from keyword(validator, value, instance, schema) or ()

        return check

    keywords = {name: bounded(keyword) for name, keyword in validator_class.VALIDATORS.items()}
    keywords |= dict.fromkeys(_UNCHECKED, _nothing)
    keywords["additionalProperties"] = bounded(_additional(validator_class.VALIDATORS["additionalProperties"]))
    extended = library.extend(validator_class, keywords)
    # The library's own would fall back to an unbounded class for a part that names a revision itself.
    extended.evolve = attrs.evolve
    return extended


def _nothing(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> None:
    """A keyword that is not checked."""


def _additional(keyword: Keyword) -> Keyword:
    """``additionalProperties``, but where patterns would say which properties are additional."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any] | None:
        return None if "patternProperties" in schema else keyword(validator, value, instance, schema)

    return check
