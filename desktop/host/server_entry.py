"""An entry of the servers' file, checked field by field. Used by ``servers_file`` alone; ``server_oauth`` checks its ``oauth``.

A reason why an entry is not valid is always a text of ours: values of the file may be secrets, so none is repeated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

from desktop import links
from desktop.host.commented_json import JsonObject
from desktop.host.server_config import BUILTIN_NAME, Kind, Protocol, ServerDefinition, Start, is_command, is_loopback
from desktop.host.server_oauth import oauth_of
from desktop.host.server_references import (
    SECRET,
    UNFIT_FOR_PROCESS,
    Invalid,
    at,
    checked_text,
    expand,
    expand_value,
    secret_names,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_SHORTEST_LIMIT, _LONGEST_LIMIT = 100, 600_000
"""Milliseconds."""
_TYPES: dict[str, Kind] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_URL_FIELDS = ("url", "httpUrl", "serverUrl")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT_IN_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def definition_of(
    name: str, entry: object, environ: Mapping[str, str] | None, *, base: str = "", folder: str = ""
) -> ServerDefinition:
    """Checks an entry. Raises Invalid. Without `environ`, variables are taken to be set.

    A relative ``cwd`` begins in the folder `base`, a relative ``caFile`` in `folder`, that of the servers' file; where they are
    "", in Deskhand's.
    """
    if not _NAME.fullmatch(name):
        raise Invalid("its name must be 1 to 80 letters, digits, _ and -, the first a letter or digit")
    if name == BUILTIN_NAME:
        raise Invalid("its name is that of the built-in server")
    if not isinstance(entry, dict):
        raise Invalid("it is not an object")
    fields = _Fields(cast("dict[str, Any]", entry), environ)
    if isinstance(entry, JsonObject) and entry.repeated:
        raise Invalid("it is given twice", min(entry.repeated))
    urls = [key for key in _URL_FIELDS if key in fields.entry]
    if ("command" in fields.entry) == bool(urls) or len(urls) > 1:
        raise Invalid("it needs either `command` or `url`")
    request_limit = fields.seconds("timeoutMs", None)
    common: dict[str, Any] = {
        "name": name,
        "description": fields.text("description", default=""),
        "disabled": fields.flag("disabled", False) or not fields.flag("enabled", True),
        "include_tools": fields.texts("includeTools", default=None),
        "exclude_tools": fields.texts("excludeTools", default=()),
        "request_time_limit": request_limit or ServerDefinition.request_time_limit,
        "startup_time_limit": fields.seconds("startupTimeoutMs", request_limit) or ServerDefinition.startup_time_limit,
        "call_time_limit": fields.seconds("toolTimeoutMs", request_limit) or ServerDefinition.call_time_limit,
        "protocol": fields.choice("protocol", get_args(Protocol), "auto"),
        "start": fields.choice("start", get_args(Start), "demand"),
    }
    kind = _TYPES[fields.choice("type", tuple(_TYPES), "http" if urls else "stdio")]
    if (kind == "stdio") == bool(urls):
        raise Invalid("it does not fit `url`" if urls else "it does not fit `command`", "type")
    if kind == "stdio":
        fields.refuse(("headers", "caFile", "oauth"), "it is for servers with a `url`")
        cwd = fields.path("cwd", base)
        command = fields.expanded("command")
        return ServerDefinition(
            kind=kind,
            command=os.path.expanduser(command) if command.startswith("~/") else command,
            args=tuple(fields.expand(arg, "args", n) for n, arg in enumerate(fields.texts("args", default=()) or ())),
            env=fields.values("env", _check_variable),
            cwd=cwd,
            **common,
        )
    fields.refuse(("args", "env", "cwd"), "it is for servers with a `command`")
    url = fields.expanded(urls[0])
    headers = fields.values("headers", _check_header)
    link = links.check(url)
    if environ is not None or "${" not in url:
        if link is None or "#" in url:
            raise Invalid("it must be an http or https address without user, password and fragment", urls[0])
        if url.lower().startswith("http:") and not is_loopback(url):
            raise Invalid("plain http is for servers on this computer; use https", urls[0])
    oauth = oauth_of(fields.entry["oauth"], environ) if "oauth" in fields.entry else None
    if oauth is not None and any(header.lower() == "authorization" for header in headers):
        raise Invalid("the headers have an Authorization already", "oauth")
    return ServerDefinition(
        kind=kind, url=url, headers=headers, ca_file=fields.path("caFile", folder), oauth=oauth, **common
    )


class _Fields:
    """The fields of an entry, each checked as it is taken. All raise Invalid with the field's name."""

    def __init__(self, entry: dict[str, Any], environ: Mapping[str, str] | None) -> None:
        self.entry = entry
        self._environ = environ

    def text(self, key: str, *, default: str | None = None) -> str:
        if key not in self.entry and default is not None:
            return default
        return checked_text(self.entry[key], key)

    def texts(self, key: str, *, default: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if key not in self.entry:
            return default
        values = self.entry[key]
        if not isinstance(values, list):
            raise Invalid("it must be a list of texts", key)
        listed = cast("list[object]", values)
        return tuple(checked_text(value, key, n, empty=True) for n, value in enumerate(listed))

    def flag(self, key: str, default: bool) -> bool:
        value = self.entry.get(key, default)
        if not isinstance(value, bool):
            raise Invalid("it must be true or false", key)
        return value

    def choice(self, key: str, values: Sequence[str], default: str) -> str:
        value = self.entry.get(key, default)
        if value not in values:
            raise Invalid(f"it must be one of {', '.join(values)}", key)
        return value

    def seconds(self, key: str, default: float | None) -> float | None:
        if key not in self.entry:
            return default
        value = self.entry[key]
        if type(value) is not int or not _SHORTEST_LIMIT <= value <= _LONGEST_LIMIT:
            raise Invalid(f"it must be a whole number from {_SHORTEST_LIMIT} to {_LONGEST_LIMIT}", key)
        return value / 1000

    def path(self, key: str, base: str) -> str | None:
        """An absolute path; ``~`` is the person's home, and a relative one begins in `base`."""
        if key not in self.entry:
            return None
        return os.path.abspath(os.path.join(base, os.path.expanduser(self.expanded(key))))

    def expanded(self, key: str) -> str:
        return self.expand(self.text(key), key)

    def expand(self, text: str, *path: str | int) -> str:
        if SECRET.search(text):
            raise Invalid("a reference to a secret may stand in `env` and `headers` only", *path)
        if self._environ is not None:
            with at(*path):
                text = expand(text, self._environ)
        return checked_text(text, *path, empty=True)

    def values(self, key: str, check: Callable[[str, str], str | None]) -> dict[str, str]:
        """A mapping of names to texts, as written; `check` gives the reason why a pair is not valid."""
        values = self.entry.get(key, {})
        if not isinstance(values, dict):
            raise Invalid("it must be an object", key)
        if isinstance(values, JsonObject) and values.repeated:
            raise Invalid("it is given twice", key, min(values.repeated))
        for name, value in cast("dict[str, object]", values).items():
            text = checked_text(value, key, name, empty=True)
            if reason := check(name, text):
                raise Invalid(reason, key, name)
            if is_command(text):
                if not text[1:].strip():
                    raise Invalid("it has no command behind its `!`; write `$!` for the character", key, name)
            elif self._environ is not None:
                with at(key, name):
                    expand_value(text, self._environ, dict.fromkeys(secret_names(text), ""))
        return dict(cast("dict[str, str]", values))

    def refuse(self, keys: Sequence[str], reason: str) -> None:
        for key in keys:
            if self.entry.get(key):
                raise Invalid(reason, key)


def _check_variable(name: str, _value: str) -> str | None:
    return "it is no name of a variable" if not name or "=" in name or UNFIT_FOR_PROCESS.search(name) else None


def _check_header(name: str, value: str) -> str | None:
    if not _HEADER_NAME.fullmatch(name):
        return "it is no name of a header"
    return "it holds a control character" if _UNFIT_IN_HEADER.search(value) else None
