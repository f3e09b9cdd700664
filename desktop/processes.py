"""The only way a process starts, and the one that ends whole trees of them.

Used by the transport of stdio servers, secret commands, the reader of large messages, the login shell's environment and
the opener of links. Every child is its own session (process group) on POSIX and carries its owner in the environment
variable ``DESKHAND_OWNER``, so that what a killed Deskhand left behind can be told from what a living one uses.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

OWNER_VARIABLE = "DESKHAND_OWNER"
#: Windows: no console window flashes up for a child.
_NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)


@dataclass(frozen=True, slots=True)
class Finished:
    status: int
    """Exit status; negative: ended by that signal."""
    output: bytes


def start_time(pid: int) -> str | None:
    """When a process started, as the system counts it: with its number it names a process for ever. None: no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return stat[stat.rindex(")") + 2 :].split()[19]
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
    variables = dict(os.environ if environment is None else environment)
    variables[OWNER_VARIABLE] = owner_tag()
    extra: dict[str, Any] = {"start_new_session": True} if sys.platform != "win32" else {"creationflags": _NO_WINDOW}
    return await asyncio.create_subprocess_exec(
        *command, env=variables, cwd=folder, stdin=stdin, stdout=stdout, stderr=stderr, limit=limit, **extra
    )


async def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    time_limit: float,
    output_limit: int,
    input_: bytes | None = None,
) -> Finished:
    """Runs a program to its end and returns its standard output; standard error is discarded.

    The whole tree is killed when it takes longer than `time_limit` seconds (raises TimeoutError), prints more than
    `output_limit` bytes (raises ValueError), or the caller is cancelled. Raises OSError when it can't be started.
    """
    process = await start(
        command,
        environment=environment,
        folder=folder,
        stdin=DEVNULL if input_ is None else PIPE,
        stdout=PIPE if output_limit else DEVNULL,
    )
    try:
        async with asyncio.timeout(time_limit):
            if input_ is not None and process.stdin is not None:
                process.stdin.write(input_)
                process.stdin.close()
            output = bytearray()
            if process.stdout is not None:
                while chunk := await process.stdout.read(2**16):
                    output += chunk
                    if len(output) > output_limit:
                        raise ValueError(f"the output is longer than {output_limit} bytes")
            return Finished(await process.wait(), bytes(output))
    finally:
        kill_tree(process.pid)


def terminate_tree(pid: int) -> None:
    """Asks a child that `start` started, and all that it started in its session, to end."""
    _signal_group(pid, signal.SIGTERM)


def kill_tree(pid: int) -> None:
    """Ends a child that `start` started, and all that it started in its session. Harmless when they are gone."""
    _signal_group(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(pid)], capture_output=True, check=False, creationflags=_NO_WINDOW
            )
        else:
            os.killpg(pid, number)
