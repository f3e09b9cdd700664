"""asyncio keeps its promises on Qt's loop, and neither of the two starves the other."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest
from PySide6.QtCore import QElapsedTimer, QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from desktop import processes
from desktop.ui.event_loop import EventLoop, run

pytestmark = pytest.mark.anyio


async def test_the_plugin_runs_async_tests_on_this_loop() -> None:
    assert type(asyncio.get_running_loop()) is EventLoop


# timers


async def test_a_timer_never_fires_early() -> None:
    loop = asyncio.get_running_loop()
    for delay in [0.0001, 0.0007, 0.001, 0.0013, 0.0025, 0.0049, 0.01, 0.0304]:
        for _ in range(3):
            started = loop.time()
            await asyncio.sleep(delay)
            assert loop.time() - started >= delay


async def test_timers_fire_in_the_order_of_their_times_not_of_their_calls() -> None:
    loop, fired = asyncio.get_running_loop(), asyncio.Queue[int]()
    now = loop.time()
    for delay in (30, 10, 20, 0):
        loop.call_at(now + delay / 1000, fired.put_nowait, delay)
    assert [await fired.get() for _ in range(4)] == [0, 10, 20, 30]


async def test_three_thousand_cancelled_timeouts_leave_nothing() -> None:
    loop: Any = asyncio.get_running_loop()
    kept: list[weakref.ref[Any]] = []

    class Ballast:
        def __call__(self) -> None: ...

    for _ in range(3000):
        ballast = Ballast()
        kept.append(weakref.ref(ballast))
        loop.call_later(3600, ballast).cancel()
        del ballast
        async with asyncio.timeout(3600):
            await asyncio.sleep(0)
    await asyncio.sleep(0)  # the pass that cancelled the last one is over
    assert [timer for timer in loop._scheduled if timer.when() > loop.time() + 60] == []
    gc.collect()
    assert [ref for ref in kept if ref() is not None] == []


async def test_cancelled_timers_do_not_pile_up_behind_a_living_one() -> None:
    loop: Any = asyncio.get_running_loop()
    living = loop.call_later(3600, print)
    for _ in range(500):
        loop.call_later(3000, print).cancel()
        await asyncio.sleep(0)
    assert len(loop._scheduled) <= 2
    living.cancel()


async def test_a_wait_for_ever_is_no_timer_at_all() -> None:
    with anyio.move_on_after(0.02) as scope:
        await anyio.sleep_forever()
    assert scope.cancelled_caught
    waiting = asyncio.ensure_future(asyncio.sleep(float("inf")))
    await asyncio.sleep(0.01)
    waiting.cancel()
    assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError)


async def test_a_timer_set_from_a_qt_slot_fires_while_every_task_waits() -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    QTimer.singleShot(5, lambda: loop.call_later(0.005, done.set_result, "fired"))
    assert await asyncio.wait_for(done, 5) == "fired"


async def test_a_cancelled_callback_does_not_run() -> None:
    loop, ran = asyncio.get_running_loop(), list[str]()
    loop.call_soon(ran.append, "soon").cancel()
    loop.call_later(0, ran.append, "later").cancel()
    await asyncio.sleep(0.01)
    assert ran == []


# fairness


class Counter(QObject):
    """Counts the events that Qt delivers to it; each asks for the next."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._counted)
        self._timer.start()

    def _counted(self) -> None:
        self.count += 1


async def test_busy_tasks_do_not_starve_qt() -> None:
    counter, until = Counter(), QElapsedTimer()
    until.start()
    turns = 0
    while until.elapsed() < 200:
        turns += 1
        await asyncio.sleep(0)
    assert counter.count > 50
    assert turns > 50


async def test_callbacks_that_add_callbacks_do_not_hold_qt_up() -> None:
    loop = asyncio.get_running_loop()
    events: list[str] = []
    stop = loop.create_future()

    def again() -> None:
        events.append("callback")
        if not stop.done():
            loop.call_soon(again)

    loop.call_soon(again)
    QTimer.singleShot(20, lambda: stop.set_result(None))
    await asyncio.wait_for(stop, 5)
    assert events


