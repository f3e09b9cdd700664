"""What every test gets: a home of its own, no display, and the check that nothing is left behind."""

from __future__ import annotations

import os

# Before anything imports Qt, litellm or a keyring.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import gc
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from desktop.paths import Paths


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio: Deskhand's own loop is an asyncio loop. Tests below ``ui`` replace this by Qt's loop."""
    return "asyncio"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, so that no test reads or writes the person's files."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("DESKHAND_HOME", str(folder / "deskhand"))
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_PROXY", "_proxy"))]:
        monkeypatch.delenv(name)
    return folder


@pytest.fixture
def paths(home: Path) -> Paths:
    return Paths.for_user()


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails a test that leaves a child process or a thread, or that logs a warning it doesn't expect.

    A test that provokes a warning takes it out with ``caplog.clear()`` after asserting on it. Tasks and timers are checked where
    a loop ends (``tests/ui/conftest.py``).
    """
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    threads = set(threading.enumerate())
    gc.freeze()  # what is there before the test isn't looked through after it: with litellm imported that takes 0.2 s
    yield
    gc.collect()
    logged = [record for record in caplog.get_records("call") if record.levelno >= logging.WARNING]
    assert not logged, f"logged: {[record.getMessage() for record in logged]}"
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in children]
    _, alive = psutil.wait_procs(left, timeout=3)
    # Zombies of a killed tree are init's to reap, not ours.
    alive = [child for child in alive if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert not alive, f"left running: {[child.cmdline() for child in alive]}"
    new_threads = [
        each for each in threading.enumerate() if each not in threads and not each.daemon and each.is_alive()
    ]
    # Pools of the loop and of anyio keep idle worker threads until the loop ends.
    new_threads = [
        each for each in new_threads if not each.name.startswith(("asyncio_", "AnyIO worker", "ThreadPoolExecutor"))
    ]
    assert not new_threads, f"threads left: {new_threads}"
