"""The history's database: its file and schema, and what is written to it and read from it.

Used by ``history.py``, which says when; every function here blocks and belongs in a thread.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.assistant.conversation import Conversation, Message, Notice, interrupt, message_from_json
from desktop.assistant.history_search import match_expression, searched_text, shown_snippet
from desktop.errors import Diagnostic, os_reason

_log = logging.getLogger(__name__)

#: Seconds that a lock of another process is waited for.
_LOCK_LIMIT = 3.0
#: Bytes; a larger file is not checked as a whole when it is opened.
_CHECKED_SIZE = 64 * 2**20
_CHECK = "PRAGMA quick_check(1)"
_VERSION = 1
_SCHEMA = Path(__file__).with_name("history_schema.sql")


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation in a list."""

    id: str
    title: str
    updated: float
    """Seconds since the epoch."""
    snippet: str = ""
    """What a search found, on one line."""
    message_id: str = ""
    """The newest message that a search found."""


class _NewerHistoryError(sqlite3.Error):
    """The file was written by a newer Deskhand."""


class _DamagedError(sqlite3.DatabaseError):
    """The file's pages don't belong together."""


def connect(file: Path) -> sqlite3.Connection:
    """A further connection to a file that was opened before. Raises sqlite3.Error."""
    database = sqlite3.connect(file, timeout=_LOCK_LIMIT, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA foreign_keys = TRUE")
    return database


def open_database(file: Path) -> sqlite3.Connection:
    """Opens the file, makes it where there is none. Raises sqlite3.Error, OSError."""
    with suppress(FileExistsError):  # made by us, so that it is private from the first; SQLite's other files follow it
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    database = connect(file)
    try:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise _NewerHistoryError
        database.execute("PRAGMA journal_mode = WAL")
        # A transaction is complete for every process once it is committed; only a power failure may take the last ones.
        database.execute("PRAGMA synchronous = NORMAL")
        if version == 0:
            script = _SCHEMA.read_text("utf-8")
            database.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {_VERSION};\nCOMMIT;")
        elif file.stat().st_size <= _CHECKED_SIZE and database.execute(_CHECK).fetchone()[0] != "ok":
            raise _DamagedError
    except BaseException:
        database.close()
        raise
    return database


def set_aside(file: Path) -> str:
    """Renames a damaged file with what SQLite keeps beside it; returns the new name. Nothing is deleted."""
    name = f"{file.name}.damaged-{time.strftime('%Y-%m-%d-%H%M%S')}"
    for suffix in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            os.replace(file.with_name(file.name + suffix), file.with_name(name + suffix))
    return name


def write(
    database: sqlite3.Connection, conversations: list[dict[str, Any]], messages: list[tuple[str, dict[str, Any]]]
) -> None:
    """Writes conversations, and messages (as JSON) with the conversation they belong to, over what is there of them.

    A conversation's title is written where `is_new_title` says so, or where it has none.
    """
    database.executemany(
        "INSERT INTO conversations (id, title, created, updated, head) VALUES (:id, :title, :created, :updated, :head)"
        " ON CONFLICT (id) DO UPDATE SET updated = excluded.updated, head = excluded.head,"
        " title = CASE WHEN :is_new_title OR title = '' THEN excluded.title ELSE title END",
        conversations,
    )
    for conversation_id, message in messages:
        content = storable(json.dumps(message, ensure_ascii=False, default=str))
        rows = database.execute(
            "INSERT INTO messages (id, conversation_id, parent_id, created, content) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET parent_id = excluded.parent_id, content = excluded.content RETURNING number",
            (message["id"], conversation_id, message["parent_id"], message["created"], content),
        ).fetchall()
        text = storable(searched_text(message))
        database.execute("INSERT OR REPLACE INTO message_text (rowid, text) VALUES (?, ?)", (rows[0][0], text))


def summaries(database: sqlite3.Connection, query: str, limit: int) -> list[Summary]:
    """As `History.summaries`."""
    words = query.replace("\0", " ").split()
    if not words:
        rows = database.execute("SELECT id, title, updated FROM conversations ORDER BY updated DESC LIMIT ?", (limit,))
        return [Summary(*row) for row in rows]
    pattern = "%" + re.sub(r"([\\%_])", r"\\\1", " ".join(words)) + "%"
    titled = database.execute(
        "SELECT id, title, updated FROM conversations WHERE title LIKE ? ESCAPE '\\' ORDER BY updated DESC LIMIT ?",
        (storable(pattern), limit),
    )
    found = {row[0]: Summary(*row) for row in titled}
    if expression := storable(match_expression(words)):
        said = database.execute(
            "SELECT conversations.id, title, updated, newest FROM"
            " (SELECT conversation_id, max(number) AS newest FROM message_text"
            "  JOIN messages ON number = message_text.rowid WHERE message_text MATCH ? GROUP BY conversation_id)"
            " JOIN conversations ON conversations.id = conversation_id ORDER BY updated DESC LIMIT ?",
            (expression, limit),
        ).fetchall()
        # The plus: one pass over all that matches instead of a search for each row, which takes ten times as long.
        snippets = database.execute(
            "SELECT number, id, snippet(message_text, 0, '', '', '…', 16) FROM message_text"
            " JOIN messages ON number = message_text.rowid"
            " WHERE message_text MATCH ? AND +message_text.rowid IN (SELECT value FROM json_each(?))",
            (expression, json.dumps([number for *_, number in said])),
        )
        snippet_of = {number: (shown_snippet(snippet), message_id) for number, message_id, snippet in snippets}
        found |= {id_: Summary(id_, title, updated, *snippet_of[number]) for id_, title, updated, number in said}
    return sorted(found.values(), key=lambda summary: -summary.updated)[:limit]


def conversation(database: sqlite3.Connection, id_: str) -> Conversation:
    """As `History.load`: the branch that was open last. Raises KeyError."""
    row = database.execute("SELECT title, created, updated, head FROM conversations WHERE id = ?", (id_,)).fetchone()
    if row is None:
        raise KeyError(id_)
    title, created, updated, head = row
    rows = database.execute(
        "SELECT id, parent_id, content FROM messages WHERE conversation_id = ? ORDER BY number", (id_,)
    ).fetchall()
    parents = {message_id: parent for message_id, parent, _ in rows}
    contents = {message_id: content for message_id, _, content in rows}
    branch: dict[str, None] = {}
    current: str | None = head if head in parents else next(reversed(parents), None)
    while current is not None and current in parents and current not in branch:
        branch[current] = None
        current = parents[current]
    messages = [_message(each, parents[each], contents[each]) for each in reversed(branch)]
    return Conversation(id_, title, created, updated, messages)


def _message(id_: str, parent_id: str | None, content: str) -> Message:
    """The message, whole: finished, each call with a result."""
    try:
        message = message_from_json(json.loads(content))
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # one damaged message doesn't cost the others
        _log.error("a message of the history can't be read: %s", type(error).__name__)
        notice = Notice(Diagnostic("operation_failed", "storage"))
        message = Message("assistant", [notice], id_, parent_id)
    interrupt(message)
    message.finished = True
    return message


def export(database: sqlite3.Connection, id_: str) -> str:
    """As `History.export_json`. Raises KeyError."""
    row = database.execute("SELECT title, created, updated, head FROM conversations WHERE id = ?", (id_,)).fetchone()
    if row is None:
        raise KeyError(id_)
    messages = database.execute("SELECT content FROM messages WHERE conversation_id = ? ORDER BY number", (id_,))
    content = {"id": id_} | dict(zip(("title", "created", "updated", "head"), row, strict=True))
    content["messages"] = [json.loads(message) for (message,) in messages]
    return json.dumps(content, indent=2, ensure_ascii=False)


def storable(text: str) -> str:
    """Text that SQLite takes: half of a surrogate pair becomes its escape, which in JSON means the same."""
    return text.encode(errors="backslashreplace").decode()


def is_damage(error: BaseException) -> bool:
    """Whether the file itself is what is wrong."""
    return isinstance(error, _DamagedError) or _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _code(error: BaseException) -> int:
    """SQLite's primary result code; 0 for an error that isn't SQLite's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


_REASONS = {
    sqlite3.SQLITE_BUSY: "another program is using the history",
    sqlite3.SQLITE_LOCKED: "another program is using the history",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "the history is read-only",
    sqlite3.SQLITE_CANTOPEN: "the history can't be opened",
    sqlite3.SQLITE_IOERR: "the disk refused",
    sqlite3.SQLITE_CORRUPT: "the history is damaged",
    sqlite3.SQLITE_NOTADB: "the history is damaged",
}


def diagnostic(error: sqlite3.Error | OSError) -> Diagnostic:
    """What the person is told of an error."""
    if isinstance(error, OSError):
        reason = os_reason(error)
    elif isinstance(error, _NewerHistoryError):
        reason = "the history was written by a newer Deskhand"
    else:
        reason = _REASONS.get(_code(error), "the history can't be used")
    return Diagnostic("storage_failed", "storage", values={"reason": reason})
