"""Phases and step ends in a recording.

Without a recording these functions do nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .._profiling.driving import Driven, drive, drive_async
from . import attribution

_Function = TypeVar("_Function", bound=Callable[..., Any])


def step() -> None:
    """Ends a step of the program's loop. After the first call only this function ends steps, no longer the optimizer.
    """
    marks = attribution.marks()
    if marks is not None:
        marks.step()


class phase:
    """`with phase("evaluation"):`, or `@phase("evaluation")` over a function. The thread's allocations inside have this
    name in the recording; the innermost phase counts.

    A decorated generator or coroutine is in the phase only while it runs. A `with` block in a coroutine is in it until
    its end. Each task on a thread has the phases that it has begun itself; a task that has begun none has the phase
    begun last, as it may have been started inside it. Names are cut at 1,000 bytes; a name without a letter becomes
    "(no name)".
    """

    __slots__ = ("name", "_open")

    def __init__(self, name: str) -> None:
        self.name = name
        self._open: list[int] = []

    def __enter__(self) -> phase:
        marks = attribution.marks()
        self._open.append(marks.phase_begin(self.name) if marks is not None else 0)
        return self

    def __exit__(self, *_: object) -> None:
        number = self._open.pop() if self._open else 0  # left once already
        if number:
            attribution.marks().phase_end(number)

    def __call__(self, function: _Function) -> _Function:
        return _in_phase(function, self.name)  # type: ignore[return-value]


class _Steps:
    """The phase of a generator or coroutine, which is open while it runs."""

    __slots__ = ("_phase",)

    def __init__(self, name: str) -> None:
        self._phase = phase(name)

    def resume(self) -> None:
        self._phase.__enter__()

    def suspend(self) -> None:
        self._phase.__exit__()


def _in_phase(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await Driven(function(*args, **kwargs), _Steps(name))

        return coroutine
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        def async_generator(*args: Any, **kwargs: Any) -> Any:
            return drive_async(function(*args, **kwargs), _Steps(name))

        return async_generator
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return (yield from drive(function(*args, **kwargs), _Steps(name)))

        return generator

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        with phase(name):
            return function(*args, **kwargs)

    return plain
