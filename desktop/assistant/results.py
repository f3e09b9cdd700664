"""Results of tools and reads within the limits of a conversation; what is more goes to private files.

Used by the turn (`output`, `read_output`, `text_output`), by the transports for messages of more than 1 MiB
(`receive_large`), by the built-in server, which offers what is stored (`page`, `find`, `select_json`), and by the settings,
which list and clear it. What counts and how much is decided in ``limiter.py``.

A conversation's results lie in a folder of its own below the store's; half-written files and messages on their way lie in a
folder that carries their owner, so that only what a dead owner left behind is swept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from desktop import processes
from desktop.assistant import limiter, stored_result
from desktop.assistant.conversation import Block, Image, SpilledFile, ToolOutput
from desktop.assistant.large_message import LARGE_META, NOT_VALID, Facts
from desktop.errors import AssistantError, Diagnostic, os_reason
from desktop.json_text import Reader
from desktop.paths import private_folder

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ReadResourceResult

_MISMATCH_META = "deskhand/schemaMismatch"
#: The text of the structured content as the server wrote it: what was parsed has other digits.
_EXACT_META = "deskhand/structuredText"
_OWN_META = {LARGE_META, _MISMATCH_META, _EXACT_META}
_SPOOL = "spool-"
#: Large results that were received and not yet asked for; one that is never asked for (its call was stopped) goes when
#: so many others came after it.
_MOST_RECEIVED = 32
#: Seconds.
_TIME_LIMIT = 60.0
_QUESTION_LIMIT = 20.0
#: Bytes that the reader of large messages may print: images, the head, and what JSON makes of them.
_OUTPUT_LIMIT = limiter.MAX_IMAGE_CHARACTERS + 4 * 2**20
_MOST_PLACES = 100
_ID = re.compile("[0-9a-f]{16}")
_FOLDER_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
#: The id of a JSON-RPC message at its beginning or its end, where servers write it; what is between is not looked at.
_ID_AT_HEAD = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18}|"[^"\\]{0,200}")\s*,')
_ID_AT_TAIL = re.compile(
    rb'\}\s*,(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{0,200}")[^{}]*\}\s*$'
)


class ResultStore:
    """Brings results within the limits, and keeps the complete ones.

    Attributes:
        folder: Private; holds a folder a conversation.
        spool_folder: Private; where a message that is received goes until `receive_large` gets it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._received: dict[str, Facts] = {}

    @property
    def spool_folder(self) -> Path:
        spool = self.folder / f"{_SPOOL}{processes.owner_tag()}"
        with suppress(OSError):  # whoever writes into it then meets the same error, and knows what to do about it
            private_folder(self.folder)
            private_folder(spool)
        return spool

    async def output(self, result: CallToolResult, *, conversation_id: str, server: str) -> ToolOutput:
        """A tool's result within the limits. Never fails for want of a file: then it says that the rest is not kept."""
        output = await self._limited(result, "", conversation_id, server)
        output.reported_error = result.is_error
        if (result.meta or {}).get(_MISMATCH_META):
            output.warning = f"{output.warning} The result does not fit the tool's output schema.".strip()
        return output

    async def read_output(
        self, result: ReadResourceResult, *, conversation_id: str, server: str, header: str
    ) -> ToolOutput:
        """What was read of a server within the limits, below a header. Offsets into the stored text don't count the header."""
        return await self._limited(result, header, conversation_id, server)

    async def text_output(self, text: str, *, conversation_id: str) -> ToolOutput:
        """A text of Deskhand's own within the limits."""
        content = json.dumps({"content": [{"type": "text", "text": text}]}, ensure_ascii=False)
        id_ = secrets.token_hex(8)
        return await self._kept_if_wanted(
            lambda: self._limit(content, "", id_, conversation_id=conversation_id), conversation_id, id_
        )

    async def receive_large(self, file: Path) -> bytes:
        """Takes a file with one JSON-RPC message; returns the message that stands for it in the stream.

        A result of a tool or a read is stored, and its head stands for it, with images as far as the limit allows. Another
        message is returned whole. What is no JSON becomes the JSON-RPC error of the request it answers; raises ValueError
        where that can't be told, AssistantError ``operation_failed`` where reading it takes too long. The file is gone
        afterwards.
        """
        id_ = secrets.token_hex(8)
        spool = self.spool_folder
        try:
            status, output = await self._ask("receive", _TIME_LIMIT, message=str(file), folder=str(spool), id=id_)
            if status == NOT_VALID:
                return await asyncio.to_thread(_not_json, file)
            if status:
                raise AssistantError("operation_failed", operation="storage")
            facts, _, message = output.partition(b"\n")
            if not facts:
                return await asyncio.to_thread(file.read_bytes)
            self._received[id_] = Facts(**json.loads(facts))
            if len(self._received) > _MOST_RECEIVED:
                forgotten = next(iter(self._received))
                del self._received[forgotten]
                await asyncio.to_thread(stored_result.remove, spool, forgotten)
            return message
        finally:
            _discard(file)
            if id_ not in self._received:
                stored_result.remove(spool, id_)

    async def page(self, id: str, offset: int, length: int | None) -> str:
        """A part of a stored result's text and the exact call for the next one; `length` (None: what fits) in characters.

        A page holds at most 1,900 lines or 46 KiB. Raises AssistantError ``result_gone``, ``arguments_invalid``.
        """
        return await asyncio.to_thread(self._page, id, offset, length)

    async def find(self, id: str, pattern: str, limit: int) -> str:
        """Where a stored result's text has the pattern, as it stands or else as a regular expression, ignoring case.

        At most `limit` (and 100) places, each with its offset. Raises AssistantError ``result_gone``, ``arguments_invalid``.
        """
        if not pattern:
            raise AssistantError("arguments_invalid", operation="search", reason="the pattern is empty")
        limit = max(1, min(limit, _MOST_PLACES))
        return await self._question("find", id, "the search takes too long", pattern=pattern, limit=limit)

    async def select_json(self, id: str, pointer: str) -> str:
        """The value that an RFC 6901 pointer names in a stored result, without a changed digit, as far as it fits.

        The pointer leads into the complete result, else into its structured content, else into a text of it that is JSON.
        Raises AssistantError ``result_gone``, ``arguments_invalid``.
        """
        return await self._question("select", id, "the result is no JSON that can be read", pointer=pointer)

    def sizes(self) -> dict[str, int]:
        """Bytes of what is stored, by conversation. Reads the disk: call it in a thread."""
        sizes: dict[str, int] = {}
        for folder in self._folders():
            if not folder.name.startswith(_SPOOL):
                with suppress(OSError):  # it goes at this very moment
                    sizes[folder.name] = sum(file.stat().st_size for file in folder.iterdir())
        return sizes

    def delete(self, conversation_id: str) -> None:
        """Removes what is stored of a conversation. Call it in a thread."""
        shutil.rmtree(self._folder_of(conversation_id), ignore_errors=True)

    def sweep(self) -> None:
        """Removes what dead owners left half-written, never what belongs to a living one. Call it in a thread."""
        for folder in self._folders():
            if folder.name.startswith(_SPOOL) and not processes.owner_lives(folder.name.removeprefix(_SPOOL)):
                shutil.rmtree(folder, ignore_errors=True)

    async def _limited(
        self, result: CallToolResult | ReadResourceResult, header: str, conversation_id: str, server: str
    ) -> ToolOutput:
        id_ = (result.meta or {}).get(LARGE_META)
        facts = self._received.pop(id_, None) if isinstance(id_, str) else None
        if facts is None or not isinstance(id_, str):
            id_ = secrets.token_hex(8)
            return await self._kept_if_wanted(
                lambda: self._limit(
                    *_as_json(result), id_, header=header, conversation_id=conversation_id, server=server
                ),
                conversation_id,
                id_,
            )
        spool = self.spool_folder
        try:
            if facts.has_links and facts.error is None:
                status, output = await self._ask("name_server", _TIME_LIMIT, folder=str(spool), id=id_, server=server)
                facts = Facts(**json.loads(output)) if status == 0 else facts
            return await self._kept_if_wanted(
                lambda: self._received_output(result, facts, header, conversation_id, id_), conversation_id, id_
            )
        finally:
            stored_result.remove(spool, id_)  # unless it was kept and is no longer there

    async def _kept_if_wanted(self, limit: Callable[[], ToolOutput], conversation_id: str, id_: str) -> ToolOutput:
        """What `limit` gives, in a thread. Of a call that is stopped meanwhile nothing is left: nobody knows of its file."""
        work = asyncio.ensure_future(asyncio.to_thread(limit))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(lambda _: stored_result.remove(self._folder_of(conversation_id), id_))
            raise

    def _received_output(
        self,
        result: CallToolResult | ReadResourceResult,
        facts: Facts,
        header: str,
        conversation_id: str,
        id_: str,
    ) -> ToolOutput:
        images = limiter.shown(Reader(_as_json(result)[0])).images
        return self._output(facts, images, header, conversation_id, id_)

    def _limit(
        self, content: str, warning: str, id_: str, *, header: str = "", conversation_id: str, server: str = ""
    ) -> ToolOutput:
        """Brings a result (as JSON) within the limits."""
        shown = limiter.shown(Reader(content), server)
        facts = Facts.of(shown)
        if _shown_of(facts, header) < facts.characters or not facts.complete:
            spool = self.spool_folder
            try:
                stored_result.write_result(spool, id_, content.encode(errors="backslashreplace"))
                stored_result.write_text(spool, id_, shown.text)
            except OSError as error:
                stored_result.remove(spool, id_)
                facts.error = error.errno or 0
        output = self._output(facts, shown.images, header, conversation_id, id_)
        output.warning = f"{warning} {output.warning}".strip()
        return output

    def _output(
        self, facts: Facts, images: Sequence[tuple[str, str, str]], header: str, conversation_id: str, id_: str
    ) -> ToolOutput:
        """The head of a result, and in closing lines what is more of it, if any: where it is, and how to read on."""
        end = _shown_of(facts, header)
        output = ToolOutput("", [Image(mime_type, data) for mime_type, data, _ in images])
        closing: list[str] = []
        if end < facts.characters:
            lines = limiter.count_lines(facts.text[:end])
            closing.append(f"Shown: the first {end} of {facts.characters} characters, {lines} of {facts.lines} lines.")
        if not facts.complete:
            closing.append("Some parts can't be shown.")
        if closing:
            try:
                if facts.error is not None:
                    raise OSError(facts.error, "")
                output.spilled = self._keep(facts, conversation_id, id_)
            except OSError as error:
                diagnostic = Diagnostic("storage_failed", "storage", values={"reason": os_reason(error)})
                closing.append(f"The rest could not be kept: {os_reason(error)}.")
                output.warning = str(diagnostic)
            else:
                closing.append(
                    f"The complete result is in the file {output.spilled.path} ({output.spilled.size} bytes)."
                )
                if end < facts.characters:
                    closing.append(f"Next part: {_page_call(id_, end)}")
        text = facts.text[:end]
        start = len(header) + 2 if header else 0
        output.blocks = [
            Block(start + begin, start + stop, mime_type, structured)
            for begin, stop, mime_type, structured in facts.blocks
            if stop <= end
        ]
        parts = [header, text.removesuffix("\n") if closing else text, f"[{' '.join(closing)}]" if closing else ""]
        output.text = "\n\n".join(part for part in parts if part)
        return output

    def _keep(self, facts: Facts, conversation_id: str, id_: str) -> SpilledFile:
        """Moves a stored result into its conversation's folder. Raises OSError."""
        spool, folder = self.spool_folder, self._folder_of(conversation_id)
        try:
            stored_result.move(spool, private_folder(folder), id_)
            file = folder / f"{id_}.json"
            return SpilledFile(id_, str(file), file.stat().st_size, facts.characters, facts.lines)
        except OSError:
            stored_result.remove(spool, id_)
            stored_result.remove(folder, id_)
            raise

    def _page(self, id_: str, offset: int, length: int | None) -> str:
        folder = self._folder_with(id_)
        try:
            index = stored_result.read_index(folder, id_)
            # one character more than fits, so that the limiter sees that the text goes on
            most = limiter.PAGE_BYTES + 1
            text = stored_result.read_text(folder, id_, index, max(0, offset), min(length or most, most))
        except OSError as error:
            raise AssistantError("result_gone", operation="read") from error
        if not 0 <= offset < index.characters or (length is not None and length < 1):
            reason = f"the text has {index.characters} characters"
            raise AssistantError("arguments_invalid", operation="read", reason=reason)
        text = text[: limiter.head(text, limiter.PAGE_LINES, limiter.PAGE_BYTES)]
        end = offset + len(text)
        closing = f"Characters {offset} to {end} of {index.characters}."
        closing += f" Next part: {_page_call(id_, end)}" if end < index.characters else " This is the end."
        return f"{text}\n[{closing}]"

    async def _question(self, operation: str, id_: str, failure: str, **arguments: str | int) -> str:
        """Has the reader of large messages answer a question on a stored result."""
        folder = await asyncio.to_thread(self._folder_with, id_)
        status, output = await self._ask(operation, _QUESTION_LIMIT, folder=str(folder), id=id_, **arguments)
        if status == 0:
            return output.decode()
        reason = output.decode() if status == NOT_VALID else failure
        raise AssistantError("arguments_invalid", operation="search", reason=reason)

    async def _ask(self, operation: str, time_limit: float, **arguments: str | int) -> tuple[int, bytes]:
        """Runs the reader of large messages: its exit status (-1: too slow, or it could not be started) and its output."""
        frozen = getattr(sys, "frozen", False)
        program = ["--large-message"] if frozen else ["-m", "desktop.assistant.large_message"]
        try:
            finished = await processes.run(
                [sys.executable, *program, operation],
                folder=None if frozen else Path(__file__).parents[2],
                time_limit=time_limit,
                output_limit=_OUTPUT_LIMIT,
                input_=json.dumps(arguments).encode(),
            )
        except (OSError, TimeoutError, ValueError):
            return -1, b""
        return finished.status, finished.output

    def _folder_of(self, conversation_id: str) -> Path:
        if _FOLDER_NAME.fullmatch(conversation_id) and not conversation_id.startswith(_SPOOL):
            return self.folder / conversation_id
        return self.folder / hashlib.sha256(conversation_id.encode()).hexdigest()

    def _folder_with(self, id_: str) -> Path:
        """The folder that holds a stored result. Raises AssistantError ``result_gone``."""
        for folder in self._folders() if _ID.fullmatch(id_) else ():
            if (folder / f"{id_}.index").exists():
                return folder
        raise AssistantError("result_gone", operation="read")

    def _folders(self) -> list[Path]:
        try:
            return [each for each in self.folder.iterdir() if each.is_dir()]
        except OSError:  # nothing was ever stored
            return []


