"""How long may be waited for a server. Used by the connection's requests and by its attempts to connect.

Only the time in which the loop runs counts: while it stands still, because the window draws or the computer sleeps, no answer
can be heard, and none is late.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

#: Seconds between two looks at the clock.
_TICK = 0.5
#: A look that comes later than this many seconds shows that the loop stood still.
_STANDSTILL = 0.1


class Limits:
    """`idle` seconds without a sign of life, `total` seconds in all, from `begin` on."""

    def __init__(self, idle: float, total: float) -> None:
        self._idle = idle
        self._total = total
        self._idle_end: float | None = None
        self._end = 0.0
        self._pauses = 0
        self._paused_at = 0.0

    def begin(self) -> None:
        """The time runs from the first call on; more are harmless."""
        if self._idle_end is None:
            self._idle_end = self._time() + self._idle
            self._end = self._time() + self._total

    def sign_of_life(self) -> None:
        if self._idle_end is not None:
            self._idle_end = self._time() + self._idle

    def pause(self) -> None:
        """The time stands still until `resume` was called as often: a person is being asked something."""
        if not self._pauses:
            self._paused_at = _now()
        self._pauses += 1

    def resume(self) -> None:
        self._pauses -= 1
        if not self._pauses and self._idle_end is not None:
            self._idle_end += _now() - self._paused_at
            self._end += _now() - self._paused_at

    def left(self) -> float:
        """Seconds; not positive when the time is up."""
        if self._idle_end is None:
            return min(self._idle, self._total)
        return min(self._idle_end, self._end) - self._time()

    def watch(self, expired: Callable[[], None]) -> Callable[[], None]:
        """Begins, and calls `expired` once when the time is up. Returns what ends the watch; harmless afterwards."""
        self.begin()
        loop = asyncio.get_running_loop()

        def look() -> None:
            nonlocal due, timer
            late = loop.time() - due
            if late > _STANDSTILL and self._idle_end is not None and not self._pauses:
                self._idle_end += late
                self._end += late
            left = self.left()
            if left <= 0:
                expired()
                return
            due = loop.time() + min(left, _TICK)
            timer = loop.call_at(due, look)

        due = loop.time() + min(self.left(), _TICK)
        timer = loop.call_at(due, look)
        return lambda: timer.cancel()

    def _time(self) -> float:
        return self._paused_at if self._pauses else _now()


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncGenerator[Callable[[], None]]:
    """Ends what is done within by TimeoutError when its time is up, unless what it gives is called before: that lifts it."""
    async with asyncio.timeout(None) as timeout:
        lift = Limits(seconds, seconds).watch(lambda: timeout.reschedule(0))
        try:
            yield lift
        finally:
            lift()


def _now() -> float:
    return asyncio.get_running_loop().time()
