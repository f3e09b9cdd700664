"""What definitions refer to: ``${VAR}``, ``${env:VAR}`` and ``${VAR:-default}`` stand for environment variables,
``${keyring:NAME}`` and ``${input:NAME}`` for secrets.

Used by ``server_entry``, which checks them, and by ``transports``, which resolves ``env`` and ``headers`` when a server is
connected: a definition holds no secret that the file doesn't hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping

from desktop.errors import AssistantError, Diagnostic
from desktop.log import redact

#: Gets a name and returns the secret kept under it, or None. `Credentials.get` is one.
SecretSource = Callable[[str], Awaitable["str | None"]]

UNFIT_FOR_PROCESS = re.compile("[\x00\ud800-\udfff]")
"""What no process takes: NUL, and halves of a surrogate pair, which no encoding has."""
#: Names of variables and headers whose values are secrets.
_SECRET_KEY = re.compile(r"auth|cookie|credential|key|pass|pat$|pwd|secret|token", re.IGNORECASE)
#: Values that no log needs to hide whatever their name: words, numbers, paths, addresses without user and query.
_ORDINARY_VALUE = re.compile(r"[A-Za-z_.-]*|[\d.:]*|(?:~|[A-Za-z]:)?[/\\].*|[a-z]+://[\w.:-]*(?:/[\w./-]*)?")
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@:]*:([^/@]+)@")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
SECRET = re.compile(r"\$\{(keyring|input):([A-Za-z0-9_.-]{1,128})\}")
#: In ``env`` and ``headers``, ``$VAR`` is a variable too, and ``$$`` and ``$!`` are the characters themselves.
_REFERENCE = re.compile(rf"\$([$!])|{_VARIABLE.pattern}|{SECRET.pattern}|\$([A-Za-z_][A-Za-z0-9_]*)")


class Invalid(Exception):
    """An entry that is not valid: the field and the reason, both texts of ours."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason

    def diagnostic(self, server: str) -> Diagnostic:
        where = f" at {self.where}" if self.where else ""
        return Diagnostic(
            "configuration_invalid", "configuration", server[:80], {"where": where, "reason": self.reason}
        )


class Missing(Invalid):
    """A variable that is not set."""

    def __init__(self, variable: str) -> None:
        super().__init__("", "")
        self.variable = variable

    def diagnostic(self, server: str) -> Diagnostic:
        return Diagnostic("variable_missing", "configuration", server[:80], {"variable": self.variable})


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
        for name in secret_names(value):
            kept = await secret(keyring_name(server, name))
            if kept is None:
                raise AssistantError("secret_missing", operation="connect", server=server, variable=name)
            if UNFIT_FOR_PROCESS.search(kept) or "\r" in kept or "\n" in kept:
                raise AssistantError.of(Invalid("", "a secret of several lines does not fit").diagnostic(server))
            secrets[name] = kept
    try:
        resolved = {key: expand_value(value, environ, secrets) for key, value in values.items()}
    except Missing as missing:
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
    return [match[5] for match in _REFERENCE.finditer(text) if match[4]]


def _variable(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    value = environ.get(name)
    if default is not None:
        return value or default  # as the shell does: an empty variable takes the default too
    if value is None:
        raise Missing(name)
    return value
