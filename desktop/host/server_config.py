"""What a configured server is, as plain values. Used by the host, the panels and the command line.

``servers_file`` reads and edits the file they stand in, ``server_entry`` checks an entry of it, ``server_references`` resolves
what entries refer to.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from desktop.errors import Diagnostic
from desktop.tool_names import fingerprint

Kind = Literal["stdio", "http", "sse", "builtin"]
Start = Literal["demand", "launch", "manual"]
Protocol = Literal["auto", "legacy"]
Grant = Literal["authorization_code", "client_credentials"]

BUILTIN_NAME = "deskhand"
"""The built-in server's; no configured server may have it."""


@dataclass(frozen=True)
class OAuthSettings:
    """How to sign in at a server; what is not given is found out, or asked for, then."""

    grant: Grant = "authorization_code"
    client_id: str = ""
    client_secret: str = ""
    """The name of a secret in the keyring; the file never holds the secret itself."""
    scopes: tuple[str, ...] = ()
    callback_port: int | None = None
    client_metadata_url: str = ""
    dpop: bool = False
    allow_missing_pkce: bool = False


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
    """Absolute; None: `folder`."""
    folder: str | None = None
    """Where it runs without a `cwd`: the open folder, for instance; None: the folder Deskhand runs in. It comes with the
    situation, so neither the server's identity nor the consent to its command depends on it."""
    workspace: str | None = None
    """The folder whose own file defines the server; None: the person's file. Each has secrets of its own."""
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
    oauth: OAuthSettings | None = None

    @cached_property
    def identity(self) -> str:
        """Fingerprint of what makes it this server: its name and where and how it is reached. References stand for secrets."""
        oauth = [astuple(self.oauth)] if self.oauth else []
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
                *oauth,
            ]
        )

    @cached_property
    def secret_commands(self) -> dict[str, str]:
        """The commands whose output the variables or headers of those names stand for."""
        values = self.env if self.kind == "stdio" else self.headers
        return {name: value[1:].strip() for name, value in values.items() if is_command(value)}

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
    folder: Path | None = None
    """The open folder, which servers may ask for."""


def is_command(value: str) -> bool:
    """Whether a value of ``env`` or ``headers``, as it is written, stands for what a command prints (``secret_command``)."""
    return value.startswith("!")


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this computer by its very name or number."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _matches(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
