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
from desktop.host.process_pipes import LAST_OUTPUT, ProcessPipes
from desktop.host.sdk_log import quiet, route_to
from desktop.host.server_log import LONGEST_LINE, ServerLog

#: Seconds for a server to end by itself once its input is closed, and again once it was asked to.
_GRACE = 2.0
#: Seconds for what was to be sent before the input is closed.
_LAST_INPUT = 0.1
#: Seconds for the loop to hear of a killed process and to close its pipes.
_LONGEST_REAP = 0.5
#: White space, and the mark that some programs of Windows begin their output with.
_AROUND_MESSAGES = b" \t\r\xef\xbb\xbf"

_Incoming = MemoryObjectSendStream["SessionMessage | Exception"]


class StdioTransport:
    """Starts a server when it is entered, and ends it when it is left; entered once.

    Attributes:
        pid: Of the server's process; None before it has started.
        exit_status: None until the process has ended; negative: ended by that signal.
        ended: Set when nothing can come from the server any more: its output or its process has ended.
        strayed: Set when the first line of its output was no message.
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
        self.strayed = asyncio.Event()
        self.stray_lines = 0
        self._command = list(command)
        self._environment = environment
        self._folder = folder
        self._log = log
        self._read_large = read_large
        self._spool_folder = spool_folder
        self._mark = secrets.token_hex(8)
        self._pipes: ProcessPipes | None = None

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
                lambda: ProcessPipes(self._log),
                self._command,
                environment=self._environment,
                folder=self._folder,
                mark=self._mark,
            )
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
            self._log.append(f"The server's command could not be started: {type(error).__name__}.", level="error")
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
        self, pipes: ProcessPipes, incoming: _Incoming, outgoing: MemoryObjectReceiveStream[SessionMessage]
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
                await _done_within(LAST_OUTPUT, pipes.closed)  # for the exit status, and the last of the error output
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
            self._log.append(
                f"The server sent a message of more than {LARGEST_MESSAGE // MIB} MiB; it was skipped.", level="warning"
            )
        else:
            self._log.append(
                "A large message of the server could not be stored or read; it was skipped.", level="warning"
            )
        try:
            request = answered_request(refused.head, refused.tail)
        except AnswerLost:
            self._log.append("It can't be told which request it answered; the connection is ended.", level="error")
            raise
        if request is not None:
            await incoming.send(SessionMessage(refusal(request, refused.code)))

    def _note(self, strays: list[bytes]) -> None:
        if strays:
            self.strayed.set()
            self.stray_lines += len(strays)
            self._log.extend((line[: 4 * LONGEST_LINE].decode(errors="replace") for line in strays), "stray")
            strays.clear()

    def _new_message(self) -> IncomingMessage:
        return IncomingMessage(self._spool_folder, self._read_large)

    async def _write(
        self, pipes: ProcessPipes, outgoing: MemoryObjectReceiveStream[SessionMessage], incoming: _Incoming
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
