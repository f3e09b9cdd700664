"""Watchers of a signal hear it in order, whatever the others do."""

from __future__ import annotations

import pytest

from desktop.signals import Signal


def test_watchers_hear_in_the_order_of_connection_until_they_leave() -> None:
    signal: Signal[int] = Signal()
    heard: list[tuple[str, int]] = []
    first, second = (lambda value: heard.append(("first", value))), (lambda value: heard.append(("second", value)))
    signal.connect(first)
    signal.connect(second)
    signal.emit(1)
    signal.disconnect(first)
    signal.emit(2)
    assert heard == [("first", 1), ("second", 1), ("second", 2)]


def test_a_watcher_that_raises_keeps_no_other_from_hearing() -> None:
    signal: Signal[()] = Signal()
    heard: list[str] = []

    def broken() -> None:
        raise ValueError("broken")

    signal.connect(broken)
    signal.connect(lambda: heard.append("other"))
    with pytest.raises(ExceptionGroup) as caught:
        signal.emit()
    assert heard == ["other"]
    assert isinstance(caught.value.exceptions[0], ValueError)


def test_a_watcher_may_leave_while_it_is_told() -> None:
    signal: Signal[()] = Signal()
    heard: list[str] = []

    def once() -> None:
        heard.append("once")
        signal.disconnect(once)

    signal.connect(once)
    signal.connect(lambda: heard.append("other"))
    signal.emit()
    signal.emit()
    assert heard == ["once", "other", "other"]
