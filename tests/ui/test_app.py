"""The program with its window, as a process of its own: what it shows before what it imports, one window a user, how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from desktop.paths import Paths
from tests.servers.running import friendly
from tests.ui.person import until, write_servers

pytestmark = pytest.mark.anyio

#: Runs the program as ``deskhand`` does, and says on standard output what happens to it.
PROGRAM = """
import sys
from desktop import app, cli, core
from desktop.ui import error_box, main_window

def say(*words):
    print(*words, flush=True)

show, start, report = main_window.MainWindow.showEvent, core.Core.start, error_box.report

def shown(self, event):
    show(self, event)
    say("shown")

async def started(self):
    slow = {"mcp", "mcp_types", "litellm", "pydantic", "keyring", "numpy", "jsonschema", "openai"}
    say("imported", sorted(slow & set(sys.modules)))
    await start(self)
    say("started")

def reported(error, parent=None):
    say("reported", type(error).__name__)
    report(error, parent)

raise_ = main_window.MainWindow.raise_
main_window.MainWindow.raise_ = lambda self: (raise_(self), say("raised"))
main_window.MainWindow.showEvent = shown
core.Core.start = started
error_box.report = reported
EXTRA
status = cli.main(sys.argv[1:])
say("ended")
sys.exit(status)
"""


class Program:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.said: list[str] = []
        self.errors = ""

    async def says(self, word: str) -> str:
        """Waits until the program says something that begins with a word."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            while True:
                line = (await self.process.stdout.readline()).decode().strip()
                assert line, f"it ended without saying {word}: {self.said} {await self._read_errors()}"
                self.said.append(line)
                if line.startswith(word):
                    return line

    async def ends(self, time_limit: float = 15) -> int:
        async with asyncio.timeout(time_limit):
            await self._read_errors()
            return await self.process.wait()

    async def _read_errors(self) -> str:
        assert self.process.stderr is not None
        self.errors += (await self.process.stderr.read()).decode()
        return self.errors


@asynccontextmanager
async def program(*arguments: str, extra: str = "") -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM.replace("EXTRA", extra), *arguments, stdout=PIPE, stderr=PIPE
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process._transport.close()  # type: ignore[attr-defined]  # its pipes, at once


def terminate(program: Program) -> None:
    program.process.send_signal(signal.SIGTERM)


async def test_the_window_is_shown_before_anything_slow_is_imported() -> None:
    async with program() as running:
        await running.says("shown")
        assert await running.says("imported") == "imported []"
        assert "shown" in running.said
        await running.says("started")
        terminate(running)
        assert await running.ends() == 0
        assert running.errors == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGTERM, "shown"),
        (signal.SIGTERM, "imported"),
        (signal.SIGTERM, "started"),
        (signal.SIGINT, "started"),
    ],
)
async def test_a_signal_ends_it_cleanly_at_any_moment(number: signal.Signals, moment: str, paths: Paths) -> None:
    async with program() as running:
        await running.says(moment)
        running.process.send_signal(number)
        assert await running.ends() == 0
        assert running.errors == ""
    assert "ERROR" not in (paths.logs / "deskhand.log").read_text()


async def test_a_second_start_brings_up_the_first_window_and_ends(paths: Paths) -> None:
    async with program() as first:
        await first.says("started")
        async with program() as second:
            assert await second.ends() == 0
            assert "shown" not in second.said
        await first.says("raised")
        terminate(first)
        assert await first.ends() == 0
    async with program() as third:
        await third.says("shown")
        terminate(third)
        assert await third.ends() == 0


async def test_a_second_start_with_a_workspace_opens_it_in_the_first_window(paths: Paths, tmp_path: Path) -> None:
    folder = tmp_path / "ä folder"
    folder.mkdir()
    opened = "from desktop.ui.folders import Folders\nFolders.open = lambda self, folder: say('opened', folder)"
    async with program(extra=opened) as first:
        await first.says("started")
        async with program("--workspace", str(folder)) as second:
            assert await second.ends() == 0
        assert (await first.says("opened")) == f"opened {folder}"
        terminate(first)
        assert await first.ends() == 0


