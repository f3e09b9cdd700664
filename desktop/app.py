"""Deskhand with its window: builds the objects, shows the window, and quits. Called by ``cli.py`` when no command is given.

The window is on the screen before anything slow is imported; `Core.start` brings the rest in a thread. Everything that may go
wrong unseen (a slot, a task, a thread, Qt itself) ends in the log and, where the person should know, in the one error box.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from PySide6.QtCore import QEvent, QObject, QtMsgType, Signal, qInstallMessageHandler
from PySide6.QtGui import QWindow
from PySide6.QtWidgets import QApplication

from desktop import exit_codes, log
from desktop.core import Core
from desktop.paths import Paths, private_folder
from desktop.ui import error_box, event_loop, icons, tasks, theme
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.main_window import MainWindow
from desktop.ui.server_questions import WindowRespondent
from desktop.ui.single_instance import SingleInstance

logger = logging.getLogger(__name__)

#: Seconds.
_FIRST_PAINT_LIMIT = 2.0
_TASKS_END_LIMIT = 3.0
_CLOSE_LIMIT = 10.0
#: Seconds after which a program that doesn't end by itself is ended, with all its stacks on standard error.
_LAST_RESORT = 20.0


def run(paths: Paths, config: Path | None = None, folder: Path | None = None) -> int:
    """Opens the window and returns when it was closed.

    `config` replaces the person's ``mcp.json`` for this run; `folder` is the workspace, or else the one that was open last.
    """
    application = _Application(sys.argv[:1])
    instance = SingleInstance(private_folder(paths.data))
    if not instance.acquire():
        return exit_codes.DONE if instance.raise_first(folder) else exit_codes.FAILED
    try:
        with _watched(paths):
            return event_loop.run(_main(application, paths, config, folder, instance))
    finally:
        instance.release()


async def _main(
    application: _Application, paths: Paths, config: Path | None, folder: Path | None, instance: SingleInstance
) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_loop_error)
    answers = PersonAnswers()
    respondent = WindowRespondent()
    core = Core(paths, approver=answers, asker=answers, config=config, respondent=respondent, searches_by_meaning=True)
    last = core.settings.values.folder
    core.first_folder = folder or (Path(last) if last else None)
    theme.apply(core.settings.values.color_scheme, font_size=core.settings.values.font_size)  # type: ignore[arg-type]
    window = respondent.window = MainWindow(core, answers)
    closed = asyncio.Event()
    window.closed.connect(closed.set)
    application.quit_requested.connect(window.quit)
    instance.raise_requested.connect(lambda folder: _raise(window, folder))
    with suppress(NotImplementedError):  # Windows
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, window.quit)
    window.show()
    window.activateWindow()  # a screen without a window manager gives the keyboard to nobody by itself
    try:
        await _painted(window.windowHandle())
        tasks.start(_start(core), on_error=window)
        await closed.wait()
    finally:
        await _quit(window, core)
    return exit_codes.DONE


async def _start(core: Core) -> None:
    await core.start()
    if core.settings.values.model:
        from desktop.assistant.litellm_model import preload

        preload()


async def _quit(window: MainWindow, core: Core) -> None:
    """Ends what runs, in bounded time: the turn, the window's tasks, the servers; then the history is on the disk."""
    window.hide()
    # A thread or a library that keeps the program from ending is not waited for.
    faulthandler.dump_traceback_later(_LAST_RESORT, exit=True)
    try:
        await tasks.end(_TASKS_END_LIMIT)
        async with asyncio.timeout(_CLOSE_LIMIT):
            await core.close()
    except TimeoutError:
        logger.error("Deskhand did not close in time")
    window.deleteLater()


async def _painted(window: QWindow) -> None:
    """Waits until the window is on the screen, or could have been."""
    watcher = _FirstPaint(window)
    with suppress(TimeoutError):
        async with asyncio.timeout(_FIRST_PAINT_LIMIT):
            await watcher.painted.wait()


class _FirstPaint(QObject):
    def __init__(self, window: QWindow) -> None:
        super().__init__()
        self.painted = asyncio.Event()
        if window.isExposed():
            self.painted.set()
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Expose:
            watched.removeEventFilter(self)
            self.painted.set()  # whoever waits goes on after Qt has painted
        return False


class _Application(QApplication):
    """Signals:
    quit_requested: By the platform: the end of the person's session, or its own Quit.
    """

    quit_requested = Signal()

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.setApplicationName("deskhand")
        self.setApplicationDisplayName("Deskhand")
        self.setDesktopFileName("deskhand")
        self.setWindowIcon(icons.application_icon())
        self.setQuitOnLastWindowClosed(False)  # it may be in the tray

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Quit:  # Qt would leave the event loop at once
            self.quit_requested.emit()
            return True
        return super().event(event)


def _raise(window: MainWindow, folder: str) -> None:
    window.bring_up()
    if folder:
        window.folders.open(Path(folder))


@contextmanager
def _watched(paths: Paths) -> Iterator[None]:
    """The log, and hooks for what nobody handles. A folder that can't be written costs the log, not the program."""
    try:
        log.start(paths.logs)
        crashes = os.open(paths.logs / "crash.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        faulthandler.enable(crashes)  # open as long as the program runs
    except OSError as error:
        print(f"deskhand: no log: {error.strerror}", file=sys.stderr)
    sys.excepthook = _unhandled
    threading.excepthook = _thread_error
    qInstallMessageHandler(_qt_message)
    try:
        yield
    finally:
        qInstallMessageHandler(None)


def _unhandled(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    error_box.report(error)


def _loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, BaseException):
        error_box.report(error)
    else:
        logger.error("%s", context.get("message"))


def _thread_error(arguments: threading.ExceptHookArgs) -> None:
    logger.error("an unexpected error in a thread", exc_info=arguments.exc_value)


def _qt_message(kind: QtMsgType, _context: object, text: str) -> None:
    level = {
        QtMsgType.QtDebugMsg: logging.DEBUG,
        QtMsgType.QtInfoMsg: logging.INFO,
        QtMsgType.QtWarningMsg: logging.INFO,  # platform plugins warn of what nobody can change
    }.get(kind, logging.ERROR)
    logging.getLogger("qt").log(level, "%s", text)
