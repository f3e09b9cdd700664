"""Tasks live until they end, their errors are shown at once, and a dialog is awaited while everything else goes on."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import weakref

import pytest
import shiboken6
from PySide6.QtCore import SIGNAL, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QDialogButtonBox, QLineEdit, QPushButton, QWidget

from desktop.errors import AssistantError
from desktop.ui import tasks
from desktop.ui.error_box import ErrorBox, report
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel

pytestmark = pytest.mark.anyio


def boxes() -> list[ErrorBox]:
    return [each for each in QApplication.topLevelWidgets() if isinstance(each, ErrorBox) and each.isVisible()]


def texts(box: QWidget) -> list[str]:
    return [label.text() for label in box.findChildren(PlainLabel)]


async def _fail(error: Exception) -> None:
    await asyncio.sleep(0)
    raise error


async def test_a_started_task_is_kept_while_nothing_else_refers_to_it() -> None:
    async def waits(future: asyncio.Future[str]) -> None:
        future.get_loop().call_soon(gc.collect)
        await asyncio.shield(asyncio.sleep(0.01))
        future.set_result("done")

    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    reference = weakref.ref(tasks.start(waits(future)))
    assert await asyncio.wait_for(future, 5) == "done"
    await asyncio.sleep(0)
    gc.collect()
    assert reference() is None


async def test_an_error_with_a_remedy_is_shown_with_its_title_detail_and_remedy() -> None:
    window = QWidget()
    task = tasks.start(_fail(AssistantError("command_not_found", server="docs")), on_error=window)
    await asyncio.wait([task])
    await asyncio.sleep(0)
    [box] = boxes()
    assert texts(box) == [
        "docs: Command not found",
        "The server's command was not found on this computer.",
        "Install it, or give its full path in the server's definition.",
    ]
    assert box.parent() is window
    assert not box.isModal()


async def test_details_are_copied_as_they_are() -> None:
    report(AssistantError("timeout", server="docs"))
    [box] = boxes()
    copy = next(button for button in box.findChildren(QPushButton) if button.text() == "Copy details")
    QTest.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == (
        "docs: [timeout] The server did not answer in time. Try again, or raise the server's time limit."
    )


async def test_details_unfold() -> None:
    report(AssistantError("timeout"))
    [box] = boxes()
    toggle = next(button for button in box.findChildren(QPushButton) if button.text() == "Show details")
    QTest.keyClick(toggle, Qt.Key.Key_Space)
    details = box.findChild(FixedText)
    assert details.isVisible()
    assert "[timeout]" in details.toPlainText()
    assert toggle.text() == "Hide details"


async def test_a_fault_of_our_own_is_logged_with_its_place_and_shown(caplog: pytest.LogCaptureFixture) -> None:
    await asyncio.wait([tasks.start(_fail(ZeroDivisionError("by zero")))])
    await asyncio.sleep(0)
    [box] = boxes()
    assert texts(box)[0] == "The operation failed"
    assert "_fail" in box.details
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
    caplog.clear()


async def test_the_same_error_is_shown_once_until_its_box_is_closed() -> None:
    for _ in range(5):
        report(AssistantError("timeout", server="docs"))
    report(AssistantError("timeout", server="other"))
    assert len(boxes()) == 2
    QTest.keyClick(boxes()[0], Qt.Key.Key_Escape)
    assert len(boxes()) == 1


async def test_errors_of_a_group_are_shown_one_by_one() -> None:
    report(ExceptionGroup("several", [AssistantError("timeout"), ExceptionGroup("more", [AssistantError("busy")])]))
    assert sorted(texts(box)[0] for box in boxes()) == ["No answer in time", "Still connecting"]


async def test_a_cancelled_task_is_no_error() -> None:
    task = tasks.start(asyncio.sleep(3600))
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert boxes() == []


async def test_a_task_whose_widget_is_deleted_is_cancelled() -> None:
    widget = QWidget()
    task = tasks.start(asyncio.sleep(3600), on_error=widget)
    widget.deleteLater()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()


async def test_an_error_of_a_widget_that_is_gone_is_shown_all_the_same() -> None:
    widget = QWidget()

    async def fails_late() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            raise AssistantError("timeout")

    task = tasks.start(fails_late(), on_error=widget)
    await asyncio.sleep(0)
    widget.deleteLater()
    await asyncio.wait([task], timeout=5)
    await asyncio.sleep(0)
    assert len(boxes()) == 1


async def test_ended_tasks_leave_nothing_at_their_widget() -> None:
    widget, receivers = QWidget(), list[int]()
    for _ in range(10):
        await tasks.start(asyncio.sleep(0), on_error=widget)
        await asyncio.sleep(0)
        receivers.append(widget.receivers(SIGNAL("destroyed(QObject*)")))
    assert receivers[-1] == receivers[0]


async def test_the_end_cancels_what_was_started_and_waits_a_bounded_time() -> None:
    async def stubborn() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    released = asyncio.Event()
    task, stubborn_task = tasks.start(asyncio.sleep(3600)), tasks.start(stubborn())
    await asyncio.sleep(0)
    started = time.monotonic()
    await tasks.end(0.2)
    assert 0.1 < time.monotonic() - started < 2
    assert task.cancelled()
    assert not stubborn_task.done()
    released.set()
    await stubborn_task
    late = tasks.start(asyncio.sleep(3600))
    await asyncio.wait([late], timeout=5)
    assert late.cancelled()


class Question(QDialog):
    def __init__(self) -> None:
        super().__init__()
        self.line = QLineEdit(self)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok, self)
        self.buttons.accepted.connect(self.accept)


async def test_an_opened_dialog_returns_its_result_while_tasks_go_on() -> None:
    dialog, ticks = Question(), list[int]()

    async def tick() -> None:
        while len(ticks) < 5:
            ticks.append(1)
            await asyncio.sleep(0.001)
        QTest.keyClicks(dialog.line, "typed")
        QTest.mouseClick(dialog.buttons.buttons()[0], Qt.MouseButton.LeftButton)

    task = asyncio.create_task(tick())
    async with asyncio.timeout(5):
        assert await tasks.opened(dialog) == QDialog.DialogCode.Accepted
    assert dialog.line.text() == "typed"
    await task
    assert len(ticks) == 5


async def test_a_dialog_whose_window_goes_away_counts_as_rejected() -> None:
    window = QWidget()
    window.show()
    dialog = QDialog(window)
    asyncio.get_running_loop().call_later(0.01, window.deleteLater)
    del window
    async with asyncio.timeout(5):
        assert await tasks.opened(dialog) == QDialog.DialogCode.Rejected


async def test_a_cancelled_wait_closes_the_dialog() -> None:
    dialog = Question()
    task = asyncio.create_task(tasks.opened(dialog))
    await asyncio.sleep(0.01)
    assert dialog.isVisible()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert not shiboken6.isValid(dialog) or not dialog.isVisible()
