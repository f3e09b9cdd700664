"""The only way a process starts, and the one that ends whole trees of them.

Used by the transport of stdio servers, secret commands, the reader of large messages, the login shell's environment and
the opener of links. Every child is its own session (process group) on POSIX and carries its owner in the environment
variable ``DESKHAND_OWNER``, so that what a killed Deskhand left behind can be told from what a living one uses. On Windows the
system ends what a Deskhand has left: see ``windows_job``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

OWNER_VARIABLE = "DESKHAND_OWNER"
MARK_VARIABLE = "DESKHAND_MARK"
"""Names one child and all that it started, also what left its session: see `kill_marked`."""
#: Windows: no console window flashes up for a child.
_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)
#: Seconds for the rest of the output of a process that has ended; longer only something it left running holds the pipe.
_LAST_OUTPUT = 0.1
#: Seconds until the loop must have heard of a killed process.
_LONGEST_REAP = 1.0
_REAP_PAUSE = 0.005
#: A process may start another one while it is looked for.
_KILL_ROUNDS = 5

Protocol = TypeVar("Protocol", bound=asyncio.SubprocessProtocol)


@dataclass(frozen=True, slots=True)
class Finished:
    status: int
    """Exit status; negative: ended by that signal."""
    output: bytes


def start_time(pid: int) -> str | None:
    """When a process started, as the system counts it: with its number it names a process for ever. None: it has ended."""
    if sys.platform == "win32":
        return _start_time_on_windows(pid)
    try:
        state, *fields = _stat(pid)
        return None if state in "ZX" else fields[18]
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return None
    except (OSError, ValueError):
        return None
    try:  # no /proc: existence is all that can be told
        os.kill(pid, 0)
    except OSError:
        return None
    return "0"


def owner_tag() -> str:
    """Names this process: ``<pid>-<start time>``. Children and half-written folders carry it."""
    return f"{os.getpid()}-{start_time(os.getpid()) or 0}"


def owner_lives(tag: str) -> bool:
    """Whether the process that an owner tag names is still running; True for what is no tag (then it isn't ours to sweep)."""
    pid, _, started = tag.partition("-")
    if not pid.isdigit() or not started:
        return True
    return start_time(int(pid)) == started


async def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    stdin: int | IO[Any] = DEVNULL,
    stdout: int | IO[Any] = DEVNULL,
    stderr: int | IO[Any] = DEVNULL,
    limit: int = 2**16,
) -> Process:
    """Starts a program: never through a shell, in a session of its own, tagged with its owner.

    `environment` is the whole environment (None: ours); `limit` bounds the buffer of its pipes in bytes. Raises OSError when
    the program can't be started, ValueError for an argument with a NUL character.
    """
    variables = {**(inherited_environment() if environment is None else environment), OWNER_VARIABLE: owner_tag()}
    return await asyncio.create_subprocess_exec(
        *command, env=variables, cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr, limit=limit, **_session()
    )


async def start_with_protocol(
    protocol: Callable[[], Protocol],
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    owned: bool = True,
    mark: str = "",
    stdin: int = PIPE,
    stdout: int = PIPE,
    stderr: int = PIPE,
) -> tuple[asyncio.SubprocessTransport, Protocol]:
    """`start` for whoever handles what comes from the pipes as it comes; closing the transport is the caller's duty.

    With a `mark` (any text that is used once) the child and all that it starts can be found by `kill_marked`. A program that is
    not `owned` carries no tag: what it leaves running, such as an agent that a login shell starts, is not ours to end.
    """
    variables = dict(inherited_environment() if environment is None else environment)
    if owned:
        variables[OWNER_VARIABLE] = owner_tag()
    if mark:
        variables[MARK_VARIABLE] = mark
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            protocol, *command, env=variables, cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr, **_session()
        )
    )
    try:
        transport, made = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Left to asyncio, what the child has started by now lives on, and is waited for as long as it holds a pipe.
        await asyncio.wait({asyncio.ensure_future(_end_started(starting))}, timeout=_LONGEST_REAP)
        raise
    if owned and sys.platform == "win32":  # where no tag can be read
        from desktop import windows_job

        windows_job.end_with_us(int(transport.get_extra_info("subprocess")._handle))
    return transport, made