async def test_a_pass_runs_only_what_was_ready_at_its_start() -> None:
    loop: Any = asyncio.get_running_loop()
    order: list[str] = []
    done = loop.create_future()

    def first() -> None:
        loop.call_soon(order.append, "second pass")
        loop.call_soon(done.set_result, None)
        QApplication.postEvent(receiver, QEvent(QEvent.Type.User))

    class Receiver(QObject):
        def customEvent(self, event: QEvent) -> None:
            order.append("qt")

    receiver = Receiver()
    loop.call_soon(first)
    loop.call_soon(order.append, "first pass")
    await done
    assert order == ["first pass", "qt", "second pass"]


async def test_a_nested_qt_loop_in_a_callback_does_not_run_tasks_inside_one_another() -> None:
    loop, ran = asyncio.get_running_loop(), list[str]()
    timer = QTimer(singleShot=True, interval=30)

    async def nests() -> None:
        from PySide6.QtCore import QEventLoop

        nested = QEventLoop()
        timer.timeout.connect(nested.quit)
        timer.start()
        loop.call_soon(ran.append, "other")
        nested.exec()
        ran.append("nested ended")

    await nests()
    await asyncio.sleep(0)
    assert ran == ["nested ended", "other"]


# threads, signals


async def test_a_thread_wakes_the_loop_at_once() -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[float] = loop.create_future()
    ready = threading.Event()

    def body() -> None:
        ready.wait(5)
        loop.call_soon_threadsafe(lambda: future.set_result(time.monotonic() - sent[0]))

    sent = [time.monotonic()]
    thread = threading.Thread(target=body)
    thread.start()
    ready.set()
    assert await asyncio.wait_for(future, 5) < 1
    thread.join()


async def test_ten_thousand_calls_from_threads_all_arrive_in_their_thread_s_order() -> None:
    loop, arrived, done = asyncio.get_running_loop(), dict[int, list[int]](), asyncio.Event()
    threads = [
        threading.Thread(
            target=lambda name=name: [loop.call_soon_threadsafe(arrive, name, number) for number in range(2500)]
        )
        for name in range(4)
    ]

    def arrive(name: int, number: int) -> None:
        arrived.setdefault(name, []).append(number)
        if sum(map(len, arrived.values())) == 10000:
            done.set()

    for thread in threads:
        thread.start()
    await asyncio.wait_for(done.wait(), 20)
    for thread in threads:
        thread.join()
    assert arrived == {name: list(range(2500)) for name in range(4)}


async def test_work_in_a_thread_keeps_its_context_and_qt_goes_on() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("kept")
    counter, release = Counter(), threading.Event()
    asyncio.get_running_loop().call_later(0.05, release.set)
    assert await asyncio.to_thread(lambda: (release.wait(5), variable.get())) == (True, "kept")
    assert await anyio.to_thread.run_sync(threading.current_thread) is not threading.current_thread()
    assert counter.count > 5


def test_a_call_to_a_closed_loop_raises_as_asyncio_says(qapp: QApplication) -> None:
    loop = EventLoop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon_threadsafe(print)


@pytest.mark.skipif(sys.platform == "win32", reason="asyncio has no signal handlers there")
async def test_a_signal_handler_runs_while_qt_waits() -> None:
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, came.set)
    try:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        await asyncio.wait_for(came.wait(), 5)
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)


# errors


async def test_an_error_in_a_callback_reaches_the_exception_handler_and_the_loop_goes_on() -> None:
    loop = asyncio.get_running_loop()
    before, contexts = loop.get_exception_handler(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: contexts.append(context))
    try:
        loop.call_soon(lambda: 1 / 0)
        loop.call_later(0.001, lambda: [].pop())
        await asyncio.sleep(0.02)
    finally:
        loop.set_exception_handler(before)
    assert [type(context["exception"]) for context in contexts] == [ZeroDivisionError, IndexError]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_an_exit_in_a_callback_leaves_the_loop(qapp: QApplication, error: BaseException) -> None:
    def raises() -> None:
        raise error

    async def main() -> None:
        asyncio.get_running_loop().call_soon(raises)
        await asyncio.sleep(3600)

    with pytest.raises(type(error)):
        run(main())


