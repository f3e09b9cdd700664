"""The state of a server's connection, as plain values: the connection publishes them, panels and the command line show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from desktop.errors import Diagnostic

Status = Literal["disabled", "idle", "needs_consent", "connecting", "connected", "failed"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a server is not connected."""

    stage: Literal["start", "handshake", "list", "running"]
    """What was being done: start the process, agree on the protocol, list, or nothing in particular."""
    diagnostic: Diagnostic
    exit_status: int | None = None
    """Of the server's process; negative: ended by that signal; None: it has none, or it has not ended."""
    error_output: str = ""
    """The last lines the server wrote to its error output, hidden characters made visible. For the person alone."""


@dataclass(frozen=True, slots=True)
class ServerState:
    status: Status
    failure: Failure | None = None
    """Of the last attempt or connection; a success clears it."""
    protocol_version: str = ""
    """As negotiated, such as ``2026-07-28``; empty while not connected."""
    title: str = ""
    """The server's own name for itself; untrusted text."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Entries by kind (``tool``, ``resource``, ``template``, ``prompt``) as listed last; a kind that is missing is unknown."""
    warnings: tuple[Diagnostic, ...] = ()
    """What was wrong with the last lists, such as pages that repeat."""
    strays: bool = False
    """Whether its output has had lines that are no messages: they were left out, and are in its log."""
    retry_in: float | None = None
    """Seconds from the publication of this state to the next attempt to connect; None: none is planned."""
