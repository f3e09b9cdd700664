"""Processes start tagged, end as whole trees, and what a dead owner left is swept."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

import psutil
import pytest

from desktop import processes, windows_job

pytestmark = pytest.mark.anyio
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

SLEEPER = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
#: Prints the pid of a child of its own that left its session, and ends.
LEAVER = [
    sys.executable,
    "-S",
    "-c",
    "import subprocess, sys\n"
    "child = subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
    "print(child.pid, flush=True)",
]


async def gone(pid: int) -> bool:
    """Whether a process has ended within some seconds; a zombie counts as ended."""
    async with asyncio.timeout(5):
        while processes.start_time(pid) is not None:  # noqa: ASYNC110 - no event tells of a stranger's end
            await asyncio.sleep(0.005)
    return True


def environment_of(pid: int) -> dict[str, str]:
    return psutil.Process(pid).environ()


async def test_a_program_that_ends_gives_its_status_and_its_output() -> None:
    command = [sys.executable, "-S", "-c", "import sys; print(sys.stdin.read()[::-1]); sys.exit(3)"]
    finished = await processes.run(command, time_limit=20, output_limit=100, input_=b"olleh")
    assert finished == processes.Finished(3, b"hello\n")


async def test_megabytes_of_input_and_output_pass() -> None:
    command = [sys.executable, "-S", "-c", "import sys; sys.stdout.write(sys.stdin.read())"]
    sent = b"0123456789" * 300_000
    assert (await processes.run(command, time_limit=20, output_limit=len(sent), input_=sent)).output == sent


async def test_an_argument_reaches_the_program_as_it_is() -> None:
    argument = "a b; $(echo no) \"'&|>*\n%PATH% é"
    command = [sys.executable, "-S", "-c", "import sys; sys.stdout.buffer.write(sys.argv[1].encode())", argument]
    assert (await processes.run(command, time_limit=20, output_limit=1000)).output.decode() == argument


async def test_a_program_that_takes_too_long_is_ended() -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        await processes.run(SLEEPER, time_limit=0.2, output_limit=0)
    assert time.monotonic() - started < 3


async def test_a_program_that_prints_too_much_is_ended() -> None:
    command = [sys.executable, "-S", "-c", "while True: print('x' * 1000)"]
    with pytest.raises(ValueError, match="100000 bytes"):
        await processes.run(command, time_limit=20, output_limit=100_000)


async def test_a_cancelled_run_leaves_no_process() -> None:
    task = asyncio.create_task(processes.run(SLEEPER, time_limit=60, output_limit=0))
    async with asyncio.timeout(10):
        while not (children := psutil.Process().children()):  # noqa: ASYNC110 - nor of a start
            await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all([await gone(child.pid) for child in children])


async def test_a_run_that_is_cancelled_while_its_process_is_being_started_leaves_nothing_and_ends_at_once(
    tmp_path: Path,
) -> None:
    started = tmp_path / "started"
    for _ in range(20):
        started.unlink(missing_ok=True)
        command = ["/bin/sh", "-c", f"echo $$ > {started}; sleep 60"]
        task = asyncio.create_task(processes.run(command, time_limit=30, output_limit=100))
        async with asyncio.timeout(30):
            while not (started.exists() and started.read_text()):  # noqa: ASYNC110 - nor of this
                await asyncio.sleep(0)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begun < 5
        assert processes.start_time(int(started.read_text())) is None


async def test_a_program_is_over_when_it_has_ended_even_if_something_it_started_holds_its_output() -> None:
    command = [
        sys.executable,
        "-S",
        "-c",
        "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)",
    ]
    finished = await processes.run(command, time_limit=20, output_limit=100)
    assert finished.status == 0
    assert await gone(int(finished.output))


async def test_a_program_that_is_missing_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        await processes.run(["/nowhere/at/all"], time_limit=5, output_limit=0)
    with pytest.raises(FileNotFoundError):
        await processes.hand_over(["/nowhere/at/all"], time_limit=5)


async def test_killing_a_tree_ends_the_child_and_what_it_started() -> None:
    command = [
        sys.executable,
        "-S",
        "-c",
        "import signal, subprocess, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(subprocess.Popen(['sleep', '600']).pid, flush=True)\n"
        "time.sleep(600)",
    ]
    process = await processes.start(command, stdout=PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(20):
        grandchild = int(await process.stdout.readline())
        processes.kill_tree(process.pid)
        assert await process.wait() == -signal.SIGKILL
    assert await gone(grandchild)
    processes.kill_tree(process.pid)  # harmless


@linux
async def test_a_child_carries_its_owner_whatever_environment_it_is_given() -> None:
    process = await processes.start(SLEEPER, environment={"PATH": "/bin", "DESKHAND_OWNER": "1-1"})
    try:
        assert environment_of(process.pid)["DESKHAND_OWNER"] == processes.owner_tag()
        assert set(environment_of(process.pid)) <= {"PATH", "DESKHAND_OWNER", "LC_CTYPE"}
    finally:
        processes.kill_tree(process.pid)
        await process.wait()


def test_the_owner_of_a_tag_lives_as_long_as_its_process() -> None:
    assert processes.owner_lives(processes.owner_tag())
    assert not processes.owner_lives(f"{os.getpid()}-1")  # another process had that number


def test_what_is_no_tag_is_left_alone() -> None:
    assert all(processes.owner_lives(tag) for tag in ("", "a folder", "12", "x-1"))


@linux
def test_a_process_that_has_ended_but_was_not_waited_for_counts_as_ended() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    try:
        assert processes.start_time(pid) is None
    finally:
        os.waitpid(pid, 0)


@linux
async def test_a_mark_finds_what_left_the_session() -> None:
    mark = os.urandom(8).hex()
    transport, program = await processes.start_with_protocol(lambda: Collector(), LEAVER, mark=mark)
    async with asyncio.timeout(20):
        await program.ended.wait()
    transport.close()
    left = int(program.output)
    assert processes.start_time(left) is not None
    assert await asyncio.to_thread(processes.kill_marked, mark) == 1
    assert await gone(left)
    assert await asyncio.to_thread(processes.kill_marked, mark) == 0


class Collector(asyncio.SubprocessProtocol):
    def __init__(self) -> None:
        self.output = b""
        self.ended = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output += data

    def process_exited(self) -> None:
        self.ended.set()


@linux
async def test_the_sweep_ends_what_a_killed_owner_left_and_nothing_of_a_living_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "OWNER_VARIABLE", "DESKHAND_TESTED_OWNER")  # others' leftovers are not ours to end
    owner = [
        sys.executable,
        "-c",
        "import asyncio, sys\n"
        "from desktop import processes\n"
        "processes.OWNER_VARIABLE = 'DESKHAND_TESTED_OWNER'\n"
        "async def main():\n"
        "    child = await processes.start(['sleep', '600'])\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())",
    ]
    folder = Path(__file__).parents[1]
    dead, living = [await processes.start(owner, folder=folder, stdout=PIPE) for _ in range(2)]
    try:
        assert dead.stdout is not None and living.stdout is not None
        async with asyncio.timeout(30):
            orphan, kept = int(await dead.stdout.readline()), int(await living.stdout.readline())
            dead.kill()
            await asyncio.wait_for(gone(dead.pid), 5)
        assert processes.start_time(orphan) is not None
        assert await asyncio.to_thread(processes.sweep_orphans) == 1
        assert await gone(orphan)
        assert processes.start_time(kept) is not None
        assert processes.start_time(living.pid) is not None
        processes.kill_tree(kept)
        assert await gone(kept)
    finally:
        for process in (dead, living):
            processes.kill_tree(process.pid)
            await process.wait()


@linux
async def test_the_sweep_spares_a_deskhand_that_something_of_a_dead_owner_started() -> None:
    program = (
        "from desktop import processes\nprocesses.OWNER_VARIABLE = 'DESKHAND_TESTED'\nprint(processes.sweep_orphans())"
    )
    environment = {**os.environ, "DESKHAND_TESTED": f"{os.getpid()}-1"}
    transport, collector = await processes.start_with_protocol(
        Collector,
        [sys.executable, "-c", program],
        environment=environment,
        folder=Path(__file__).parents[1],
        owned=False,
    )
    async with asyncio.timeout(20):
        await collector.ended.wait()
    assert transport.get_returncode() == 0
    transport.close()


async def test_a_program_that_is_handed_over_lives_on_and_carries_no_tag() -> None:
    started = asyncio.create_task(processes.hand_over(["sleep", "7.5"], time_limit=0.3))
    assert await started is None
    [child] = [each for each in psutil.Process().children() if each.cmdline() == ["sleep", "7.5"]]
    if sys.platform.startswith("linux"):
        assert "DESKHAND_OWNER" not in environment_of(child.pid)
    child.kill()
    assert await gone(child.pid)


async def test_a_program_that_is_handed_over_tells_its_status_when_it_ends_soon() -> None:
    assert await processes.hand_over([sys.executable, "-S", "-c", "raise SystemExit(4)"], time_limit=20) == 4


def test_a_frozen_build_does_not_pass_on_the_path_of_its_own_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/deskhand/_internal")
    assert processes.inherited_environment()["LD_LIBRARY_PATH"] == "/opt/deskhand/_internal"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert "LD_LIBRARY_PATH" not in processes.inherited_environment()
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/opt/own")
    assert processes.inherited_environment()["LD_LIBRARY_PATH"] == "/opt/own"


@pytest.mark.skipif(ctypes.sizeof(ctypes.c_void_p) != 8, reason="the figures are those of 64 bits")
def test_the_limits_of_a_job_have_the_layout_that_windows_reads() -> None:
    """64 bytes of basic limits with the flags at the 16th, 48 of counters, four sizes."""
    assert ctypes.sizeof(windows_job.ExtendedLimits) == 144
    basic = windows_job.ExtendedLimits.BasicLimitInformation
    assert (basic.offset, basic.size) == (0, 64)
    limits = windows_job.ExtendedLimits()
    limits.BasicLimitInformation.LimitFlags = 0x2000
    assert bytes(limits)[16:20] == b"\x00\x20\x00\x00" and bytes(limits).count(b"\x20") == 1


@pytest.mark.skipif(sys.platform != "win32", reason="elsewhere a sweep at the next start ends what is left")
async def test_what_a_killed_owner_left_ends_with_it_on_windows() -> None:
    program = (
        "import asyncio, sys\n"
        "from desktop import processes\n"
        "async def main():\n"
        "    child, _ = await processes.start_with_protocol(\n"
        "        asyncio.SubprocessProtocol, [sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "    print(child.get_pid(), flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())"
    )
    owner = await processes.start([sys.executable, "-c", program], folder=Path(__file__).parents[1], stdout=PIPE)
    assert owner.stdout is not None
    async with asyncio.timeout(30):
        child = int(await owner.stdout.readline())
        owner.kill()
        await owner.wait()
    assert await gone(child)
