"""GPUMemoryProfiler: profiles calls and blocks, takes snapshots, computes sums."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter_ns, time
from typing import Any

from .._core.sampler import Sampler
from .._counting import counters
from .._counting.devices import Device, resolve_device, torch_device
from .._counting.spans import Raw
from . import wrapping
from .driving import Driven
from .measurement import Measurement, Options, SegmentedMeasurement, user_stack
from .remembered import Statistics
from .results import MemorySnapshot, ProfileResult, snapshot_of
from .tensors import TensorTracker

__all__ = ["GPUMemoryProfiler", "MemorySnapshot", "ProfileResult", "TensorTracker"]


class GPUMemoryProfiler:
    """Profiles the memory of one device: a GPU, or the CPU's tensors.

    `device`: None (the current GPU, otherwise the CPU), 0, "cuda:0", "cpu" or a torch.device. `track_tensors` (or
    `enable_tensor_tracking`) counts tensors created and deleted. If the latter is True and INFO messages are shown, it
    also logs them, which slows every operation: see TensorTracker.start_live. `track_cpu_memory` adds the process's
    resident memory to snapshots. `collect_stack_traces` keeps the Python stack of each call, at a cost. The last
    `max_results` results and `max_snapshots` snapshots are kept; the sums in get_summary() stay exact.

    `basis` and `basis_reason` say where the figures come from. The profiler does not synchronize the device, collect
    garbage or reset a counter of PyTorch. Every method may be called from any thread.

    Raises RuntimeError if a GPU is requested and there is none, ValueError for a device that does not exist.
    """

    def __init__(
        self,
        device: Any = None,
        track_tensors: bool = True,
        track_cpu_memory: bool = True,
        collect_stack_traces: bool = False,
        *,
        enable_tensor_tracking: bool | None = None,
        max_results: int = 10_000,
        max_snapshots: int = 10_000,
    ) -> None:
        self._device = self._resolve(device)
        tracks = bool(track_tensors if enable_tensor_tracking is None else enable_tensor_tracking)
        self._options = Options(tracks, bool(track_cpu_memory), bool(collect_stack_traces))
        self._statistics = Statistics(max_results)
        self._sampler = Sampler(self._take_snapshot, max_snapshots, lambda snapshot: snapshot.allocated_memory)
        self.tensor_tracker = TensorTracker(live=enable_tensor_tracking is True)  # not by default: it costs
        self._new_source()

    # -- where figures come from ---------------------------------------------------------------------------------------

    def _new_source(self, source: counters.Source | None = None, changed: str = "") -> None:
        self._generation, self._pid = counters.generation, os.getpid()
        self._source = self._find_source() if source is None else source
        self._watch = counters.Watch(self._source)
        self._basis_changed = changed
        self._baseline = self._snapshot("baseline")

    # What another framework's profiler has its own way of: which device is meant, and who knows its figures.
    @staticmethod
    def _resolve(device: Any) -> Device:
        return resolve_device(device)

    def _find_source(self) -> counters.Source:
        return counters.source_for(self._device)

    def _current_source(self) -> counters.Source:
        if self._generation != counters.generation:
            generation, old = counters.generation, self._source.basis
            source = self._find_source()
            if source.basis == old and self._pid == os.getpid():
                self._generation = generation  # the same kind: source, baseline and highest mark go on
            else:
                # Bytes of two kinds, or counted from two zeros, have no difference and no common peak.
                self._new_source(source, _basis_changed(old, source.basis))
        return self._source

    @property
    def device(self) -> Any:
        """The device as a torch.device, or its name if PyTorch is not loaded."""
        return torch_device(self._device)

    @property
    def basis(self) -> str:
        """The source of the figures: "exact", "framework" or "host"."""
        return self._current_source().basis

    @property
    def basis_reason(self) -> str:
        """Why this source is used."""
        return self._current_source().basis_reason

    @property
    def track_tensors(self) -> bool:
        """Whether tensors are counted."""
        return self._options.counts

    @property
    def enable_tensor_tracking(self) -> bool:
        """Another name of `track_tensors`."""
        return self._options.counts

    @property
    def track_cpu_memory(self) -> bool:
        """Whether snapshots have the process's resident memory."""
        return self._options.cpu

    @property
    def collect_stack_traces(self) -> bool:
        """Whether results and snapshots have stacks."""
        return self._options.stacks

    # -- profiling -----------------------------------------------------------------------------------------------------

    def begin(self, name: str, in_context: bool = False) -> Measurement:
        """Begins a measurement where a `with` block does not fit; pass the result to `finish`."""
        source = self._source if self._generation == counters.generation else self._current_source()
        return Measurement(name, source, self._options, in_context)

    def begin_segmented(self, name: str) -> SegmentedMeasurement:
        """Begins a measurement of something that is suspended at times; it begins suspended."""
        return SegmentedMeasurement(name, self._current_source(), self._options)

    def finish(self, measurement: Measurement, error: BaseException | None = None) -> Raw:
        """Ends a measurement and keeps its result. `error` is the exception that ended it, if any."""
        ended = measurement.end(error)
        self._statistics.add(ended, measurement.source)
        return ended

    def profile_function(self, func: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Any:
        """Calls `func(*args, **kwargs)` once and returns its ProfileResult; the function's return value is dropped.

        Exceptions propagate, with the result kept as `results[-1]`. An `async def` function returns an awaitable of the
        result. A generator function is run to its end, an asynchronous one when awaited.

        It is also a decorator, `@profiler.profile_function`: for a function with required parameters, given without
        arguments, it returns the profiled version. A function without parameters is called, as documented, and the
        result can itself be called as the function.
        """
        if func is None:
            return functools.partial(self.profile_function, *args, **kwargs)
        if not callable(func):
            wrapping.check_function(func)
        if not args and not kwargs and wrapping.needs_arguments(func):
            return self.wrap(func)
        name = wrapping.name_of(func)
        if inspect.iscoroutinefunction(func) or inspect.isasyncgenfunction(func):
            begin = functools.partial(self._profile_coroutine, func, name, args, kwargs)
            return begin() if args or kwargs else wrapping.AwaitedResult(begin, self.wrap(func))
        run = _run_to_its_end(func) if inspect.isgeneratorfunction(func) else func
        measurement = self.begin(name)
        try:
            value = run(*args, **kwargs)
        except BaseException as error:
            self.finish(measurement, error)
            raise
        result = ProfileResult.of(self.finish(measurement), measurement.source)
        del value  # alive until here, so that what the function returned is in memory_after
        if not args and not kwargs:
            result.__dict__["_again"] = functools.partial(self._call_profiled, func, name)
        return result

    def _call_profiled(self, func: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        return wrapping.profiled(func, name, lambda: self)(*args, **kwargs)

    async def _profile_coroutine(
        self, func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> ProfileResult:
        run = wrapping.Run(self, name, object())
        with run:
            work = func(*args, **kwargs)
            value = await Driven(wrapping.run_to_its_end(work) if inspect.isasyncgen(work) else work, run)
        del value
        return run.result()

    def wrap(self, func: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
        """The profiled version of a function: it behaves the same and adds a result for every call."""
        wrapping.check_function(func)
        return wrapping.profiled(func, name or wrapping.name_of(func), lambda: self)

    def profile_context(self, name: str = "context") -> ProfiledBlock:
        """`with profiler.profile_context("load") as result:` profiles the block. `result` is filled at its end."""
        return ProfiledBlock(self, name)

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def _snapshot(self, operation: str | None) -> MemorySnapshot:
        source = self._current_source()
        cpu_bytes = counters.rss_bytes(perf_counter_ns()) if self.track_cpu_memory else 0
        stack = user_stack() if self.collect_stack_traces else None
        return snapshot_of(source.read(), time(), self._device, source.basis, cpu_bytes, operation, stack)

    def _take_snapshot(self) -> MemorySnapshot:
        return self._snapshot("monitoring")

    def capture_snapshot(self, name: str = "snapshot") -> MemorySnapshot:
        """The device's memory now; also added to `snapshots`."""
        snapshot = self._snapshot(name)
        self._sampler.keep(snapshot)
        return snapshot

    def start_monitoring(self, interval: float = 0.1) -> None:
        """Takes a snapshot every `interval` seconds in a thread until stop_monitoring(). Raises ValueError unless it is
        above 0."""
        self._sampler.start(interval)

    def stop_monitoring(self) -> None:
        """Ends monitoring; does nothing if it does not run."""
        self._sampler.stop()

    @property
    def snapshots(self) -> list[MemorySnapshot]:
        """The last snapshots, oldest first; the list grows during monitoring."""
        return self._sampler.kept

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def results(self) -> list[ProfileResult]:
        """The last results, in the order in which they ended."""
        return self._statistics.results

    @property
    def results_dropped(self) -> int:
        """The number of results beyond `max_results` that were dropped. The sums include them."""
        return self._statistics.results_dropped

    @property
    def function_stats(self) -> dict[str, list[ProfileResult]]:
        """The kept results by name."""
        by_name: dict[str, list[ProfileResult]] = {}
        for result in self._statistics.copy()[0]:
            by_name.setdefault(result.function_name, []).append(result)
        return by_name

    def get_summary(self) -> dict[str, Any]:
        """Sums since the start or clear_results(): bytes, seconds, counts. All keys are always present.

        `peak_memory_usage` is the device's highest in that time, profiled or not. Sums of nested calls count the inner
        ones in the outer ones too.
        """
        from .summary import summary

        self._current_source()  # a change of the basis takes a new baseline and a new watch
        watch = self._watch.look()
        return summary(self, self._statistics, self._baseline, self._snapshot(None), watch)

    def clear_results(self) -> None:
        """Deletes results, snapshots and sums, and takes a new baseline. PyTorch's own peaks do not change."""
        self._statistics.clear()
        self._sampler.clear()
        self._new_source()

    @property
    def is_monitoring(self) -> bool:
        """Whether the monitoring thread runs, in this process."""
        return self._sampler.is_running

    def __enter__(self) -> GPUMemoryProfiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_monitoring()

    def __iter__(self) -> Iterator[ProfileResult]:
        return iter(self._statistics.copy()[0])


class ProfiledBlock:
    """A `with` block under a profiler. The same thread may enter it again; each profile_context() returns a new one."""

    def __init__(self, profiler: GPUMemoryProfiler, name: str, enter: Any = None) -> None:
        self._profiler, self._name = profiler, name
        self._open: list[Measurement] = []
        self._enter = enter

    def __enter__(self) -> Any:
        # A block of asynchronous code shares its thread with other tasks: there its own is what its context does.
        asyncio = sys.modules.get("asyncio.events")
        in_context = asyncio is not None and asyncio._get_running_loop() is not None
        self._open.append(self._profiler.begin(self._name, in_context))
        return self if self._enter is None else self._enter

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not self._open:  # left once already
            return
        measurement = self._open.pop()
        self._result = ProfileResult.of(self._profiler.finish(measurement, error), measurement.source)

    @property
    def result(self) -> ProfileResult:
        """The result of the block. Raises AttributeError during its first run."""
        return self._result

    def __getattr__(self, name: str) -> Any:
        # `with … as result:` gives this object, which then stands for the result.
        if name.startswith("_"):
            raise AttributeError(name)
        result = self.__dict__.get("_result")
        if result is None:
            raise AttributeError(f"{name}: the block {self._name!r} has not ended yet")
        return getattr(result, name)

    def __str__(self) -> str:
        return str(self._result) if hasattr(self, "_result") else repr(self)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """As a decorator: every call of the function is profiled under the block's name."""
        return self._profiler.wrap(func, self._name)


def _basis_changed(old: str, new: str) -> str:
    changed = f"the basis changed from {old} to {new}" if old != new else "the basis changed: the process forked"
    return f"; {changed}, so baseline and peak cover the time since then, and sums both times"


def _run_to_its_end(func: Callable[..., Any]) -> Callable[..., None]:
    def run(*args: Any, **kwargs: Any) -> None:
        for _ in func(*args, **kwargs):
            pass

    return run
