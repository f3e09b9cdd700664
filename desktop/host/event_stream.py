"""An event stream taken apart and put together again, so that a large event never stands in memory.

Used by the transport of HTTP servers. The SDK reads what comes out: events of the same fields, the data of large ones replaced.
Events are as the HTML standard defines them (server-sent events).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from desktop.host.large_messages import IncomingMessage, MessageRefused

_DATA = b"data:"
#: Of the fields beside the data; what is more of an event is left out.
_LONGEST_LINE = 64 * 1024
_MOST_LINES = 16


class EventStream:
    """Give it the stream as it comes; comments are left out, an event goes on once it is complete."""

    def __init__(
        self, new_message: Callable[[], IncomingMessage], replace: Callable[[MessageRefused], bytes | None]
    ) -> None:
        """`replace` gives the data for an event whose own can't be taken; None: the event is left out."""
        self._new_message = new_message
        self._replace = replace
        self._line = b""
        """The beginning of a line that isn't data, or not yet known to be."""
        self._in_data = False
        self._after_return = False
        self._fields: list[bytes] = []
        self._data: IncomingMessage | None = None

    async def take(self, chunk: bytes) -> AsyncIterator[bytes]:
        """The events that are complete with the next piece of the stream."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        for piece in chunk.splitlines(keepends=True):
            content = piece.rstrip(b"\r\n")
            ended = len(content) < len(piece)
            if self._in_data:
                await self._add(content)
            else:
                self._line = (self._line + content)[:_LONGEST_LINE]
                if self._line.startswith(_DATA) and (ended or len(self._line) > len(_DATA)):
                    await self._begin_data()
            if ended:
                if not self._in_data and not self._line:
                    if event := await self._event():
                        yield event
                elif not self._in_data and not self._line.startswith(b":") and len(self._fields) < _MOST_LINES:
                    self._fields.append(self._line)
                self._line, self._in_data = b"", False

    def discard(self) -> None:
        """Forgets an event that is not complete."""
        if self._data is not None:
            self._data.discard()

    async def _begin_data(self) -> None:
        content = self._line[len(_DATA) :].removeprefix(b" ")
        self._line, self._in_data = b"", True
        if self._data is None:
            self._data = self._new_message()
        else:
            content = b"\n" + content
        await self._add(content)

    async def _add(self, content: bytes) -> None:
        assert self._data is not None
        if self._data.add(content):
            await self._data.spill()

    async def _event(self) -> bytes | None:
        lines, self._fields = self._fields, []
        if self._data is not None:
            message, self._data = self._data, None
            try:
                data = await message.finish()
            except MessageRefused as refused:
                data = self._replace(refused)
                if data is None:
                    return None
            lines += [b"data: %b" % line for line in data.split(b"\n")]
        return b"\n".join([*lines, b"", b""]) if lines else None
