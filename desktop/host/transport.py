"""A server that is a process: its standard input and output carry the protocol, its error output goes to its log.

Used by the connection, which gives it to the SDK's client. In place of the SDK's own transport: this one reads in linear time and
bounded memory, knows within 100 ms when the server is gone, and leaves nothing of it running.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_PARAMS, PARSE_ERROR, JSONRPCRequest, RequestId, jsonrpc_message_adapter
from pydantic_core import PydanticSerializationError

from desktop import processes
from desktop.errors import AssistantError
from desktop.host.environment import check_batch_arguments
from desktop.host.large_messages import (
    LARGEST_MESSAGE,
    MESSAGE_TOO_LARGE,
    MIB,
    AnswerLost,
    IncomingMessage,
    LargeMessageReader,
    MessageRefused,
    answered_request,
    refusal,
)
from desktop.host.sdk_log import quiet, route_to
from desktop.host.server_log import LONGEST_LINE, ServerLog

#: Seconds for a server to end by itself once its input is closed, and again once it was asked to.
_GRACE = 2.0
#: Seconds for what was to be sent before the input is closed.
_LAST_INPUT = 0.1
#: Seconds of silence after which the output of a server that has ended is over though something still holds the pipe, and the
#: most that it may go on.
_LAST_OUTPUT = 0.04
_LONGEST_LAST_OUTPUT = 2.0
#: Seconds for the loop to hear of a killed process and to close its pipes.
_LONGEST_REAP = 0.5
#: Seconds between two looks at the error output: what was written meanwhile comes at once and costs little.
_ERROR_OUTPUT_INTERVAL = 0.01
#: White space, and the mark that some programs of Windows begin their output with.
_AROUND_MESSAGES = b" \t\r\xef\xbb\xbf"
#: Bytes of output that wait to be read before the pipe is left to fill up.
_MOST_HELD = MIB

_Incoming = MemoryObjectSendStream["SessionMessage | Exception"]


class StdioTransport:
    """Starts a server when it is entered, and ends it when it is left; entered once.

    Attributes:
        pid: Of the server's process; None before it has started.
        exit_status: None until the process has ended; negative: ended by that signal.
        ended: Set when nothing can come from the server any more: its output or its process has ended.
        stray_lines: How many lines of its output were no messages; the lines themselves are in the log.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str | Path | None,
        log: ServerLog,
        read_large: LargeMessageReader | None,
        spool_folder: Path,
    ) -> None:
        """`environment` is the whole environment; messages of more than 1 MiB are kept in `spool_folder` until `read_large`
        has read them."""
        self.ended = asyncio.Event()
        self.stray_lines = 0
        self._command = list(command)
        self._environment = environment
        self._folder = folder
        self._log = log
        self._read_large = read_large
        self._spool_folder = spool_folder
        self._mark = secrets.token_hex(8)
        self._pipes: _Pipes | None = None

    @property
    def pid(self) -> int | None:
        return self._pipes.transport.get_pid() if self._pipes else None

    @property
    def exit_status(self) -> int | None:
        return self._pipes.exit_status if self._pipes else None

    async def __aenter__(
        self,
    ) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]:
        """Raises AssistantError ``command_not_found``, ``configuration_invalid`` or ``connection_failed``."""
        check_batch_arguments(self._command)
        quiet()
        route_to(self._log)
        try:
            _, pipes = await processes.start_with_protocol(
                lambda: _Pipes(self._log),
                self._command,
                environment=self._environment,
                folder=self._folder,
                mark=self._mark,
            )
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
            self._log.append(f"The server's command could not be started: {type(error).__name__}.")
            raise AssistantError(
                "command_not_found" if missing else "connection_failed", operation="connect"
            ) from error
        # Nothing is awaited from here on: a cancellation in between would leave the process behind.
        self._pipes = pipes
        incoming, self._read_stream = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        self._write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._reader = asyncio.create_task(self._read(pipes, incoming, outgoing))
        self._writer = asyncio.create_task(self._write(pipes, outgoing, incoming))
        for task in (self._reader, self._writer):
            task.add_done_callback(_report_fault)
        return self._read_stream, self._write_stream

    async def __aexit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes the input, waits 2 s, asks the process to end, waits 2 s, and kills what is left of all it started.

        A cancellation meanwhile takes effect afterwards, so that no process is left behind.
        """
        closing = asyncio.create_task(self._close())
        cancelled: asyncio.CancelledError | None = None
        with anyio.CancelScope(shield=True):  # else an outer scope would cancel in every pass of the loop
            while not closing.done():
                try:
                    await asyncio.shield(closing)
                except asyncio.CancelledError as error:
                    cancelled = error
        if cancelled is not None:
            raise cancelled
        closing.result()

    async def _close(self) -> None:
        pipes = self._pipes
        assert pipes is not None
        self._write_stream.close()
        await asyncio.wait({self._writer}, timeout=_LAST_INPUT)
        self._writer.cancel()
        self._read_stream.close()
        pipes.discard_output()  # a server that can't write would not read the end of its input
        pipes.close_input()
        pid = pipes.transport.get_pid()
        if not await _done_within(_GRACE, pipes.exited):
            processes.terminate_tree(pid)
            await _done_within(_GRACE, pipes.exited)
        processes.kill_tree(pid)
        await asyncio.to_thread(processes.kill_marked, self._mark)
        await _done_within(_LONGEST_REAP, pipes.closed)  # by themselves, once the last error output has been read
        pipes.transport.close()
        await _done_within(_LONGEST_REAP, pipes.closed)
        self._reader.cancel()
        await asyncio.wait({self._reader, self._writer}, timeout=_GRACE)

    async def _read(
        self, pipes: _Pipes, incoming: _Incoming, outgoing: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        """Takes the server's output apart into lines, until it ends."""
        message = self._new_message()
        strays: list[bytes] = []
        try:
            while chunks := await pipes.take():
                for chunk in chunks:
                    *lines, rest = chunk.split(b"\n")
                    for line in lines:
                        message.add(line)
                        await self._deliver(message, incoming, strays)
                        message = self._new_message()
                    if message.add(rest):
                        await message.spill()
                    self._note(strays)
                    await asyncio.sleep(0)  # strays alone never let the loop go on
            if message.size:
                await self._deliver(message, incoming, strays)
                self._note(strays)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, AnswerLost):
            pass  # nobody listens any more; or somebody waits in vain, who hears of the end of the connection
        finally:
            incoming.close()
            outgoing.close()
            try:
                message.discard()
                pipes.discard_output()
                await _done_within(_LAST_OUTPUT, pipes.closed)  # for the exit status, and the last of the error output
            finally:
                self._log.end_output()
                self.ended.set()

    async def _deliver(self, message: IncomingMessage, incoming: _Incoming, strays: list[bytes]) -> None:
        """Raises AnswerLost."""
        try:
            line = (await message.finish()).strip(_AROUND_MESSAGES)
        except MessageRefused as refused:
            await self._answer_for(refused, incoming)
            return
        if not line:
            return
        try:
            parsed = jsonrpc_message_adapter.validate_json(line, by_name=False) if line[:1] == b"{" else None
        except ValueError:
            parsed = None
        if parsed is not None:
            await incoming.send(SessionMessage(parsed))
            return
        strays.append(line)
        request = _request_of(line)
        if request is not None:
            await incoming.send(SessionMessage(refusal(request, PARSE_ERROR)))

    async def _answer_for(self, refused: MessageRefused, incoming: _Incoming) -> None:
        if refused.code == MESSAGE_TOO_LARGE:
            self._log.append(f"The server sent a message of more than {LARGEST_MESSAGE // MIB} MiB; it was skipped.")
        else:
            self._log.append("A large message of the server could not be stored or read; it was skipped.")
        try:
            request = answered_request(refused.head, refused.tail)
        except AnswerLost:
            self._log.append("It can't be told which request it answered; the connection is ended.")
            raise
        if request is not None:
            await incoming.send(SessionMessage(refusal(request, refused.code)))

    def _note(self, strays: list[bytes]) -> None:
        if strays:
            self.stray_lines += len(strays)
            self._log.extend(line[: 4 * LONGEST_LINE].decode(errors="replace") for line in strays)
            strays.clear()

    def _new_message(self) -> IncomingMessage:
        return IncomingMessage(self._spool_folder, self._read_large)

    async def _write(
        self, pipes: _Pipes, outgoing: MemoryObjectReceiveStream[SessionMessage], incoming: _Incoming
    ) -> None:
        with outgoing, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for message in outgoing:
                try:
                    line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                except PydanticSerializationError:  # half a character, which a model may well write into an argument
                    if isinstance(message.message, JSONRPCRequest):
                        await incoming.send(SessionMessage(refusal(message.message.id, INVALID_PARAMS)))
                else:
                    await pipes.write(f"{line}\n".encode())


class _Pipes(asyncio.SubprocessProtocol):
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
                async with asyncio.timeout(_LAST_OUTPUT if self._last_output else None):
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


def _request_of(line: bytes) -> RequestId | None:
    """The request that a line would answer were it a message."""
    try:
        return answered_request(line, line)
    except (AnswerLost, ValueError):
        return None


async def _done_within(seconds: float, future: asyncio.Future[None]) -> bool:
    await asyncio.wait({future}, timeout=seconds)
    return future.done()


def _report_fault(task: asyncio.Task[None]) -> None:
    """Hands what a task raised to the loop's hook at once; it is a fault of ours, and nobody awaits the task."""
    if not task.cancelled() and (error := task.exception()) is not None:
        context = {"message": "the transport of a server failed", "exception": error, "task": task}
        task.get_loop().call_exception_handler(context)