# running, stopping


@pytest.fixture
def runner(qapp: QApplication) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        yield runner


def test_a_runner_runs_coroutine_after_coroutine(runner: asyncio.Runner) -> None:
    async def answer(value: int) -> int:
        await asyncio.sleep(0.001)
        return value

    assert [runner.run(answer(value)) for value in range(5)] == [0, 1, 2, 3, 4]
    assert not runner.get_loop().is_running()


def test_run_cancels_and_awaits_what_was_left(qapp: QApplication) -> None:
    ended: list[str] = []

    async def left() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            ended.append("left")

    async def main() -> str:
        task = asyncio.create_task(left())
        await asyncio.sleep(0)
        return task.get_name() and "main"

    assert run(main()) == "main"
    assert ended == ["left"]


def test_async_generators_are_closed_when_the_loop_ends(qapp: QApplication) -> None:
    closed: list[str] = []

    async def generator() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.append("closed")

    kept: list[AsyncGenerator[int]] = []

    async def main() -> int:
        kept.append(generator())
        return await anext(kept[0])

    assert run(main()) == 1
    assert closed == ["closed"]


def test_stopping_lets_the_pass_finish(qapp: QApplication) -> None:
    loop, ran = EventLoop(), list[int]()
    loop.call_soon(loop.stop)
    for number in range(3):
        loop.call_soon(ran.append, number)
    loop.run_forever()
    loop.close()
    assert ran == [0, 1, 2]


def test_quitting_qt_ends_the_run_and_the_tasks(qapp: QApplication) -> None:
    ended: list[str] = []

    async def main() -> None:
        QTimer.singleShot(5, qapp.quit)
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("main")

    with pytest.raises(RuntimeError, match="stopped before"):
        run(main())
    assert ended == ["main"]


def test_nothing_runs_while_the_loop_does_not(qapp: QApplication, qtbot: Any) -> None:
    loop, ran = EventLoop(), list[int]()
    loop.call_soon(ran.append, 1)
    loop.call_later(0.001, ran.append, 2)
    timer = QTimer(singleShot=True, interval=20, timerType=Qt.TimerType.PreciseTimer)
    with qtbot.waitSignal(timer.timeout, timeout=5000):
        timer.start()
    assert ran == []
    loop.close()


# sockets, processes


async def test_a_megabyte_goes_through_a_socket_and_back() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    sent = os.urandom(2**20)
    writer.write(sent)
    writer.write_eof()
    async with asyncio.timeout(10):
        assert await reader.read(-1) == sent
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()


async def test_a_child_process_is_written_to_read_from_and_waited_for() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.exit(7)",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(20):
        output, _ = await process.communicate(b"hand" * 100_000)
    assert output == b"HAND" * 100_000
    assert process.returncode == 7


async def test_a_child_that_is_killed_is_noticed() -> None:
    process = await processes.start([sys.executable, "-c", "import time; time.sleep(3600)"])
    processes.kill_tree(process.pid)
    async with asyncio.timeout(10):
        assert await process.wait() == -signal.SIGKILL


async def test_many_children_at_once_all_report_their_status() -> None:
    async def status(number: int) -> int:
        finished = await processes.run(
            [sys.executable, "-S", "-c", f"raise SystemExit({number})"], time_limit=30, output_limit=0
        )
        return finished.status

    assert await asyncio.gather(*(status(number) for number in range(10))) == list(range(10))


async def test_structured_concurrency_cancels_within_one_tick() -> None:
    loop = asyncio.get_running_loop()
    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(anyio.sleep_forever)
        await anyio.sleep(0.005)
        started = loop.time()
        group.cancel_scope.cancel()
    assert loop.time() - started < 0.5
