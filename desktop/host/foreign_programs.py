"""Servers as Codex (TOML) and Goose (YAML) have them, whose entries differ from the common shape. Used by the import.

Codex takes its values literally; what it takes from its own environment becomes a reference. Goose keeps secrets in a keyring of
its own, so these are asked for.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from desktop.host.foreign_entry import Candidate, Entry, checked, literal, reason_of
from desktop.host.server_references import Invalid, checked_text, shown

_SHORTEST_LIMIT, _LONGEST_LIMIT = 100, 600_000
"""Milliseconds, those of the servers' file."""
_CODEX_FIELDS = frozenset(
    """
    command args cwd env env_vars url http_headers env_http_headers bearer_token_env_var enabled required
    startup_timeout_sec startup_timeout_ms tool_timeout_sec enabled_tools disabled_tools scopes
    """.split()  # noqa: SIM905
)
_CODEX_LEFT_OUT = frozenset({"supports_parallel_tool_calls", "name", "description"})
_GOOSE_FIELDS = frozenset(
    """
    type name cmd args envs env_keys uri headers description enabled timeout available_tools
    """.split()  # noqa: SIM905
)
_GOOSE_LEFT_OUT = frozenset({"bundled", "display_name"})
_GOOSE_TYPES = {"stdio": "stdio", "sse": "sse", "streamable_http": "http"}
_GOOSE_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def codex_candidate(name: str, entry: object, environ: Mapping[str, str] = os.environ) -> Candidate:
    """An entry of Codex's ``mcp_servers``."""
    return _candidate(name, entry, _take_codex, environ)


def goose_candidate(name: str, entry: Any, environ: Mapping[str, str] = os.environ) -> Candidate | None:
    """An entry of Goose's ``extensions``; None for what is a part of Goose itself."""
    given = cast("Entry", entry) if isinstance(entry, dict) else Entry()
    if given.get("type") in ("builtin", "platform", "frontend"):
        return None
    return _candidate(name, entry, _take_goose, environ)


def _candidate(
    name: str,
    entry: Any,
    take: Callable[[Entry, Entry], tuple[tuple[str, ...], dict[str, str]]],
    environ: Mapping[str, str],
) -> Candidate:
    if not isinstance(entry, dict):
        return Candidate(name, {}, "it is not an object")
    converted: Entry = {}
    try:
        left_out, asked = take(cast("dict[str, Any]", entry), converted)
    except Invalid as invalid:
        return Candidate(name, converted, reason_of(invalid))
    return checked(Candidate(name, converted, left_out=left_out, asked=asked), environ)


def _take_codex(given: Entry, converted: Entry) -> tuple[tuple[str, ...], dict[str, str]]:
    left_out = _known(given, _CODEX_FIELDS, _CODEX_LEFT_OUT)
    if given.get("required", False) is not False:
        raise Invalid("Deskhand has no server that must be there", "required")
    for key in ("command", "cwd", "url"):
        if key in given:
            converted[key] = _without_variables(given[key], key)
    if "args" in given:
        converted["args"] = [_without_variables(each, "args", n) for n, each in enumerate(_list(given, "args"))]
    enabled = given.get("enabled", True)
    if not isinstance(enabled, bool):
        raise Invalid("it must be true or false", "enabled")
    if not enabled:
        converted["disabled"] = True
    variables = {key: literal(text) for key, text in _texts(given, "env").items()}
    for variable in _list(given, "env_vars"):
        if isinstance(variable, dict):
            described = cast("dict[str, Any]", variable)
            if described.get("source", "local") != "local":
                raise Invalid("a variable of another computer can't be had here", "env_vars")
            variable = described.get("name")
        _refer(variables, checked_text(variable, "env_vars"), checked_text(variable, "env_vars"), "env_vars")
    headers = {key: literal(text) for key, text in _texts(given, "http_headers").items()}
    for header, variable in _texts(given, "env_http_headers").items():
        _refer(headers, header, variable, "env_http_headers")
    if "bearer_token_env_var" in given:
        token = checked_text(given["bearer_token_env_var"], "bearer_token_env_var")
        _refer(headers, "Authorization", token, "bearer_token_env_var", before="Bearer ")
    if variables:
        converted["env"] = variables
    if headers:
        converted["headers"] = headers
    if "startup_timeout_sec" in given and "startup_timeout_ms" in given:
        raise Invalid("it is given in seconds and in milliseconds", "startup_timeout_sec")
    for key, own, unit in (
        ("startup_timeout_sec", "startupTimeoutMs", 1000),
        ("startup_timeout_ms", "startupTimeoutMs", 1),
        ("tool_timeout_sec", "toolTimeoutMs", 1000),
    ):
        if key in given:
            converted[own] = _milliseconds(given[key], unit, key)
    for key, own in (("enabled_tools", "includeTools"), ("disabled_tools", "excludeTools")):
        if key in given:
            names = [checked_text(each, key, n) for n, each in enumerate(_list(given, key))]
            if any("*" in each for each in names):
                raise Invalid("a `*` in it is a character to Codex and a pattern to Deskhand", key)
            converted[own] = names
    if scopes := _list(given, "scopes"):
        converted["oauth"] = {"scopes": [checked_text(each, "scopes", n) for n, each in enumerate(scopes)]}
    return left_out, {}


