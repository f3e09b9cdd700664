"""Where the SDK's own log goes: its warnings to the log of the server they are about, the rest nowhere.

Used by the transports. The SDK logs exceptions whose text and traceback hold what a server sent, addresses and, below WARNING,
arguments and session ids. Of a warning its message is kept, of an exception its type; to the person who reads a server's log
they say what was wrong with an answer.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar

from desktop.host.server_log import ServerLog
from desktop.visible_text import one_line

logger = logging.getLogger(__name__)

_server_log: ContextVar[ServerLog | None] = ContextVar("server_log", default=None)


class _Router(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        text = one_line(record.getMessage(), 400)
        if record.exc_info and record.exc_info[0] is not None:
            text = f"{text} ({record.exc_info[0].__name__})"
        log = _server_log.get()
        if log is not None:
            log.append(text)
        else:
            logger.debug("%s: %s", record.name, text)


_router = _Router(logging.WARNING)


def route_to(log: ServerLog) -> None:
    """From now on, what the SDK warns of in this task and in those it starts goes to this server's log."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):  # the SDK's session calls its logger "client"
        library = logging.getLogger(name)
        library.setLevel(logging.WARNING)
        library.propagate = False
        library.addHandler(_router)  # once, however often
    _server_log.set(log)
