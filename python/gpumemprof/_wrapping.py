"""Makes the profiled version of a function, whatever kind of function it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ._driving import Driven, drive, drive_async
from ._measurement import SegmentedMeasurement
from .snapshot import ProfileResult

if TYPE_CHECKING:
    from .profiler import GPUMemoryProfiler

# The profiled functions that this context is inside of: a call of one of them again is recursion, and part of the
# first.
_inside: ContextVar[tuple[Any, ...]] = ContextVar("gpumemprof_inside", default=())

Profilers = Callable[[], "GPUMemoryProfiler"]


def name_of(function: Any) -> str:
    """The name under which a callable is profiled."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def needs_arguments(function: Any) -> bool:
    """Whether a call without arguments would fail, as far as can be seen without calling; False where it cannot."""
    target, bound = function, 0
    if inspect.ismethod(function):
        target, bound = function.__func__, 1
    code = getattr(target, "__code__", None)
    if code is None or hasattr(target, "__wrapped__"):
        return False
    required = code.co_argcount - len(target.__defaults__ or ()) > bound
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return bool(required or any(name not in (target.__kwdefaults__ or {}) for name in names))


def profiled(function: Callable[..., Any], name: str, profiler: Profilers) -> Callable[..., Any]:
    """`function` with every call profiled under `name` by what `profiler()` gives: same result, exceptions and kind."""
    key = object()  # of this wrapper
    if inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, name, profiler, key)
    elif inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, name, profiler, key)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, name, profiler, key)
    else:
        wrapper = _plain(function, name, profiler, key)
    wrapper._is_profiled = True  # type: ignore[attr-defined]
    wrapper._profile_name = name  # type: ignore[attr-defined]
    return wrapper


def _plain(function: Callable[..., Any], name: str, profiler: Profilers, key: object) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        inside = _inside.get()
        if key in inside:
            return function(*args, **kwargs)
        token = _inside.set((*inside, key))
        who = profiler()
        measurement = who.begin(name)
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            who.finish(measurement, error)
            raise
        else:
            who.finish(measurement, None)
        finally:
            _inside.reset(token)
        return value

    return wrapper


class Run:
    """One run of a generator or coroutine: told of its steps, records it when it is over."""

    __slots__ = ("_profiler", "_measurement", "_key", "_token", "_ended")

    def __init__(self, profiler: GPUMemoryProfiler, name: str, key: object) -> None:
        self._profiler = profiler
        self._measurement: SegmentedMeasurement = profiler.begin_segmented(name)
        self._key = key

    def resume(self) -> None:
        # Set for the step only: a generator runs in its caller's context, and must leave nothing in it.
        self._token = _inside.set((*_inside.get(), self._key))
        self._measurement.resume()

    def suspend(self) -> None:
        self._measurement.suspend()
        _inside.reset(self._token)

    def result(self) -> ProfileResult:
        """Of a run that is over."""
        return ProfileResult.of(self._ended, self._measurement.source)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        # A generator that is closed early did what it was asked to: that is no error.
        self._ended = self._profiler.finish(self._measurement, None if isinstance(error, GeneratorExit) else error)


def _generator(function: Callable[..., Any], name: str, profiler: Profilers, key: object) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = function(*args, **kwargs)
        if key in _inside.get():
            return (yield from inner)
        with Run(profiler(), name, key) as run:
            return (yield from drive(inner, run))

    return wrapper


def _coroutine(function: Callable[..., Any], name: str, profiler: Profilers, key: object) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        if key in _inside.get():
            return await inner
        with Run(profiler(), name, key) as run:
            return await Driven(inner, run)

    return wrapper


def _async_generator(function: Callable[..., Any], name: str, profiler: Profilers, key: object) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        if key in _inside.get():
            run: Any = _NoRun()
        else:
            run = Run(profiler(), name, key)
        with run:
            outer = drive_async(inner, run)
            sent: Any = None
            try:
                value = await outer.__anext__()
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        await outer.aclose()
                        raise
                    except BaseException as error:  # noqa: B902
                        value = await outer.athrow(error)
                    else:
                        value = await outer.asend(sent)
            except StopAsyncIteration:
                return

    return wrapper


class _NoRun:
    """Stands for the Run of a recursive call, which belongs to the outer one."""

    def resume(self) -> None: ...
    def suspend(self) -> None: ...
    def __enter__(self) -> _NoRun:
        return self

    def __exit__(self, *_: Any) -> None: ...
