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
#: Seconds of standstill that are not counted, so that on a computer that can't keep up the time ends as well.
_MOST_STANDSTILL = 60.0
#: A look that comes later than this many seconds shows that the loop stood still.
_STANDSTILL = 0.1


class Limits:
    """`idle` seconds without a sign of life, `total` seconds in all, from `begin` on."""

    def __init__(self, idle: float, total: float) -> None:
        self._idle = idle
        self._total = total
        self._idle_end: float | None = None
        self._end = 0.0
        self._standstill_left = _MOST_STANDSTILL
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
            nonlocal looked, due, timer
            now = loop.time()
            if now - due > _STANDSTILL and self._idle_end is not None and not self._pauses:
                # When it began is not known: nothing since the last look counts.
                stood = min(now - looked, self._standstill_left)
                self._standstill_left -= stood
                self._idle_end += stood
                self._end += stood
            left = self.left()
            if left <= 0:
                expired()
                return
            looked, due = now, now + min(left, _TICK)
            timer = loop.call_at(due, look)

        looked = loop.time()
        due = looked + min(self.left(), _TICK)
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
