"""The pipes of a server's process: what comes of its output, in order and bounded memory, and its error output to its log.

Used by ``transport`` alone.
"""

from __future__ import annotations

import asyncio

from desktop.host.large_messages import MIB
from desktop.host.server_log import ServerLog

#: Seconds of silence after which the output of a server that has ended is over though something still holds the pipe, and the
#: most that it may go on.
LAST_OUTPUT = 0.04
_LONGEST_LAST_OUTPUT = 2.0
#: Seconds between two looks at the error output: what was written meanwhile comes at once and costs little.
_ERROR_OUTPUT_INTERVAL = 0.01
#: Bytes of output that wait to be read before the pipe is left to fill up.
_MOST_HELD = MIB


class ProcessPipes(asyncio.SubprocessProtocol):
    """What comes from the server's process, as it comes.

    Attributes:
        exited: Done when the process has ended.
        closed: Done when its pipes are closed, too.
    """

    transport: asyncio.SubprocessTransport

    def __init__(self, log: ServerLog) -> None:
        loop = asyncio.get_running_loop()
        self.exit_status: int | None = None
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._log = log
        self._chunks: list[bytes] = []
        self._held = 0
        self._paused = False
        self._discards = False
        self._output_ended = False
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._next_look: asyncio.TimerHandle | None = None
        self._last_output: asyncio.TimerHandle | None = None
        """Ends the output; None while the server lives and listens."""

    async def take(self) -> list[bytes]:
        """The output that has arrived, at least a piece; none: it is over."""
        while not self._chunks:
            self._arrived.clear()
            if self._output_ended:
                return []
            try:
                async with asyncio.timeout(LAST_OUTPUT if self._last_output else None):
                    await self._arrived.wait()
            except TimeoutError:
                return []
        chunks, self._chunks, self._held = self._chunks, [], 0
        if self._paused:
            self._paused = False
            self._reading(1).resume_reading()
        return chunks

    def discard_output(self) -> None:
        self._discards = True
        self._chunks.clear()
        if self._paused:
            self._paused = False
            self._reading(1).resume_reading()

    async def write(self, content: bytes) -> None:
        """Returns when the server has taken most of it. Content for a server that is gone is lost: its end says so."""
        input_ = self.transport.get_pipe_transport(0)
        assert isinstance(input_, asyncio.WriteTransport)
        if not input_.is_closing():
            input_.write(content)
            await self._writable.wait()

    def close_input(self) -> None:
        """Once all that was written has been taken."""
        input_ = self.transport.get_pipe_transport(0)
        if input_ is not None:
            input_.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._log.feed(data)
            error_output = self._reading(2)
            error_output.pause_reading()
            loop = asyncio.get_running_loop()
            self._next_look = loop.call_later(_ERROR_OUTPUT_INTERVAL, error_output.resume_reading)
        elif not self._discards and not self._output_ended:
            self._chunks.append(data)
            self._held += len(data)
            self._arrived.set()
            if self._held >= _MOST_HELD:
                self._paused = True
                self._reading(1).pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._writable.set()
            self._begin_last_output()
        elif fd == 1:
            self._end_output()

    def process_exited(self) -> None:
        self.exit_status = self.transport.get_returncode()
        self.exited.set_result(None)
        self._begin_last_output()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._next_look, self._last_output):
            if timer is not None:
                timer.cancel()
        self.closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _begin_last_output(self) -> None:
        """A server that has ended, or that listens no more, gets a moment for what it said last."""
        if self._last_output is None:
            self._last_output = asyncio.get_running_loop().call_later(_LONGEST_LAST_OUTPUT, self._end_output)
            self._arrived.set()

    def _end_output(self) -> None:
        self._output_ended = True
        self._arrived.set()

    def _reading(self, fd: int) -> asyncio.ReadTransport:
        output = self.transport.get_pipe_transport(fd)
        assert isinstance(output, asyncio.ReadTransport)
        return output
