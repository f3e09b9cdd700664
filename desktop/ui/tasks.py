"""Starting tasks from Qt's slots and awaiting dialogs. Used by every widget that does something asynchronous.

asyncio keeps only weak references to tasks, and an error in one that nobody awaits would be told late or never.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import shiboken6
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from desktop.ui import error_box

Result = TypeVar("Result")

_running: set[asyncio.Task[Any]] = set()
#: Loops of programs that end: what a late timer or notice starts there is cancelled at once.
_ending: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()


def start(coroutine: Coroutine[Any, Any, Result], *, on_error: QWidget | None = None) -> asyncio.Task[Result]:
    """Starts a task and keeps it until it ends; what it raises is shown at once (``error_box.report``).

    `on_error` is the widget that the task works for: an error belongs to its window, and a task whose widget is deleted is
    cancelled. Being cancelled is no error.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(coroutine)
    if loop in _ending:
        task.cancel()
    _running.add(task)

    def cancel() -> None:
        task.cancel()

    def ended(task: asyncio.Task[Result]) -> None:
        _running.discard(task)
        alive = on_error is not None and shiboken6.isValid(on_error)
        if on_error is not None and alive:
            on_error.destroyed.disconnect(cancel)
        if not task.cancelled() and (error := task.exception()) is not None:
            error_box.report(error, on_error if alive else None)

    if on_error is not None:
        on_error.destroyed.connect(cancel)
    task.add_done_callback(ended)
    return task


async def end(time_limit: float) -> None:
    """Cancels what was started, and what is started from now on, and waits for it, at most that many seconds.

    For the end of the program: a list that reads itself anew would find its files closed.
    """
    _ending.add(asyncio.get_running_loop())
    own = asyncio.current_task()
    left = {task for task in _running if task is not own}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=time_limit)


async def opened(dialog: QDialog) -> int:
    """Opens a dialog (window-modal, the loop goes on) and waits for its result code; 0 when its window goes away.

    The dialog is deleted after its caller next awaits something: read what was entered before. A cancelled wait closes it.
    """
    return await _result(dialog, dialog.open)


async def shown(dialog: QDialog) -> int:
    """Like `opened`, for a dialog that comes unasked: it blocks nothing, and asks for attention in the background."""

    def show() -> None:
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()
        QApplication.alert(dialog)

    return await _result(dialog, show)


async def _result(dialog: QDialog, show: Callable[[], None]) -> int:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def finished(result: int = 0) -> None:
        if not future.done():
            future.set_result(result)

    dialog.finished.connect(finished)
    dialog.destroyed.connect(lambda: finished())
    show()
    try:
        return await future
    except asyncio.CancelledError:
        dialog.reject()
        raise
    finally:
        if shiboken6.isValid(dialog):
            dialog.deleteLater()