async def test_a_killed_window_does_not_keep_the_next_from_opening() -> None:
    async with program() as first:
        await first.says("started")
        first.process.kill()
        await first.process.wait()
    async with program() as second:
        await second.says("shown")
        terminate(second)
        assert await second.ends() == 0


async def test_other_homes_have_windows_of_their_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with program() as first:
        await first.says("shown")
        monkeypatch.setenv("DESKHAND_HOME", str(home / "other"))
        async with program() as second:
            await second.says("shown")
            terminate(second)
            assert await second.ends() == 0
        terminate(first)
        assert await first.ends() == 0


async def test_servers_end_with_it(paths: Paths) -> None:
    config = paths.config / "test.json"
    command, *arguments = friendly()
    write_servers(config, friend={"command": command, "args": arguments, "start": "launch"})
    async with program("--config", str(config)) as running:
        await running.says("started")
        deskhand = psutil.Process(running.process.pid)
        children = await until(lambda: deskhand.children(recursive=True))
        terminate(running)
        assert await running.ends() == 0
        assert running.errors == ""
        _, alive = psutil.wait_procs(children, timeout=1)
        assert not alive


async def test_errors_of_slots_tasks_and_threads_are_logged_and_the_window_goes_on(paths: Paths) -> None:
    extra = """
import asyncio, threading
from PySide6.QtCore import QTimer
from desktop.ui import tasks

def fail(kind):
    raise kind("canary-text")

async def fails():
    fail(LookupError)

done = core.Core.start
async def starts(self):
    await done(self)
    QTimer.singleShot(0, lambda: fail(ZeroDivisionError))
    asyncio.get_running_loop().call_soon(fail, ArithmeticError)
    tasks.start(fails())
    threading.Thread(target=fail, args=(OSError,)).start()
core.Core.start = starts
"""
    async with program(extra=extra) as running:
        reported = {await running.says("reported") for _ in range(3)}
        assert reported == {f"reported {name}" for name in ("ZeroDivisionError", "ArithmeticError", "LookupError")}
        await until(lambda: (paths.logs / "deskhand.log").read_text().count("Traceback") >= 4)
        terminate(running)
        assert await running.ends() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
async def test_its_files_are_the_person_s_alone(paths: Paths) -> None:
    async with program() as running:
        await running.says("started")
        terminate(running)
        assert await running.ends() == 0
    for file in [each for each in paths.logs.parent.rglob("*") if each.is_file()]:
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


async def test_without_a_place_for_its_log_it_works_and_says_so(paths: Paths) -> None:
    paths.logs.parent.mkdir(parents=True)
    paths.logs.write_text("a file where the folder should be")
    async with program() as running:
        await running.says("started")
        terminate(running)
        assert await running.ends() == 0
        assert "deskhand: no log" in running.errors


async def test_its_size_is_remembered(paths: Paths) -> None:
    extra = """
done = core.Core.start
async def starts(self):
    await done(self)
    from PySide6.QtWidgets import QApplication
    [window] = [each for each in QApplication.topLevelWidgets() if isinstance(each, main_window.MainWindow)]
    say("size", window.width(), window.height())
    window.resize(700, 500)
    window.close()
core.Core.start = starts
"""
    for expected in ("", "size 700 500"):
        async with program(extra=extra) as running:
            said = await running.says("size")
            assert said == expected or not expected
            assert await running.ends() == 0
    assert json.loads(paths.settings_file.read_text())["window_geometry"]


async def test_the_version_is_told_without_qt() -> None:
    code = "import sys; from desktop import cli\ntry: cli.main(['--version'])\nexcept SystemExit: print('PySide6' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE)
    output, _ = await asyncio.wait_for(process.communicate(), 20)
    assert output.decode().split()[-1] == "False"
