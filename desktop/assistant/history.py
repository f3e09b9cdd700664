"""Conversations on disk: saved while they go on, found, loaded, renamed, deleted, exported.

Used by the turn, which saves, and by the window and the command line, which list and load. One SQLite file; a thread of the
history's own writes, so that neither the loop nor a search keeps a message from the disk: what was saved is written within
100 ms, and a process that is killed loses less than 250 ms. What can't be written stays in memory and is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from desktop.assistant import history_database
from desktop.assistant.conversation import Conversation, Message, to_json
from desktop.assistant.conversation_export import to_markdown
from desktop.assistant.history_database import Summary, diagnostic, is_damage, storable
from desktop.errors import AssistantError, Diagnostic
from desktop.paths import private_folder
from desktop.signals import Signal
from desktop.visible_text import one_line

_log = logging.getLogger(__name__)
Value = TypeVar("Value")

#: Seconds that changes are collected before they are written.
_DELAY = 0.05
#: Seconds after which a write that failed is tried again.
_RETRY = 1.0
_TITLE_LENGTH = 60


class History:
    """The conversations of a person.

    Attributes:
        file: The database; private, as is its folder.
        changed: Emitted in the loop's thread when a list of conversations is no longer as it was.
        fault: Why what was saved is not on disk, or None. It is tried again every second.
        fault_changed: Emitted in the loop's thread.
        set_aside: Under which name a damaged file was kept when a new one had to be begun, or None.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.changed: Signal[()] = Signal()
        self.fault: Diagnostic | None = None
        self.fault_changed: Signal[()] = Signal()
        self.set_aside: Diagnostic | None = None
        self._thread = ThreadPoolExecutor(1, "history")
        self._database: sqlite3.Connection | None = None  # of the thread alone
        self._conversations: dict[str, Conversation] = {}
        self._messages: dict[str, tuple[str, Message]] = {}
        self._deleted: set[str] = set()
        self._listed: dict[str, tuple[str, float]] = {}  # title and time of conversations as they were last given to us
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self) -> None:
        """Opens or makes the file. A failure is told by `fault`: conversations then go on in memory."""
        await self._write_now()
        self.changed.emit()  # what it holds can be listed now

    async def close(self) -> None:
        """Writes what is left, once, and closes the file. Nothing is saved any more afterwards."""
        if self._closed:
            return
        writing = self._start_writing()
        self._closed = True
        await asyncio.gather(writing, *self._tasks)
        if self._conversations:
            _log.error("what was said last could not be written to the history")
        await self._in_thread(self._disconnect)
        self._thread.shutdown()

    def save(self, conversation: Conversation, message: Message) -> None:
        """Has a message written, as it is within the next 100 ms; call it again when the message has changed since."""
        if conversation.id not in self._deleted:
            self._messages[message.id] = conversation.id, message
            self.save_conversation(conversation)

    def save_conversation(self, conversation: Conversation) -> None:
        """Has title, time and open branch written. The title is left alone unless the conversation's own has changed."""
        if conversation.id not in self._deleted:
            self._conversations[conversation.id] = conversation
            self._write_later(_DELAY)

    async def flush(self) -> None:
        """Waits until all that was saved is on disk. Raises AssistantError ``storage_failed``."""
        await self._write_now()
        if self.fault is not None:
            raise AssistantError.of(self.fault)

    async def summaries(self, query: str = "", limit: int = 500) -> list[Summary]:
        """Conversations, newest first; with a query those that have it in the title, or all its words in one message.

        The last word of a query is the beginning of a word. Raises AssistantError ``storage_failed``.
        """
        return await self._read(lambda database: history_database.summaries(database, query, limit))

    async def load(self, id: str) -> Conversation:
        """A conversation with its open branch, well-formed: messages finished, each call with a result.

        One that could not be written is given as it is in memory. Raises KeyError when there is none of that id,
        AssistantError ``storage_failed``.
        """
        await self._write_now()
        if (unwritten := self._conversations.get(id)) is not None:
            return unwritten
        conversation = await self._read(lambda database: history_database.conversation(database, id))
        self._listed[id] = conversation.title, conversation.updated
        return conversation

    async def delete(self, id: str) -> None:
        """Deletes a conversation with all its branches, for good. Raises AssistantError ``storage_failed``."""

        def delete(database: sqlite3.Connection) -> None:
            database.execute(
                "DELETE FROM message_text WHERE rowid IN (SELECT number FROM messages WHERE conversation_id = ?)", (id,)
            )
            database.execute("DELETE FROM conversations WHERE id = ?", (id,))

        self._deleted.add(id)
        try:
            await self._change(delete)
        except AssistantError:
            self._deleted.discard(id)
            raise

    async def rename(self, id: str, title: str) -> None:
        """Raises AssistantError ``storage_failed``."""
        await self.flush()
        await self._change(
            lambda database: database.execute("UPDATE conversations SET title = ? WHERE id = ?", (storable(title), id))
        )

    async def export_markdown(self, id: str) -> str:
        """The open branch with its tool calls, to be read by people. Raises as `load` does."""
        conversation = await self.load(id)
        return await asyncio.to_thread(to_markdown, conversation)

    async def export_json(self, id: str) -> str:
        """The conversation with all its branches, complete. Raises KeyError, AssistantError ``storage_failed``."""
        await self.flush()
        return await self._read(lambda database: history_database.export(database, id))

    # In the loop's thread: what is to be written, and when.

    def _write_later(self, delay: float) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(delay, self._start_writing)

    def _start_writing(self) -> asyncio.Task[None]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        task = asyncio.get_running_loop().create_task(self._write_unsaved())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _write_now(self) -> None:
        """Waits until what is unsaved now was written or could not be; who stops waiting doesn't stop the writing."""
        if not self._closed:
            await asyncio.shield(self._start_writing())

    async def _write_unsaved(self) -> None:
        async with self._writing:
            if self._database is not None and self.fault is None and not self._conversations:
                return
            conversations = {id_: each for id_, each in self._conversations.items() if id_ not in self._deleted}
            messages = {id_: each for id_, each in self._messages.items() if each[0] in conversations}
            self._conversations, self._messages = {}, {}
            rows = [self._row(each) for each in conversations.values()]
            contents = [(conversation_id, to_json(message)) for conversation_id, message in messages.values()]
            set_aside = self.set_aside
            try:
                await self._in_thread(
                    lambda: self._transaction(lambda database: history_database.write(database, rows, contents))
                )
            except (sqlite3.Error, OSError) as error:
                self._conversations = conversations | self._conversations
                self._messages = messages | self._messages
                self._set_fault(diagnostic(error))
                self._write_later(_RETRY)
                return
            self._set_fault(None)
            listed = {row["id"]: (row["own_title"], row["updated"]) for row in rows}
            is_news = any(self._listed.get(id_) != each for id_, each in listed.items())
            self._listed |= listed
            if self.set_aside is not set_aside:  # with it went what had been written of these conversations
                for conversation in conversations.values():
                    for message in conversation.messages:
                        self.save(conversation, message)
        if is_news:
            self.changed.emit()

    def _row(self, conversation: Conversation) -> dict[str, Any]:
        known = self._listed.get(conversation.id, ("", 0.0))[0]
        said = next((message.text for message in conversation.messages if message.role == "user"), "")
        return {
            "id": conversation.id,
            "title": storable(conversation.title) or one_line(said, _TITLE_LENGTH),
            "own_title": conversation.title,
            "is_new_title": conversation.title not in ("", known),
            "created": conversation.created,
            "updated": conversation.updated,
            "head": conversation.messages[-1].id if conversation.messages else None,
        }

    def _set_fault(self, fault: Diagnostic | None) -> None:
        if fault != self.fault:
            self.fault = fault
            self.fault_changed.emit()

    async def _change(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Carries out one change, after what was saved before it."""
        async with self._writing:
            try:
                await self._in_thread(lambda: self._transaction(change))
            except (sqlite3.Error, OSError) as error:
                raise AssistantError.of(diagnostic(error)) from error
        self.changed.emit()

    async def _read(self, read: Callable[[sqlite3.Connection], Value]) -> Value:
        """Reads in another thread and on another connection, so that a long search keeps nothing from being written."""
        await self._write_now()

        def work() -> Value:
            with closing(history_database.connect(self.file)) as database:
                database.execute("PRAGMA query_only = TRUE")
                return read(database)

        if self._database is None and self.fault is not None:
            raise AssistantError.of(self.fault)
        try:
            return await asyncio.to_thread(work)
        except (sqlite3.Error, OSError) as error:
            raise AssistantError.of(diagnostic(error)) from error

    async def _in_thread(self, work: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # In the history's own thread.

    def _transaction(self, change: Callable[[sqlite3.Connection], object]) -> None:
        database = self._opened()
        try:
            database.execute("BEGIN IMMEDIATE")
            change(database)
            database.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and is_damage(error):
                self._disconnect()  # and opened anew, which sets it aside
            raise

    def _opened(self) -> sqlite3.Connection:
        """The database; opened, made, or set aside and made. Raises sqlite3.Error, OSError."""
        if self._database is None:
            private_folder(self.file.parent)
            try:
                self._database = history_database.open_database(self.file)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self.set_aside = Diagnostic(
                    "history_damaged", "storage", values={"name": history_database.set_aside(self.file)}
                )
                self._database = history_database.open_database(self.file)
        return self._database

    def _disconnect(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None