async def _end_started(starting: asyncio.Future[tuple[asyncio.SubprocessTransport, Any]]) -> None:
    """Ends a child whose caller was cancelled while it was being started."""
    try:
        transport, _ = await starting
    except (OSError, ValueError):
        return
    kill_tree(transport.get_pid())
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_REAP):
            # Closed before, the loop would miss its exit status, and say so.
            while transport.get_returncode() is None:  # noqa: ASYNC110  # only the protocol is told
                await asyncio.sleep(_REAP_PAUSE)
    transport.close()


async def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    time_limit: float,
    output_limit: int,
    input_: bytes | None = None,
    owned: bool = True,
) -> Finished:
    """Runs a program to its end and returns its standard output; standard error is discarded.

    All of its session is killed when it takes longer than `time_limit` seconds (raises TimeoutError), prints more than
    `output_limit` bytes (raises ValueError), or the caller is cancelled; what is left of the session at its end is killed, too,
    unless `owned` is False: then it is not ours. Raises OSError when it can't be started. `owned` as for `start_with_protocol`.
    """
    transport, program = await start_with_protocol(
        lambda: _Program(output_limit),
        command,
        environment=environment,
        folder=folder,
        owned=owned,
        stdin=DEVNULL if input_ is None else PIPE,
        stdout=PIPE if output_limit else DEVNULL,
        stderr=DEVNULL,
    )
    ended = False
    try:
        async with asyncio.timeout(time_limit):
            if input_ is not None:
                stdin = transport.get_pipe_transport(0)
                assert isinstance(stdin, asyncio.WriteTransport)
                stdin.write(input_)
                stdin.close()  # once it is written
            await program.finished
        ended = True
        status = transport.get_returncode()
        assert status is not None
        return Finished(status, bytes(program.output))
    finally:
        if owned or not ended:
            kill_tree(transport.get_pid())
        try:
            await asyncio.wait({program.exited}, timeout=_LONGEST_REAP)
        finally:
            transport.close()


async def hand_over(command: Sequence[str], *, time_limit: float) -> int | None:
    """Starts a program that is to outlive us, such as a browser: it carries no tag and nobody ends it.

    Returns its exit status, or None when it is still running after `time_limit` seconds. Raises OSError when it can't be started.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def settle(setter: Callable[[Any], None], value: Any) -> None:
        if not ended.done():
            setter(value)

    def work() -> None:
        # Not one of the loop's processes: those are killed with it.
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        try:
            process = subprocess.Popen(command, env=inherited_environment(), **quiet, **_session())
        except OSError as error:
            setter, value = ended.set_exception, error
        else:
            setter, value = ended.set_result, process.wait()
        with suppress(RuntimeError):  # the loop has closed meanwhile
            loop.call_soon_threadsafe(settle, setter, value)

    threading.Thread(target=work, name="handed over", daemon=True).start()
    await asyncio.wait({ended}, timeout=time_limit)
    return ended.result() if ended.done() else None


def inherited_environment() -> dict[str, str]:
    """Our own environment as a program of the system's is to have it: without the library path that a frozen build sets."""
    variables = dict(os.environ)
    if getattr(sys, "frozen", False):
        variables.pop("LD_LIBRARY_PATH", None)
        if (original := variables.pop("LD_LIBRARY_PATH_ORIG", None)) is not None:
            variables["LD_LIBRARY_PATH"] = original
    return variables


def terminate_tree(pid: int) -> None:
    """Asks a child that was started here, and all that it started in its session, to end."""
    _signal_group(pid, signal.SIGTERM)


