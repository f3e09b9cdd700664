"""asyncio on Qt: one loop that runs coroutines, timers, sockets and child processes between Qt's events.

Used by ``app.py`` and by the tests of the window; nothing else imports qasync. qasync brings the sockets (and on Windows the
completion port); its timers are replaced, since a cancelled one lived on in Qt, long ones overflowed and short ones fired
early. Callbacks stand in asyncio's own ready queue and timer heap, behind one Qt timer.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

os.environ["QT_API"] = "pyside6"  # qasync would take whatever Qt binding it finds first

import qasync
from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication

if TYPE_CHECKING:
    _QasyncLoop = asyncio.BaseEventLoop
else:
    _QasyncLoop = qasync.QEventLoop

Result = TypeVar("Result")

#: Seconds. Qt counts milliseconds in 31 bits; a longer wait is taken up again.
_LONGEST_WAIT = 24 * 3600.0


class EventLoop(_QasyncLoop):
    """An asyncio event loop driven by the Qt application's own loop.

    Each pass runs the callbacks that were ready when it began and then lets Qt handle its events, so neither side can starve
    the other. A pass does not begin inside another: a nested Qt loop in a coroutine (``exec()``) stops every task until it ends.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _timer_cancelled_count: int
    _stopping: bool
    _debug: bool
    _thread_id: int | None
    _check_closed: Callable[[], None]
    _check_running: Callable[[], None]
    _asyncgen_firstiter_hook: Callable[[Any], None]
    _asyncgen_finalizer_hook: Callable[[Any], None]
    _set_coroutine_origin_tracking: Callable[[bool], None]
    _before_run_forever: Callable[[], None]
    _after_run_forever: Callable[[], None]

    # qasync replaces these without need; asyncio's own keep the whole contract (names of threads, contexts, shutdown).
    run_until_complete = asyncio.BaseEventLoop.run_until_complete
    is_running = asyncio.BaseEventLoop.is_running
    time = asyncio.BaseEventLoop.time
    call_later = asyncio.BaseEventLoop.call_later
    call_soon_threadsafe = asyncio.BaseEventLoop.call_soon_threadsafe
    run_in_executor = asyncio.BaseEventLoop.run_in_executor
    set_default_executor = asyncio.BaseEventLoop.set_default_executor
    set_exception_handler = asyncio.BaseEventLoop.set_exception_handler
    default_exception_handler = asyncio.BaseEventLoop.default_exception_handler
    call_exception_handler = asyncio.BaseEventLoop.call_exception_handler
    get_debug = asyncio.BaseEventLoop.get_debug

    def __init__(self) -> None:
        """Raises RuntimeError when there is no Qt application yet."""
        application = QCoreApplication.instance()
        if application is None:
            raise RuntimeError("make the QApplication before its event loop")
        if isinstance(application, QGuiApplication):
            application.setQuitOnLastWindowClosed(False)  # the coroutine that runs decides when it is over
        self._application = application
        self._timer_of_next_pass = QTimer(singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._timer_of_next_pass.timeout.connect(self._run_once)
        self._waker = _Waker(self._wake)
        self._in_pass = False
        self._woken = False
        self._raised: BaseException | None = None
        super().__init__()

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.BaseEventLoop.call_soon(self, callback, *args, context=context)
        self._wake()
        return handle

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.BaseEventLoop.call_at(self, when, callback, *args, context=context)
        if not self._in_pass and not self._woken:  # from a Qt slot; at the end of a pass the timer is set anyway
            self._set_timer()
        return handle

    def run_forever(self) -> None:
        self._check_closed()
        self._check_running()
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook)
        self._set_coroutine_origin_tracking(self._debug)
        self._thread_id = threading.get_ident()
        asyncio._set_running_loop(self)
        self._before_run_forever()
        try:
            self._set_timer()
            self._application.exec()
            if self._raised is not None:
                raised, self._raised = self._raised, None
                raise raised
        finally:
            self._timer_of_next_pass.stop()
            self._woken = False
            self._after_run_forever()
            self._stopping = False
            self._thread_id = None
            asyncio._set_running_loop(None)
            self._set_coroutine_origin_tracking(False)
            sys.set_asyncgen_hooks(*hooks)

    def stop(self) -> None:
        self._stopping = True
        self._wake()

    def set_debug(self, enabled: bool) -> None:
        asyncio.BaseEventLoop.set_debug(self, enabled)

    def close(self) -> None:
        self._timer_of_next_pass.stop()
        super().close()

    def _write_to_self(self) -> None:
        """Wakes Qt from any thread; called by asyncio's `call_soon_threadsafe` after it has queued the callback."""
        QCoreApplication.postEvent(self._waker, QEvent(QEvent.Type.User))

    def _wake(self) -> None:
        if self._in_pass or self._woken or self._thread_id is None:
            return
        self._woken = True
        self._timer_of_next_pass.start(0)

    def _run_once(self) -> None:
        if self._in_pass:
            return
        self._in_pass, self._woken = True, False
        try:
            now = self.time()
            while self._scheduled and self._scheduled[0].when() <= now:
                timer = heapq.heappop(self._scheduled)
                timer._scheduled = False  # pyright: ignore[reportAttributeAccessIssue]
                if timer.cancelled():
                    self._timer_cancelled_count -= 1
                else:
                    self._ready.append(timer)
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        except (
            BaseException
        ) as error:  # SystemExit and the like: raised by run_forever, as asyncio does, not in Qt's slot
            self._raised, self._stopping = error, True
        finally:
            self._in_pass = False
        if self._stopping:
            self._application.exit()
        else:
            self._set_timer()

    def _set_timer(self) -> None:
        """Sets the one timer for the next pass, and drops cancelled timers once they are the greater part of the heap."""
        if self._timer_cancelled_count * 2 > len(self._scheduled):
            for timer in self._scheduled:
                timer._scheduled = not timer.cancelled()  # pyright: ignore[reportAttributeAccessIssue]
            self._scheduled = [timer for timer in self._scheduled if not timer.cancelled()]
            heapq.heapify(self._scheduled)
            self._timer_cancelled_count = 0
        if self._ready or self._stopping:
            self._wake()
        elif self._thread_id is None or not self._scheduled:
            self._timer_of_next_pass.stop()
        else:
            seconds = min(self._scheduled[0].when() - self.time(), _LONGEST_WAIT)
            self._timer_of_next_pass.start(max(0, math.ceil(seconds * 1000)))


class _Waker(QObject):
    """Takes an event posted by another thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()
        self._wake = wake

    def customEvent(self, event: QEvent) -> None:
        self._wake()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine to its end on the Qt application, then cancels and awaits what tasks are left, and closes the loop."""
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(main)
