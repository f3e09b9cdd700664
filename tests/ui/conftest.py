"""Async tests of the window run on Qt's loop; a test that leaves a task, a timer or a Qt warning behind fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytestqt.plugin
from anyio.pytest_plugin import get_runner
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QApplication, QLabel, QLineEdit

from desktop.core import Core
from desktop.paths import Paths
from desktop.ui import tasks
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.event_loop import EventLoop

HERE = Path(__file__).parent

# pytest-qt would handle Qt's events between a test's parts too, where no loop runs: a timer that is due then could start no task.
pytestqt.plugin._process_events = lambda: None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))
            # Of the offscreen platform, which has no tray either.
            item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", "systemTrayWindowChanged"))


@pytest.fixture
def anyio_backend(qapp: QApplication) -> Iterator[tuple[str, dict[str, Callable[[], asyncio.AbstractEventLoop]]]]:
    """Keeps the loop of the test and its async fixtures open until all have ended, and looks at what they left."""
    options: dict[str, Any] = {"loop_factory": EventLoop}
    with get_runner("asyncio", options) as runner:
        yield "asyncio", options
        loop: Any = runner.get_loop()  # type: ignore[attr-defined]
        left = loop.run_until_complete(_tasks_left(loop))
        # One that is due within a second is no leak: it ends by itself.
        timers = [timer for timer in loop._scheduled if not timer.cancelled() and timer.when() > loop.time() + 1]
    assert not left, f"tasks left: {left}"
    assert not timers, f"timers left: {timers}"


async def _tasks_left(loop: asyncio.AbstractEventLoop) -> list[str]:
    """The tasks that don't end by themselves within a second, but for this one and the test runner's own."""
    own = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks(loop) if task is not own and "TestRunner" not in repr(task.get_coro())]
    if not tasks:
        return []
    _, left = await asyncio.wait(tasks, timeout=1)
    return [repr(task) for task in left]


@pytest.fixture
async def core(paths: Paths, anyio_backend: object) -> AsyncIterator[Core]:
    """All of Deskhand but its window, not started; a test that wants servers writes the file and awaits `core.start`."""
    answers = PersonAnswers()
    core = Core(paths, approver=answers, asker=answers)
    yield core
    await tasks.end(5)
    await core.close()


@pytest.fixture(autouse=True)
def no_window_left(qapp: QApplication) -> Iterator[None]:
    """Ends every window that a test left open, so that none meets the next test.

    Fails a test in which a button or a label was shown before it had a parent: it flashes up as a window of its own and
    takes the keyboard away.
    """
    watcher = _StrayWindows()
    qapp.installEventFilter(watcher)
    yield
    qapp.removeEventFilter(watcher)
    for window in QApplication.topLevelWidgets():
        window.close()
        if window.windowType() != Qt.WindowType.Popup:  # a completer deletes its own, for good
            window.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not watcher.shown, f"shown as windows: {watcher.shown}"


class _StrayWindows(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(
            watched, QAbstractButton | QLabel | QAbstractSpinBox | QLineEdit
        ):
            ordinary = watched.windowType() == Qt.WindowType.Window  # a tool tip is a label, too
            if watched.isWindow() and ordinary:
                self.shown.append(f"{type(watched).__name__} {watched.accessibleName() or watched.objectName()}")
        return False