def _take_goose(given: Entry, converted: Entry) -> tuple[tuple[str, ...], dict[str, str]]:
    left_out = _known(given, _GOOSE_FIELDS, _GOOSE_LEFT_OUT)
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in _GOOSE_TYPES:
        raise Invalid("Deskhand does not know this kind of extension", "type")
    keys = [checked_text(each, "env_keys", n) for n, each in enumerate(_list(given, "env_keys"))]
    if any(not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", key) for key in keys):
        raise Invalid("it is no name of a variable", "env_keys")
    variables = {key: literal(text) for key, text in _texts(given, "envs").items()}
    for key in keys:
        variables.setdefault(key, f"${{keyring:{key}}}")
    asked = {key: "" for key in keys if variables[key] == f"${{keyring:{key}}}"}
    if kind == "stdio":
        converted["command"] = _without_variables(given.get("cmd"), "cmd")
        converted["args"] = [_without_variables(each, "args", n) for n, each in enumerate(_list(given, "args"))]
        if variables:
            converted["env"] = variables
    else:
        converted["type"] = _GOOSE_TYPES[kind]
        converted["url"] = _without_variables(given.get("uri"), "uri")

        def substituted(text: str, header: str) -> str:
            """Goose puts its variables into headers."""
            parts = _GOOSE_VARIABLE.split(text)
            result = [literal(parts[0])]
            for braced, bare, between in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
                if (braced or bare) not in variables:
                    raise Invalid("it names a variable that the extension does not have", "headers", header)
                result += [variables[braced or bare], between.replace("$", "$$")]
            return "".join(result)

        if headers := {key: substituted(text, key) for key, text in _texts(given, "headers").items()}:
            converted["headers"] = headers
        used = "".join(converted.get("headers", {}).values())
        asked = {key: "" for key in asked if f"${{keyring:{key}}}" in used}
    if tools := _list(given, "available_tools"):
        converted["includeTools"] = [checked_text(each, "available_tools", n) for n, each in enumerate(tools)]
    if isinstance(given.get("description"), str) and given["description"].strip():
        converted["description"] = given["description"]
    if given.get("enabled", True) is not True:
        converted["disabled"] = True
    if "timeout" in given and given["timeout"] is not None:
        converted["toolTimeoutMs"] = _milliseconds(given["timeout"], 1000, "timeout")
    return left_out, asked


def _known(given: Entry, fields: frozenset[str], left_out: frozenset[str]) -> tuple[str, ...]:
    """The fields that are left out. Raises Invalid for those that are not known."""
    if unknown := [key for key in given if key not in fields and key not in left_out]:
        raise Invalid(f"Deskhand does not know the field {', '.join(map(shown, unknown[:5]))}")
    return tuple(key for key in given if key in left_out)


def _refer(values: dict[str, str], name: str, variable: str, key: str, *, before: str = "") -> None:
    """Adds a reference to an environment variable. Raises Invalid where there is a value of that name."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise Invalid("it is no name of a variable", key)
    same = name.lower() if key != "env_vars" else name
    if any((each.lower() if key != "env_vars" else each) == same for each in values):
        raise Invalid("it is given a value elsewhere, too", key, name)
    values[name] = f"{before}${{{variable}}}"


def _without_variables(value: Any, *path: str | int) -> str:
    """A text that stands for itself; Deskhand could not write one with ``${`` so."""
    text = checked_text(value, *path, empty=path[0] == "args")
    if "${" in text:
        raise Invalid("a `${` in it is text to that program and a variable to Deskhand", *path)
    return text


def _texts(given: Entry, key: str) -> dict[str, str]:
    values: object = given.get(key) or {}
    if not isinstance(values, dict):
        raise Invalid("it must be a table of texts", key)
    pairs = cast("dict[Any, Any]", values).items()
    return {
        str(name): str(each) if type(each) in (int, float) else checked_text(each, key, str(name), empty=True)
        for name, each in pairs
    }


def _list(given: Entry, key: str) -> list[Any]:
    values: object = given.get(key) or []
    if not isinstance(values, list):
        raise Invalid("it must be a list", key)
    return cast("list[Any]", values)


def _milliseconds(value: Any, unit: int, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Invalid("it must be a number", key)
    limit = value * unit
    if limit != int(limit) or not _SHORTEST_LIMIT <= limit <= _LONGEST_LIMIT:
        raise Invalid(f"it must come to a whole number of milliseconds from {_SHORTEST_LIMIT} to {_LONGEST_LIMIT}", key)
    return int(limit)
