"""Server definitions: what ``mcp.json`` says, read, checked and edited. Used by the host, the panels and the command line.

The file has the common shape, ``{"mcpServers": {name: {"command": …} or {"url": …}}}``; VS Code's ``servers``, comments and
trailing commas are read as well. An entry that is not valid is left out and named with its field and the reason; the
others work. A reason is always a text of ours: values of the file may be secrets, so none is repeated.

``${VAR}``, ``${env:VAR}`` and ``${VAR:-default}`` stand for environment variables in ``command``, ``args``, ``cwd`` and ``url``,
which are resolved here, and in ``env`` and ``headers``, which stay as they are written and are resolved when the server is
connected (`resolve`): a definition holds no secret that the file doesn't hold.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import stat
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from desktop import links
from desktop.errors import AssistantError, Diagnostic, os_reason
from desktop.log import redact
from desktop.paths import write_private
from desktop.tool_names import fingerprint

Kind = Literal["stdio", "http", "sse", "builtin"]
Start = Literal["demand", "launch", "manual"]
Protocol = Literal["auto", "legacy"]
#: Gets a name and returns the secret kept under it, or None. `Credentials.get` is one.
SecretSource = Callable[[str], Awaitable["str | None"]]

BUILTIN_NAME = "deskhand"
"""The built-in server's; no configured server may have it."""
_LONGEST_FILE = 1024 * 1024
#: json5 takes some 30 µs a character, and nobody comments more than this.
_LONGEST_FILE_WITH_COMMENTS = 64 * 1024
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
#: No process takes them: NUL, and halves of a surrogate pair, which no encoding has.
_UNFIT_FOR_PROCESS = re.compile("[\x00\ud800-\udfff]")
#: Names of variables and headers whose values are secrets.
_SECRET_KEY = re.compile(r"auth|cookie|credential|key|pass|pat$|pwd|secret|token", re.IGNORECASE)
#: Values that no log needs to hide whatever their name: words, numbers, paths, addresses without user and query.
_ORDINARY_VALUE = re.compile(r"[A-Za-z_.-]*|[\d.:]*|(?:~|[A-Za-z]:)?[/\\].*|[a-z]+://[\w.:-]*(?:/[\w./-]*)?")
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@:]*:([^/@]+)@")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET = re.compile(r"\$\{(keyring|input):([A-Za-z0-9_.-]{1,128})\}")
#: In ``env`` and ``headers``, ``$VAR`` is a variable too, and ``$$`` and ``$!`` are the characters themselves.
_REFERENCE = re.compile(rf"\$([$!])|{_VARIABLE.pattern}|{_SECRET.pattern}|\$([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True)
class ServerDefinition:
    """One server as it is configured. Times are in seconds."""

    name: str
    kind: Kind
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """As written, with its references."""
    cwd: str | None = None
    """Absolute; None: the folder Deskhand runs in."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """As written, with its references."""
    description: str = ""
    disabled: bool = False
    include_tools: tuple[str, ...] | None = None
    """Patterns of tool names, ``*`` for any run of characters; None: all."""
    exclude_tools: tuple[str, ...] = ()
    """Patterns of those that are left out all the same."""
    request_time_limit: float = 30
    """For a list, a read, a prompt, a completion."""
    startup_time_limit: float = 60
    """From the start of the process, which may have to download itself, to the end of the handshake."""
    call_time_limit: float = 60
    """For a tool call without a sign of life; each progress notice begins it anew."""
    protocol: Protocol = "auto"
    """``legacy``: the older handshake without asking for the newer one."""
    ca_file: str | None = None
    """A file of certificates to trust for ``url``, besides the system's."""
    start: Start = "demand"

    @cached_property
    def identity(self) -> str:
        """Fingerprint of what makes it this server: its name and where and how it is reached. References stand for secrets."""
        return fingerprint(
            [
                self.name,
                self.kind,
                self.command,
                self.args,
                dict(self.env),
                self.cwd,
                self.url,
                dict(self.headers),
                self.ca_file,
            ]
        )

    def offers(self, tool: str) -> bool:
        """Whether the filters let a tool of that (original) name through."""
        included = self.include_tools is None or any(_matches(pattern, tool) for pattern in self.include_tools)
        return included and not any(_matches(pattern, tool) for pattern in self.exclude_tools)


@dataclass(frozen=True)
class Configuration:
    definitions: tuple[ServerDefinition, ...] = ()
    """In the file's order."""
    faults: tuple[Diagnostic, ...] = ()
    """One for each entry that was left out, or one for the whole file."""
    path: Path | None = None


def read_configuration(path: Path, environ: Mapping[str, str] = os.environ) -> Configuration:
    """Reads and checks a file of definitions; never writes. A missing file is an empty configuration."""
    try:
        file = _read(path)
    except FileNotFoundError:
        return Configuration(path=path)
    except AssistantError as error:
        return Configuration(faults=(error.diagnostic,), path=path)
    definitions: dict[str, ServerDefinition] = {}
    faults: list[Diagnostic] = []
    for section in _sections(file.content):
        for name, entry in section.items():
            try:
                if name in definitions or name in section.repeated:
                    definitions.pop(name, None)
                    raise _Invalid("", "its name is given twice")
                definitions[name] = _definition(name, entry, environ)
            except _Invalid as invalid:
                faults.append(invalid.diagnostic(name))
    return Configuration(tuple(definitions.values()), tuple(faults), path)


def add_server(path: Path, name: str, entry: dict[str, Any], *, replace: bool = False) -> None:
    """Writes a definition into the file, which is made where there is none.

    Raises AssistantError: ``configuration_invalid`` (also when the name is taken, without `replace`),
    ``configuration_unreadable``, ``configuration_commented``, ``storage_failed``; the file is then as it was.
    """
    try:
        _definition(name, entry, None)
    except _Invalid as invalid:
        raise AssistantError.of(invalid.diagnostic(name)) from None

    def add(sections: Sequence[dict[str, Any]]) -> bool:
        section = next((each for each in sections if name in each), None)
        if section is not None and not replace:
            raise AssistantError.of(_Invalid("", "a server of that name exists").diagnostic(name))
        (sections[0] if section is None else section)[name] = entry
        return True

    _edit(path, add)


def read_entry(path: Path, name: str) -> Any:
    """A server's entry as the file has it, valid or not, for an editor.

    Raises AssistantError: ``server_unknown`` (also when there is no file), ``configuration_unreadable``.
    """
    try:
        return _section_of(name, _sections(_read(path).content))[name]
    except FileNotFoundError:
        raise AssistantError("server_unknown", operation="configuration", server=name) from None


def remove_server(path: Path, name: str) -> None:
    """Takes a definition out of the file. Raises AssistantError ``server_unknown`` and those of `add_server`."""

    def remove(sections: Sequence[dict[str, Any]]) -> bool:
        del _section_of(name, sections)[name]
        return True

    _edit(path, remove)


def set_disabled(path: Path, name: str, disabled: bool) -> None:
    """Disables or enables a server in the file. Raises AssistantError ``server_unknown`` and those of `add_server`."""

    def change(sections: Sequence[dict[str, Any]]) -> bool:
        entry = _section_of(name, sections)[name]
        if not isinstance(entry, dict):
            raise AssistantError.of(_Invalid("", "it is not an object").diagnostic(name))
        before = dict(cast("dict[str, Any]", entry))
        if "enabled" in entry:
            entry["enabled"] = not disabled
        if "disabled" in entry or (disabled and "enabled" not in entry):
            entry["disabled"] = disabled
        return entry != before

    _edit(path, change)


def keyring_name(server: str, name: str) -> str:
    """Where a secret that a definition refers to by ``${keyring:NAME}`` is kept: a server reaches no other server's secrets."""
    return f"server:{server}:{name}"


async def resolve(
    server: str, values: Mapping[str, str], secret: SecretSource, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The values that ``env`` or ``headers`` stand for, for use now and not to be kept. No log shows the secret ones.

    Raises AssistantError: ``variable_missing``, ``secret_missing``, ``configuration_invalid`` (a secret that does not fit),
    and what `secret` raises.
    """
    secrets: dict[str, str] = {}
    for value in values.values():
        for name in _secret_names(value):
            kept = await secret(keyring_name(server, name))
            if kept is None:
                raise AssistantError("secret_missing", operation="connect", server=server, variable=name)
            if _UNFIT_FOR_PROCESS.search(kept) or "\r" in kept or "\n" in kept:
                raise AssistantError.of(_Invalid("", "a secret of several lines does not fit").diagnostic(server))
            secrets[name] = kept
    try:
        resolved = {key: _expand_value(value, environ, secrets) for key, value in values.items()}
    except _Missing as missing:
        raise AssistantError.of(missing.diagnostic(server)) from None
    for value in (*secrets.values(), *(value for key, value in resolved.items() if _is_secret(key, value))):
        redact(value)
        redact(value.rpartition(" ")[2])  # of "Bearer …" the latter part
        if password := _PASSWORD_IN_ADDRESS.search(value):
            redact(password[1])
    return resolved


def _is_secret(key: str, value: str) -> bool:
    """Whether a value is kept out of logs: many a secret has a name that doesn't tell, such as DATABASE_URL."""
    return bool(_SECRET_KEY.search(key)) or not _ORDINARY_VALUE.fullmatch(value)


class _Invalid(Exception):
    """An entry that is not valid: the field and the reason, both texts of ours."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason

    def diagnostic(self, server: str) -> Diagnostic:
        where = f" at {self.where}" if self.where else ""
        return Diagnostic(
            "configuration_invalid", "configuration", server[:80], {"where": where, "reason": self.reason}
        )


class _Missing(_Invalid):
    """A variable that is not set."""

    def __init__(self, variable: str) -> None:
        super().__init__("", "")
        self.variable = variable

    def diagnostic(self, server: str) -> Diagnostic:
        return Diagnostic("variable_missing", "configuration", server[:80], {"variable": self.variable})


class _Object(dict[str, Any]):
    """An object of the file that knows which of its keys were given twice; the last value counts."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated: set[str] = set()
        if len(self) < len(pairs):
            keys = [key for key, _ in pairs]
            self.repeated = {key for key in self if keys.count(key) > 1}


@dataclass(frozen=True)
class _File:
    content: _Object
    commented: bool
    """Not plain JSON: rewriting would lose comments."""
    repeated: bool
    """Some object gives a key twice: rewriting would lose a value."""


def _read(path: Path) -> _File:
    """Raises FileNotFoundError, and AssistantError ``configuration_unreadable``."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise _unreadable("it is no regular file")
        with path.open("rb") as file:
            raw = file.read(_LONGEST_FILE + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(os_reason(error)) from error
    if len(raw) > _LONGEST_FILE:
        raise _unreadable("it is longer than 1 MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable("it is not UTF-8 text") from None
    objects: list[_Object] = []

    def make_object(pairs: Sequence[tuple[str, Any]]) -> _Object:
        objects.append(_Object(pairs))
        return objects[-1]

    commented = False
    try:
        try:
            content = json.loads(text, object_pairs_hook=make_object)
        except json.JSONDecodeError as error:
            objects.clear()
            content = _loads_commented(text, make_object, error)
            commented = True
    except RecursionError:
        raise _unreadable("it is nested too deeply") from None
    if not isinstance(content, _Object):
        raise _unreadable("it is not a JSON object")
    if content.repeated & {"mcpServers", "servers"}:
        raise _unreadable("it gives its servers twice")
    if content and not _sections(content):
        raise _unreadable("it has no object `mcpServers`")
    return _File(content, commented, any(each.repeated for each in objects))


def _loads_commented(text: str, make_object: Callable[..., _Object], plain_error: json.JSONDecodeError) -> Any:
    """Only numbers are taken from an error: its text repeats characters of the file."""
    if len(text) > _LONGEST_FILE_WITH_COMMENTS:
        raise _unreadable(f"its JSON is wrong at line {plain_error.lineno}, column {plain_error.colno}") from None
    import json5

    try:
        return json5.loads(text, object_pairs_hook=make_object)
    except ValueError as error:
        position = re.search(r":(\d+) .* at column (\d+)", str(error), re.DOTALL)
        where = " at line {}, column {}".format(*position.groups()) if position else ""
        raise _unreadable(f"its JSON is wrong{where}") from None


def _unreadable(reason: str) -> AssistantError:
    return AssistantError("configuration_unreadable", operation="configuration", reason=reason)


def _sections(content: _Object) -> list[_Object]:
    """The objects that hold definitions: ``mcpServers``, and VS Code's ``servers``."""
    return [content[key] for key in ("mcpServers", "servers") if isinstance(content.get(key), _Object)]


def _section_of(name: str, sections: Sequence[dict[str, Any]]) -> dict[str, Any]:
    for section in sections:
        if name in section:
            return section
    raise AssistantError("server_unknown", operation="configuration", server=name)


#: One edit at a time: each reads, changes and replaces a whole file.
_EDITING = threading.Lock()


def _edit(path: Path, change: Callable[[Sequence[dict[str, Any]]], bool]) -> None:
    """Lets `change` alter the file's sections of definitions, and writes the file if it says that it did."""
    with _EDITING:
        try:
            file = _read(path)
        except FileNotFoundError:
            if path.is_symlink():
                raise _unreadable("it is a link to a file that does not exist") from None
            file = _File(_Object([]), commented=False, repeated=False)
        if file.commented:
            raise AssistantError("configuration_commented", operation="configuration")
        if file.repeated:
            raise _unreadable("it gives a key twice")
        if not file.content:
            file.content["mcpServers"] = _Object([])
        if not change(_sections(file.content)):
            return
        text = json.dumps(file.content, indent=2, ensure_ascii=False) + "\n"
        try:
            # Half a surrogate pair, which a file can only hold as an escape, becomes that escape again.
            write_private(path, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise AssistantError("storage_failed", operation="configuration", reason=os_reason(error)) from error


def _definition(name: str, entry: object, environ: Mapping[str, str] | None) -> ServerDefinition:
    """Checks an entry. Raises _Invalid. Without `environ`, variables are taken to be set."""
    if not _NAME.fullmatch(name):
        raise _Invalid("", "its name must be 1 to 80 letters, digits, _ and -, the first a letter or digit")
    if name == BUILTIN_NAME:
        raise _Invalid("", "its name is that of the built-in server")
    if not isinstance(entry, dict):
        raise _Invalid("", "it is not an object")
    fields = _Fields(cast("dict[str, Any]", entry), environ)
    if isinstance(entry, _Object) and entry.repeated:
        raise _Invalid(_shown(min(entry.repeated)), "it is given twice")
    urls = [key for key in _URL_FIELDS if key in fields.entry]
    if ("command" in fields.entry) == bool(urls) or len(urls) > 1:
        raise _Invalid("", "it needs either `command` or `url`")
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
        raise _Invalid("type", "it does not fit `url`" if urls else "it does not fit `command`")
    if kind == "stdio":
        fields.refuse(("headers", "caFile"), "it is for servers with a `url`")
        cwd = fields.path("cwd")
        command = fields.expanded("command")
        return ServerDefinition(
            kind=kind,
            command=os.path.expanduser(command) if command.startswith("~/") else command,
            args=tuple(
                fields.expand(f"args[{n}]", arg) for n, arg in enumerate(fields.texts("args", default=()) or ())
            ),
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
            raise _Invalid(urls[0], "it must be an http or https address without user, password and fragment")
        if url.lower().startswith("http:") and not is_loopback(url):
            raise _Invalid(urls[0], "plain http is for servers on this computer; use https")
    return ServerDefinition(kind=kind, url=url, headers=headers, ca_file=fields.path("caFile"), **common)


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this computer by its very name or number."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _Fields:
    """The fields of an entry, each checked as it is taken. All raise _Invalid with the field's name."""

    def __init__(self, entry: dict[str, Any], environ: Mapping[str, str] | None) -> None:
        self.entry = entry
        self._environ = environ

    def text(self, key: str, *, default: str | None = None) -> str:
        if key not in self.entry and default is not None:
            return default
        return self._checked_text(key, self.entry[key])

    def texts(self, key: str, *, default: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if key not in self.entry:
            return default
        values = self.entry[key]
        if not isinstance(values, list):
            raise _Invalid(key, "it must be a list of texts")
        listed = cast("list[object]", values)
        return tuple(self._checked_text(f"{key}[{n}]", value, empty=True) for n, value in enumerate(listed))

    def flag(self, key: str, default: bool) -> bool:
        value = self.entry.get(key, default)
        if not isinstance(value, bool):
            raise _Invalid(key, "it must be true or false")
        return value

    def choice(self, key: str, values: Sequence[str], default: str) -> str:
        value = self.entry.get(key, default)
        if value not in values:
            raise _Invalid(key, f"it must be one of {', '.join(values)}")
        return value

    def seconds(self, key: str, default: float | None) -> float | None:
        if key not in self.entry:
            return default
        value = self.entry[key]
        if type(value) is not int or not _SHORTEST_LIMIT <= value <= _LONGEST_LIMIT:
            raise _Invalid(key, f"it must be a whole number from {_SHORTEST_LIMIT} to {_LONGEST_LIMIT}")
        return value / 1000

    def path(self, key: str) -> str | None:
        """An absolute path; ``~`` is the person's home, and a relative one begins in Deskhand's folder."""
        if key not in self.entry:
            return None
        return os.path.abspath(os.path.expanduser(self.expanded(key)))

    def expanded(self, key: str) -> str:
        return self.expand(key, self.text(key))

    def expand(self, where: str, text: str) -> str:
        if _SECRET.search(text):
            raise _Invalid(where, "a reference to a secret may stand in `env` and `headers` only")
        expanded = text if self._environ is None else _expand(text, self._environ)
        return self._checked_text(where, expanded, empty=True)

    def values(self, key: str, check: Callable[[str, str], str | None]) -> dict[str, str]:
        """A mapping of names to texts, as written; `check` gives the reason why a pair is not valid."""
        values = self.entry.get(key, {})
        if not isinstance(values, dict):
            raise _Invalid(key, "it must be an object")
        if isinstance(values, _Object) and values.repeated:
            raise _Invalid(f"{key}.{_shown(min(values.repeated))}", "it is given twice")
        for name, value in cast("dict[str, object]", values).items():
            where = f"{key}.{_shown(name)}"
            text = self._checked_text(where, value, empty=True)
            if reason := check(name, text):
                raise _Invalid(where, reason)
            if text.startswith("!"):
                raise _Invalid(where, "it begins with `!`, which stands for a command; write `$!` for the character")
            if self._environ is not None:
                _expand_value(text, self._environ, dict.fromkeys(_secret_names(text), ""))
        return dict(cast("dict[str, str]", values))

    def refuse(self, keys: Sequence[str], reason: str) -> None:
        for key in keys:
            if self.entry.get(key):
                raise _Invalid(key, reason)

    def _checked_text(self, where: str, value: object, *, empty: bool = False) -> str:
        if not isinstance(value, str):
            raise _Invalid(where, "it must be text")
        if not value.strip() and not empty:
            raise _Invalid(where, "it is empty")
        if _UNFIT_FOR_PROCESS.search(value):
            raise _Invalid(where, "it holds a character that no process takes")
        return value


def _check_variable(name: str, _value: str) -> str | None:
    return "it is no name of a variable" if not name or "=" in name or _UNFIT_FOR_PROCESS.search(name) else None


def _check_header(name: str, value: str) -> str | None:
    if not _HEADER_NAME.fullmatch(name):
        return "it is no name of a header"
    return "it holds a control character" if _UNFIT_IN_HEADER.search(value) else None


def _shown(key: str) -> str:
    """A key of the file as it may appear in a message."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{1,80}", key) else "?"


def _expand(text: str, environ: Mapping[str, str]) -> str:
    """Replaces ``${VAR}`` and its kin; what they stand for is not looked at again. Raises _Missing."""
    return _VARIABLE.sub(lambda match: _variable(match[1], match[2], environ), text)


def _expand_value(text: str, environ: Mapping[str, str], secrets: Mapping[str, str]) -> str:
    """The same for a value of ``env`` or ``headers``, where there is more to replace."""

    def replaced(match: re.Match[str]) -> str:
        character, variable, default, source, secret, bare = match.groups()
        if character:
            return character
        return secrets[secret] if source else _variable(variable or bare, default, environ)

    return _REFERENCE.sub(replaced, text)


def _secret_names(text: str) -> list[str]:
    return [match[5] for match in _REFERENCE.finditer(text) if match[4]]


def _variable(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if default is not None:
        return value or default  # as the shell does: an empty variable takes the default too
    if value is None:
        raise _Missing(name)
    return value


def _matches(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
