"""Runs generators, coroutines and asynchronous generators for their caller, and measures them while they run.

Between two steps they are suspended, and what the rest of the program does then does not count.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, Protocol


class Steps(Protocol):
    """What is told when a step begins and ends."""

    def resume(self) -> None: ...
    def suspend(self) -> None: ...


def drive(inner: Any, steps: Steps) -> Generator[Any, Any, Any]:
    """A generator that behaves as `inner`, a generator or coroutine: values, exceptions, closing and result pass
    through.
    """
    step: Callable[..., Any] = inner.send
    argument: Any = None
    while True:
        steps.resume()
        try:
            yielded = step(argument)
        except StopIteration as stop:
            return stop.value
        finally:
            steps.suspend()
        try:
            argument = yield yielded
            step = inner.send
        except GeneratorExit:
            # Closed: what `inner` does on its way out is its own too.
            steps.resume()
            try:
                inner.close()
            finally:
                steps.suspend()
            raise
        except BaseException as error:  # noqa: B902 - whatever was thrown into us is thrown into it
            step, argument = inner.throw, error


class Driven:
    """Awaitable that drives a coroutine, or the next step of an asynchronous generator."""

    __slots__ = ("_inner", "_steps")

    def __init__(self, inner: Any, steps: Steps) -> None:
        self._inner, self._steps = inner, steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return drive(self._inner, self._steps)


class _Step:
    """An asynchronous generator's step as something with send, throw and close."""

    __slots__ = ("send", "throw", "close")

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        iterator = awaitable.__await__()
        self.send, self.throw, self.close = iterator.send, iterator.throw, iterator.close


async def drive_async(inner: AsyncGenerator[Any, Any], steps: Steps) -> AsyncGenerator[Any, Any]:
    """An asynchronous generator that behaves as `inner`."""
    step: Awaitable[Any] = inner.__anext__()
    while True:
        try:
            value = await Driven(_Step(step), steps)
        except StopAsyncIteration:
            return
        try:
            sent = yield value
            step = inner.asend(sent)
        except GeneratorExit:
            await Driven(_Step(inner.aclose()), steps)
            raise
        except BaseException as error:  # noqa: B902
            step = inner.athrow(error)