def _shown_of(facts: Facts, header: str) -> int:
    """How many characters of a text are shown below a header."""
    lines, size = (header.count("\n") + 2, len(header.encode(errors="replace")) + 2) if header else (0, 0)
    return limiter.head(facts.text, max(1, limiter.MAX_LINES - lines), max(1, limiter.MAX_BYTES - size))


def _page_call(id_: str, offset: int) -> str:
    return limiter.read_call("deskhand", f"result://{id_}?offset={offset}")


def _as_json(result: CallToolResult | ReadResourceResult) -> tuple[str, str]:
    """The result as the server sent it, without our own marks, as JSON, and a warning where a part of it has no JSON."""
    content: dict[str, Any] = result.model_dump(by_alias=True, exclude_none=True)
    meta = content.get("_meta", {})
    content["_meta"] = {name: value for name, value in meta.items() if name not in _OWN_META}
    exact_text = meta.get(_EXACT_META)
    if exact_text is not None:
        content.pop("structuredContent", None)
        return f'{json.dumps(content, ensure_ascii=False)[:-1]}, "structuredContent": {exact_text}}}', ""
    try:
        return json.dumps(content, ensure_ascii=False), ""
    except (ValueError, RecursionError):  # an integer of more digits than Python writes, or nested without end
        content.pop("structuredContent", None)
        return json.dumps(
            content, ensure_ascii=False, skipkeys=True
        ), "The structured content can't be written as JSON."


def _not_json(file: Path) -> bytes:
    """The JSON-RPC error of the request that a message answers which is no JSON. Raises ValueError where that isn't known."""
    with file.open("rb") as content:
        head = content.read(1024)
        content.seek(max(0, file.stat().st_size - 1024))
        tail = content.read()
    found = _ID_AT_HEAD.match(head) or _ID_AT_TAIL.search(tail)
    if found is None:
        raise ValueError("a large message is no JSON, and whose answer it is can't be told")
    return b'{"jsonrpc": "2.0", "id": %b, "error": {"code": -32700, "message": "The answer is no JSON."}}' % found[1]


def _discard(file: Path) -> None:
    with suppress(OSError):
        file.unlink()
