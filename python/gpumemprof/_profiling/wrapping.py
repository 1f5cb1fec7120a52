"""Creates the profiled version of a function of any kind."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextvars import ContextVar
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .driving import Driven, drive, drive_async
from .measurement import SegmentedMeasurement
from .results import ProfileResult

if TYPE_CHECKING:
    from .profiler import GPUMemoryProfiler

# The profiled calls that this context is inside of, each as [key of the function, thread that runs it now]: the same
# function again is recursion, and part of the first. Contexts are copied, into tasks, timers and threads, and a copy
# outlives the call: so an entry counts only while its call runs, and below us on this very thread.
_Call = list[Any]
_inside: ContextVar[tuple[_Call, ...]] = ContextVar("gpumemprof_inside", default=())
_SUSPENDED = 0  # in the thread's place; no thread's number

Profilers = Callable[[], "GPUMemoryProfiler"]


def name_of(function: Any) -> str:
    """The name under which a callable is profiled."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def check_function(function: Any) -> None:
    """TypeError for what a decorator cannot stand above: a class, whose name would become a function, or a text."""
    if isinstance(function, type):
        raise TypeError(f"{function.__name__} is a class: profile its methods")
    if not callable(function):
        hint = f": to name the calls, write name={function!r:.40}" if isinstance(function, str) else ""
        raise TypeError(f"profile_function is a decorator of functions, not of {type(function).__name__}{hint}")


def needs_arguments(function: Any) -> bool:
    """Whether a call without arguments would fail, as far as can be seen without calling; False if it cannot."""
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


def _running() -> tuple[_Call, ...]:
    """The calls below us on this thread; leaves out what a copied context brought along."""
    inside = _inside.get()
    if not inside:
        return inside
    me = get_ident()
    return tuple([call for call in inside if call[1] == me])


def _is_recursion(key: object) -> bool:
    return any(call[0] is key for call in _running())


def _plain(function: Callable[..., Any], name: str, profiler: Profilers, key: object) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        inside = _inside.get()
        if inside:
            inside = _running()
            for call in inside:
                if call[0] is key:
                    return function(*args, **kwargs)
        who = profiler()
        call = [key, get_ident()]
        token = _inside.set((*inside, call))
        try:
            measurement = who.begin(name)
            try:
                value = function(*args, **kwargs)
            except BaseException as error:
                who.finish(measurement, error)
                raise
            who.finish(measurement, None)
        finally:
            call[1] = _SUSPENDED
            _inside.reset(token)
        return value

    return wrapper


class Run:
    """One run of a generator or coroutine: told of its steps, records it when it is over."""

    __slots__ = ("_profiler", "_measurement", "_call", "_token", "_ended")

    def __init__(self, profiler: GPUMemoryProfiler, name: str, key: object) -> None:
        self._profiler = profiler
        self._measurement: SegmentedMeasurement = profiler.begin_segmented(name)
        self._call: _Call = [key, _SUSPENDED]

    def resume(self) -> None:
        self._measurement.resume()
        # Set for the step only: a generator runs in its caller's context, and must leave nothing in it.
        self._token = _inside.set((*_running(), self._call))
        self._call[1] = get_ident()

    def suspend(self) -> None:
        self._call[1] = _SUSPENDED
        _inside.reset(self._token)
        self._measurement.suspend()

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
        if _is_recursion(key):
            return (yield from inner)
        with Run(profiler(), name, key) as run:
            return (yield from drive(inner, run))

    return wrapper


def _coroutine(function: Callable[..., Any], name: str, profiler: Profilers, key: object) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        if _is_recursion(key):
            return await inner
        with Run(profiler(), name, key) as run:
            return await Driven(inner, run)

    return wrapper


def _async_generator(function: Callable[..., Any], name: str, profiler: Profilers, key: object) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        if _is_recursion(key):
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


class AwaitedResult(Coroutine[Any, Any, ProfileResult]):
    """Of profile_function(main) with an `async def` function: awaited, it runs the function once and gives the
    ProfileResult; called, it is the profiled function, so that a decorated `main` can be called as it always was.

    Nothing runs before that. asyncio.run() and create_task() take it as the coroutine that it stands for.
    """

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, ProfileResult]], again: Callable[..., Any]) -> None:
        self._begin, self._again = begin, again
        self._begun: Coroutine[Any, Any, ProfileResult] | None = None
        functools.update_wrapper(self, again)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._again(*args, **kwargs)

    def _coroutine(self) -> Coroutine[Any, Any, ProfileResult]:
        # Made late: one that is only ever called would warn that nobody awaited it.
        if self._begun is None:
            self._begun = self._begin()
        return self._begun

    def __await__(self) -> Generator[Any, Any, ProfileResult]:
        return self._coroutine().__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine().send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine().throw(*error)

    def close(self) -> None:
        if self._begun is not None:
            self._begun.close()


async def run_to_its_end(items: AsyncIterator[Any]) -> None:
    """Runs an asynchronous generator; what it yields is dropped."""
    async for _ in items:
        pass
