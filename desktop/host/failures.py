"""Why a server is not connected, as the person sees it: from what its transport and the SDK's client tell, with the last lines
of its log. Used by the lifecycle.
"""

from __future__ import annotations

from typing import Any

from desktop.errors import Diagnostic
from desktop.host.diagnostics import classify, known, server_words
from desktop.host.server_log import ServerLog
from desktop.host.server_state import Failure

#: Lines of error output that a failure carries.
_TAIL = 20
_BEGINNING = "— connecting —"


class Failures:
    def __init__(self, server: str, log: ServerLog) -> None:
        self._server = server
        self._log = log

    def begin(self) -> None:
        """Marks the place in the log from which on lines belong to a new attempt and its life."""
        self._log.append(_BEGINNING)

    def of_attempt(self, error: BaseException | None, transport: Any) -> Failure:
        """Of an attempt to connect, whose process, if there was one, has ended by now."""
        started = transport is not None and getattr(transport, "pid", 0) is not None
        diagnostic = classify(error or ConnectionError(), "connect", self._server).diagnostic
        status = _exit_status(transport)
        if diagnostic.code == "connection_failed" and status is not None:
            diagnostic = self.ended_by_itself(transport)
        if diagnostic.code == "server_error" and error is not None and (words := server_words(error)) is not None:
            self._log.append(words, "message", "error")
        # Of a process that we ended the status says nothing.
        told = status if diagnostic.code == "server_exited" else None
        return Failure("handshake" if started else "start", diagnostic, told, self._tail())

    def of_life(self, reason: Diagnostic, transport: Any) -> Failure:
        """Of a life that has ended for a reason."""
        return Failure("running", reason, _exit_status(transport), self._tail())

    def ended_by_itself(self, transport: Any) -> Diagnostic:
        """Why a server is gone that nobody has left."""
        status = _exit_status(transport)
        if status is None:
            return known("connection_failed", "connect", self._server).diagnostic
        told = f" with status {status}" if status >= 0 else f" by signal {-status}"
        return known("server_exited", "connect", self._server, status=told).diagnostic

    def _tail(self) -> str:
        """The last lines of the log that belong to the present attempt or life."""
        lines = self._log.tail(_TAIL)
        begun = max((number + 1 for number, line in enumerate(lines) if line == _BEGINNING), default=0)
        return "\n".join(lines[begun:])


def _exit_status(transport: Any) -> int | None:
    return getattr(transport, "exit_status", None)
