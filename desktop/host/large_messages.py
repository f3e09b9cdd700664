"""A message as it arrives in pieces: small ones in memory, large ones in a private file, too large ones skipped.

Used by the transports. A message of more than 1 MiB is not parsed in this process, which would stand still meanwhile: a
`LargeMessageReader` gets the file and gives back a smaller message that takes its place. 64 MiB is the most a message may have on
any transport; what it belonged to is then answered with an error, and memory stays flat.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO

from mcp_types import ErrorData, JSONRPCError, RequestId

from desktop.errors import AssistantError
from desktop.host.exact_json import with_exact_text
from desktop.paths import private_folder
from desktop.processes import owner_tag

MIB = 1024 * 1024
LARGEST_INLINE = MIB
LARGEST_MESSAGE = 64 * MIB
MESSAGE_TOO_LARGE = -31001
"""Code of the error that answers a request whose answer was too large. Outside the ranges of JSON-RPC and MCP."""
MESSAGE_NOT_READ = -31002
"""Code of the error that answers a request whose large answer could not be stored or read here."""
LARGE_META = "deskhand/large"
"""Key in the ``_meta`` of a result that was reduced; its value is a token that no server can know."""
#: Bytes of a message's beginning and end that tell whom it answers.
_ENDS = 4096

LargeMessageReader = Callable[[Path], Awaitable[bytes]]
"""Gets a private file that holds one JSON-RPC message of more than 1 MiB as it was received, and gives the message that takes its
place. It moves or deletes the file. Raises ValueError when the file holds no JSON."""

_ID = rb'(-?\d+|"(?:[^"\\]|\\.)*")'
_VERSION = rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
_RESPONSE_WITH_ID = re.compile(rb'\s*\{\s*%b"id"\s*:\s*%b\s*,\s*%b"(?:result|error)"' % (_VERSION, _ID, _VERSION))
_RESPONSE = re.compile(rb'\s*\{\s*%b"(?:result|error)"' % _VERSION)
_OWN = re.compile(rb'\s*\{\s*%b(?:"id"\s*:\s*%b\s*,\s*)?%b"(?:method|params)"' % (_VERSION, _ID, _VERSION))
#: An escape for half a character, without the other half; an escaped backslash before it counts.
_HALF_CHARACTER = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:"
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_ID_AT_END = re.compile(rb'[{,]\s*"id"\s*:\s*%b\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z' % _ID)


class MessageRefused(Exception):
    """A message that can't be taken. `code` is the error for whom it answers, `head` and `tail` are its ends."""

    def __init__(self, code: int, head: bytes, tail: bytes) -> None:
        super().__init__(code)
        self.code = code
        self.head = head
        self.tail = tail


class AnswerLost(Exception):
    """A message was skipped, and it can't be told which request it answered, if any."""


class IncomingMessage:
    """One message: `add` its pieces, `spill` when `add` says so, then `finish` or `discard`."""

    def __init__(self, folder: Path, read_large: LargeMessageReader | None) -> None:
        """`folder` is for large messages; without `read_large` they are read into memory."""
        self.size = 0
        self._folder = folder
        self._read_large = read_large
        self._pieces: list[bytes] = []
        self._held = 0
        self._head = b""
        self._tail = b""
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._refused = 0

    def add(self, piece: bytes) -> bool:
        """Takes the next piece, at most some hundred KiB; True: memory is full, `spill` before the next one."""
        self.size += len(piece)
        if self._refused:
            self._tail = (self._tail + piece)[-_ENDS:]
            return False
        self._pieces.append(piece)
        self._held += len(piece)
        return self._held > LARGEST_INLINE or (self._file is not None and self._held >= LARGEST_INLINE // 4)

    async def spill(self) -> None:
        """Moves what is held in memory to the file; the loop goes on meanwhile."""
        held = b"".join(self._pieces)
        self._pieces, self._held = [], 0
        self._head = self._head or held[:_ENDS]
        self._tail = (self._tail + held)[-_ENDS:]
        try:
            if self.size > LARGEST_MESSAGE:
                self._refuse(MESSAGE_TOO_LARGE)
            else:
                await asyncio.to_thread(self._write, held)
        except OSError:
            self._refuse(MESSAGE_NOT_READ)

    async def finish(self) -> bytes:
        """The message, with the text of its structured content added (``exact_json.py``), or what takes its place.

        Raises MessageRefused.
        """
        try:
            if self.size > LARGEST_INLINE and not self._refused:
                await self.spill()
            if self._refused:
                raise MessageRefused(self._refused, self._head, self._tail)
            if self._path is None:
                return with_exact_text(readable(b"".join(self._pieces)))
            return readable(await self._read(self._path))
        finally:
            self.discard()

    def discard(self) -> None:
        """Deletes what was stored and is still there."""
        self._pieces = []
        if self._file is not None:
            self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def _read(self, path: Path) -> bytes:
        assert self._file is not None
        self._file.close()
        try:
            if self._read_large is None:
                return await asyncio.to_thread(path.read_bytes)
            return await self._read_large(path)
        except ValueError:
            return self._head  # no JSON: whoever parses it sees that
        except (AssistantError, OSError) as error:
            raise MessageRefused(MESSAGE_NOT_READ, self._head, self._tail) from error

    def _write(self, content: bytes) -> None:
        if self._file is None:
            handle, path = tempfile.mkstemp(
                prefix=f"{owner_tag()}-", dir=private_folder(self._folder)
            )  # exclusive, 0600
            self._file, self._path = os.fdopen(handle, "wb"), Path(path)
        self._file.write(content)

    def _refuse(self, code: int) -> None:
        self._refused = code
        self.discard()


def readable(message: bytes) -> bytes:
    """The message with U+FFFD for what no parser takes: half a character and bytes that are no UTF-8.

    Servers that cut a text in the midst of an emoji, or write the encoding of their system, send such; one character must not
    cost the whole answer.
    """
    try:
        message.decode()
    except UnicodeDecodeError:
        message = message.decode(errors="replace").encode()
    if b"\\ud" in message or b"\\uD" in message:
        message = _HALF_CHARACTER.sub(rb"\1\\ufffd", message)
    return message


def answered_request(head: bytes, tail: bytes) -> RequestId | None:
    """The request that a message answers, by the message's ends; None for a request or notification of the sender's own.

    Raises AnswerLost where they don't tell.
    """
    if match := _RESPONSE_WITH_ID.match(head) or (_RESPONSE.match(head) and _ID_AT_END.search(tail)):
        return json.loads(match[1])
    if _OWN.match(head):
        return None
    raise AnswerLost


def refusal(request: RequestId, code: int) -> JSONRPCError:
    """The error that takes the place of an answer that there will not be."""
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message="There is no answer."))