def kill_tree(pid: int) -> None:
    """Ends a child that was started here, and all that it started in its session. Harmless when they are gone."""
    _signal_group(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


def kill_marked(mark: str) -> int:
    """Ends whatever carries a child's mark, also what left its session; how many there were. Some 10 ms: for a thread.

    Linux alone can tell; elsewhere, and for what was started with an emptied environment, `kill_tree` is all there is.
    """
    return _kill_where(MARK_VARIABLE, lambda value: value == mark)


def sweep_orphans() -> int:
    """Ends what a Deskhand that was killed has left running; how many there were. For a thread, at start.

    Never touched: children of a Deskhand that lives, and the processes that we are ourselves a child of.
    """
    return _kill_where(OWNER_VARIABLE, lambda tag: not owner_lives(tag))


class _Program(asyncio.SubprocessProtocol):
    """A program that runs to its end: `exited` when it has ended, `finished` when its output has, too, or is too long."""

    def __init__(self, output_limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._output_limit = output_limit
        self.output = bytearray()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self.finished: asyncio.Future[None] = self._loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output += data
        if len(self.output) > self._output_limit and not self.finished.done():
            self.finished.set_exception(ValueError(f"the output is longer than {self._output_limit} bytes"))

    def process_exited(self) -> None:
        self.exited.set_result(None)
        self._loop.call_later(_LAST_OUTPUT, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish()

    def _finish(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)


def _session() -> dict[str, Any]:
    return {"creationflags": _NO_WINDOW} if sys.platform == "win32" else {"start_new_session": True}


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False, creationflags=_NO_WINDOW
            )
        else:
            os.killpg(pid, number)


def _kill_where(variable: str, wanted: Callable[[str], bool]) -> int:
    """Kills our user's processes that were started with a wanted value of an environment variable."""
    if not sys.platform.startswith("linux"):
        return 0
    spared = _ourselves_and_ancestors()
    killed: set[int] = set()
    for _ in range(_KILL_ROUNDS):
        found = [pid for pid in _own_processes() if pid not in spared | killed and _has(pid, variable, wanted)]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            break
        killed.update(found)
    return len(killed)


def _own_processes() -> list[int]:
    user = os.getuid()
    found: list[int] = []
    for entry in os.scandir("/proc"):
        with suppress(OSError):  # it has ended
            if entry.name.isdigit() and entry.stat().st_uid == user:
                found.append(int(entry.name))
    return found


def _has(pid: int, variable: str, wanted: Callable[[str], bool]) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or guards itself
        return False
    name = f"{variable}=".encode()
    values = [entry[len(name) :] for entry in environment.split(b"\0") if entry.startswith(name)]
    return bool(values) and wanted(values[-1].decode(errors="replace"))


def _ourselves_and_ancestors() -> set[int]:
    found: set[int] = set()
    pid = os.getpid()
    with suppress(OSError, ValueError):
        while pid > 0 and pid not in found:
            found.add(pid)
            pid = int(_stat(pid)[1])
    return found


def _stat(pid: int) -> list[str]:
    """What Linux tells of a process, from its state on: ``proc(5)``, fields 3 …"""
    stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return stat[stat.rindex(")") + 2 :].split()


def _start_time_on_windows(pid: int) -> str | None:
    if sys.platform != "win32":
        raise NotImplementedError
    import ctypes
    from ctypes import wintypes

    query_limited_information, still_active = 0x1000, 259
    kernel = ctypes.windll.kernel32
    handle = kernel.OpenProcess(query_limited_information, False, pid)
    if not handle:
        return None
    try:
        created, *others = (wintypes.FILETIME() for _ in range(4))
        status = wintypes.DWORD()
        kernel.GetExitCodeProcess(handle, ctypes.byref(status))
        known = kernel.GetProcessTimes(handle, ctypes.byref(created), *map(ctypes.byref, others))
        if not known or status.value != still_active:
            return None
        return str(created.dwHighDateTime << 32 | created.dwLowDateTime)
    finally:
        kernel.CloseHandle(handle)
