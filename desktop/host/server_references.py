"""What definitions refer to: ``${VAR}``, ``${env:VAR}`` and ``${VAR:-default}`` stand for environment variables,
``${keyring:NAME}`` and ``${input:NAME}`` for secrets.

Used by ``server_entry``, which checks them, and by ``transports``, which resolves ``env`` and ``headers`` when a server is
connected: a definition holds no secret that the file doesn't hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from desktop.errors import AssistantError, Diagnostic
from desktop.host.server_config import is_command
from desktop.log import redact

#: Gets a name and returns the secret kept under it, or None. `Credentials.get` is one.
SecretSource = Callable[[str], Awaitable["str | None"]]

UNFIT_FOR_PROCESS = re.compile("[\x00\ud800-\udfff]")
"""What no process takes: NUL, and halves of a surrogate pair, which no encoding has."""
UNFIT_FOR_VALUE = re.compile(rf"{UNFIT_FOR_PROCESS.pattern}|[\r\n]")
"""The same for a secret, and line ends, which no header takes."""
#: Names of variables and headers whose values are secrets.
_SECRET_KEY = re.compile(r"auth|cookie|credential|key|pass|pat$|pwd|secret|token", re.IGNORECASE)
#: Values that no log needs to hide whatever their name: words, numbers, paths, addresses without user and query.
_ORDINARY_VALUE = re.compile(r"[A-Za-z_.-]*|[\d.:]*|(?:~|[A-Za-z]:)?[/\\].*|[a-z]+://[\w.:-]*(?:/[\w./-]*)?")
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@:]*:([^/@]+)@")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
SECRET = re.compile(r"\$\{(keyring|input):([A-Za-z0-9_.-]{1,128})\}")
#: In ``env`` and ``headers``, ``$VAR`` is a variable too, and ``$$`` and ``$!`` are the characters themselves.
_REFERENCE = re.compile(rf"\$([$!])|{_VARIABLE.pattern}|{SECRET.pattern}|\$([A-Za-z_][A-Za-z0-9_]*)")


class Invalid(Exception):
    """An entry that is not valid: the reason, a text of ours, and the path of keys and indexes to the field within the entry."""

    code = "configuration_invalid"

    def __init__(self, reason: str, *path: str | int) -> None:
        self.values: dict[str, str | int] = {"reason": reason}
        self.path = path

    def diagnostic(self, server: str, place: str = "") -> Diagnostic:
        """`place` is where it stands in the file, as it ends a part of a sentence."""
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{shown(step)}" for step in self.path)[1:]
        values = {"where": f" at {where}" if where else "", "place": place, **self.values}
        return Diagnostic(self.code, "configuration", server[:80], values)


class Missing(Invalid):
    """A variable that is not set."""

    code = "variable_missing"

    def __init__(self, variable: str) -> None:
        super().__init__("")
        self.values = {"variable": variable}


@contextmanager
def at(*path: str | int) -> Generator[None, None, None]:
    """Whatever is not valid in here is so at that field."""
    try:
        yield
    except Invalid as invalid:
        invalid.path = path
        raise


def checked_text(value: object, *path: str | int, empty: bool = False) -> str:
    """A value of the file as text. Raises Invalid for what is none, is blank (unless that may be) or fits no process."""
    if not isinstance(value, str):
        raise Invalid("it must be text", *path)
    if not value.strip() and not empty:
        raise Invalid("it is empty", *path)
    if UNFIT_FOR_PROCESS.search(value):
        raise Invalid("it holds a character that no process takes", *path)
    return value


def shown(key: str) -> str:
    """A key of the file as it may appear in a message."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{1,80}", key) else "?"


def keyring_name(server: str, name: str) -> str:
    """Where a secret that a definition refers to by ``${keyring:NAME}`` is kept: a server reaches no other server's secrets."""
    return f"server:{server}:{name}"


async def resolve(
    server: str,
    values: Mapping[str, str],
    secret: SecretSource,
    environ: Mapping[str, str] = os.environ,
    *,
    printed: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The values that ``env`` or ``headers`` stand for, for use now and not to be kept. No log shows the secret ones.

    `printed` is what the commands among them printed, by the name of the value; it is not looked at again.

    Raises AssistantError: ``variable_missing``, ``secret_missing``, ``configuration_invalid`` (a secret that does not fit),
    and what `secret` raises.
    """
    secrets: dict[str, str] = {}
    for value in values.values():
        for name in secret_names(value):
            kept = await secret(keyring_name(server, name))
            if kept is None:
                raise AssistantError("secret_missing", operation="connect", server=server, variable=name)
            if UNFIT_FOR_VALUE.search(kept):
                raise AssistantError.of(Invalid("a secret of several lines does not fit").diagnostic(server))
            secrets[name] = kept
    try:
        resolved = {
            key: printed[key] if key in printed else expand_value(value, environ, secrets)
            for key, value in values.items()
        }
    except Missing as missing:
        raise AssistantError.of(missing.diagnostic(server)) from None
    for value in (*secrets.values(), *printed.values()):
        _redact(value, certain=True)
    for key, value in resolved.items():
        telling, unlikely = bool(_SECRET_KEY.search(key)), bool(_ORDINARY_VALUE.fullmatch(value))
        if telling or not unlikely:  # many a secret has a name that doesn't tell, such as DATABASE_URL
            _redact(value, certain=telling and not unlikely)
    return resolved


def _redact(value: str, *, certain: bool) -> None:
    redact(value, certain=certain)
    redact(value.rpartition(" ")[2], certain=certain)  # of "Bearer …" the latter part
    if password := _PASSWORD_IN_ADDRESS.search(value):
        redact(password[1])


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Replaces ``${VAR}`` and its kin; what they stand for is not looked at again. Raises Missing."""
    return _VARIABLE.sub(lambda match: _variable(match[1], match[2], environ), text)


def expand_value(text: str, environ: Mapping[str, str], secrets: Mapping[str, str]) -> str:
    """The same for a value of ``env`` or ``headers``, where there is more to replace."""

    def replaced(match: re.Match[str]) -> str:
        character, variable, default, source, secret, bare = match.groups()
        if character:
            return character
        return secrets[secret] if source else _variable(variable or bare, default, environ)

    return _REFERENCE.sub(replaced, text)


def secret_names(text: str) -> list[str]:
    """What a value refers to in the keyring."""
    return [] if is_command(text) else [match[5] for match in _REFERENCE.finditer(text) if match[4]]


def _variable(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if default is not None:
        return value or default  # as the shell does: an empty variable takes the default too
    if value is None:
        raise Missing(name)
    return value
