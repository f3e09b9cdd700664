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

#: Loggers (and those below them) of the SDK's client; its session calls its logger "client".
_CLIENT = ("mcp.client", "mcp.shared.jsonrpc_dispatcher", "mcp.shared.dispatcher", "client")

_server_log: ContextVar[ServerLog | None] = ContextVar("server_log", default=None)


def quiet() -> None:
    """Silences the SDK and its HTTP client below WARNING, and keeps what its client says from every other log."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(tuple(f"{each}." for each in _CLIENT)) or name in _CLIENT:
            # A logger's filter sees what is logged to it alone, so each gets it; once, however often.
            logging.getLogger(name).addFilter(_take)


def route_to(log: ServerLog) -> None:
    """From now on, what the SDK's client warns of in this task and in those it starts goes to this server's log."""
    _server_log.set(log)


def _take(record: logging.LogRecord) -> bool:
    text = one_line(record.getMessage(), 400)
    if record.exc_info and record.exc_info[0] is not None:
        text = f"{text} ({record.exc_info[0].__name__})"
    log = _server_log.get()
    if log is not None:
        log.append(text, level="warning")
    else:
        logger.debug("%s: %s", record.name, text)
    return False
