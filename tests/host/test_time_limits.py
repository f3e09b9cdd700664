"""How long is waited: silence and all in all, without the time in which the loop stands still or a person is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from desktop.host.time_limits import Limits, time_limit

pytestmark = pytest.mark.anyio


async def lasts(limits: Limits, meanwhile: Callable[[], None] = lambda: None) -> float:
    """Seconds until the limits say that the time is up."""
    expired = asyncio.Event()
    begun = time.monotonic()
    end_watch = limits.watch(expired.set)
    meanwhile()
    async with asyncio.timeout(20):
        await expired.wait()
    end_watch()
    return time.monotonic() - begun


async def test_the_time_runs_from_the_first_watch_on() -> None:
    limits = Limits(0.3, 10)
    await asyncio.sleep(0.4)
    assert limits.left() == pytest.approx(0.3)
    assert await lasts(limits) >= 0.29
    assert limits.left() <= 0


async def test_a_sign_of_life_restarts_the_silence_and_not_the_whole() -> None:
    loop = asyncio.get_running_loop()

    def alive(limits: Limits) -> None:
        for tenth in range(1, 9):
            loop.call_later(tenth / 10, limits.sign_of_life)

    silent = Limits(0.4, 10)
    assert await lasts(silent, lambda: alive(silent)) >= 1.19
    whole = Limits(0.4, 0.6)
    assert 0.59 <= await lasts(whole, lambda: alive(whole)) < 1.1


async def test_while_the_loop_stands_still_no_time_passes() -> None:
    assert await lasts(Limits(0.4, 0.4), lambda: time.sleep(1)) >= 1.1


async def test_a_limit_that_is_lifted_ends_nothing_and_one_that_is_not_ends_what_is_done() -> None:
    async with time_limit(0.1) as lift:
        lift()
        await asyncio.sleep(0.3)
    with pytest.raises(TimeoutError):
        async with time_limit(0.1):
            await asyncio.sleep(10)
    async with time_limit(0.1):  # left in time
        pass
    await asyncio.sleep(0.2)
