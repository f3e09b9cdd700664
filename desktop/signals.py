"""State that anyone may watch, without Qt: a list of callables. Used by the settings, the host and the assistant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")


class Signal(Generic[Unpack[Arguments]]):
    """Calls every connected callable, in the order of connection, in the thread of `emit`.

    A callable that raises does not keep the others from being called: what they raised is raised together afterwards,
    so that it reaches the one hook that reports errors.
    """

    def __init__(self) -> None:
        self._callables: list[Callable[[Unpack[Arguments]], object]] = []

    def connect(self, callable_: Callable[[Unpack[Arguments]], object]) -> None:
        self._callables.append(callable_)

    def disconnect(self, callable_: Callable[[Unpack[Arguments]], object]) -> None:
        """Forgets a callable. Raises ValueError when it was not connected."""
        self._callables.remove(callable_)

    def emit(self, *arguments: Unpack[Arguments]) -> None:
        errors: list[Exception] = []
        for callable_ in tuple(self._callables):
            try:
                callable_(*arguments)
            except Exception as error:  # a watcher's fault must not keep the others from hearing
                errors.append(error)
        if errors:
            raise ExceptionGroup("watchers of a signal failed", errors)
