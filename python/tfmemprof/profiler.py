"""TFMemoryProfiler: gpumemprof's profiler for TensorFlow's devices."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from typing import Any

from gpumemprof._counting.devices import Device
from gpumemprof._counting.spans import Source
from gpumemprof._profiling.measurement import Measurement
from gpumemprof._profiling.profiler import GPUMemoryProfiler, ProfiledBlock

from . import _growth, counters
from ._graphs_and_calls import graph_aware, skipped_by_autograph
from ._tensorflow import TRACING, is_tracing, require_tensorflow
from .devices import resolve_device
from .results import MIB, MemorySnapshot, ProfileResult


class TFMemoryProfiler(GPUMemoryProfiler):
    """Profiles the memory of one of TensorFlow's devices: "/GPU:0", "/CPU:0", None for the first GPU, otherwise the
    CPU.

    Sets memory growth on every GPU that TensorFlow has not begun to use; `memory_growth` has the result, and
    `set_memory_growth=False` does not set it. If a GPU is missing, one log line says so and the CPU is measured.

    Figures are exact under `tfmemprof run` or after `tfmemprof.attach()`. Otherwise they are TensorFlow's own counters,
    with which a call's peak is known if it is the highest so far. `basis`, `basis_reason` and each result's
    `peak_is_exact` say which. The profiler resets no counter and initializes no device. Calls during the building of a
    graph are measured under their name and "(graph tracing)"; the memory of the graph's steps is measured where the
    graph is called.

    Methods are gpumemprof's unless listed below. Raises ValueError for an unknown device.
    """

    def __init__(
        self,
        device: Any = None,
        enable_tensor_tracking: bool = True,
        *,
        set_memory_growth: bool = True,
        collect_stack_traces: bool = False,
        max_results: int = 10_000,
        max_snapshots: int = 10_000,
    ) -> None:
        require_tensorflow("TFMemoryProfiler")
        self.memory_growth: dict[str, str] = _growth.set_memory_growth() if set_memory_growth else {}
        self._start_time = time.time()
        super().__init__(
            device,
            track_tensors=enable_tensor_tracking,
            collect_stack_traces=collect_stack_traces,
            max_results=max_results,
            max_snapshots=max_snapshots,
        )

    @staticmethod
    def _resolve(device: Any) -> Device:
        return resolve_device(device)

    def _find_source(self) -> Source:
        return counters.source_for(self._device)

    @property
    def device(self) -> str:
        """The device's name, "/GPU:0"."""
        return str(self._device)

    def begin(self, name: str, in_context: bool = False) -> Measurement:
        """Like GPUMemoryProfiler.begin; while a graph is built the name says so."""
        return super().begin(name + TRACING if is_tracing() else name, in_context)

    def profile_function(self, func: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Any:
        """`@profiler.profile_function`: the function with every call profiled, whatever its parameters.

        With arguments, `profile_function(step, x, y)`, it is called once and its ProfileResult in bytes is returned, as
        by GPUMemoryProfiler. With only `name=`, a decorator that profiles under that name.
        """
        if func is None:
            return functools.partial(self.wrap, **kwargs)
        return super().profile_function(func, *args, **kwargs) if args or kwargs else self.wrap(func)

    def wrap(self, func: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
        """The profiled version of a function or tf.function, which also works inside a graph."""
        return graph_aware(func, super().wrap, name)

    @skipped_by_autograph
    def profile_context(self, name: str = "context") -> ProfiledBlock:
        """`with profiler.profile_context("load") as result:` profiles the block. `result` is filled at its end."""
        return super().profile_context(name)

    def capture_snapshot(self, name: str = "snapshot") -> MemorySnapshot:
        """The device's memory now; also kept for the results."""
        snapshot = MemorySnapshot.of(self._snapshot(name))
        self._sampler.keep(snapshot)
        return snapshot

    def start_continuous_profiling(self, interval: float = 1.0) -> None:
        """Takes a snapshot every `interval` seconds in a thread. Raises ValueError unless it is above 0."""
        self.start_monitoring(interval)

    def stop_continuous_profiling(self) -> None:
        """Ends the snapshots; does nothing if there are none."""
        self.stop_monitoring()

    def reset(self) -> None:
        """Deletes results and snapshots and starts anew; TensorFlow's own peaks do not change."""
        self.clear_results()
        self._start_time = time.time()

    def get_results(self) -> ProfileResult:
        """Everything since the start or reset()."""
        summary = self.get_summary()
        results, _ = self._statistics.copy()
        taken = [MemorySnapshot.of(snapshot) for snapshot in list(self.snapshots)]
        around = [MemorySnapshot.of(s) for result in results for s in (result.memory_before, result.memory_after)]
        snapshots = sorted([*taken, *around], key=lambda snapshot: snapshot.timestamp)
        sizes = [snapshot.gpu_memory_mb for snapshot in snapshots]
        functions = {
            name: {**sums, "peak_memory_mb": sums["peak_memory"] / MIB}
            for name, sums in summary["function_summaries"].items()
        }
        return ProfileResult(
            start_time=self._start_time,
            end_time=time.time(),
            peak_memory_mb=summary["peak_memory_usage"] / MIB,
            average_memory_mb=sum(sizes) / len(sizes) if sizes else None,
            min_memory_mb=min(sizes, default=None),
            total_allocations=_total(result.tensors_created for result in _outermost(results)),
            total_deallocations=_total(result.tensors_deleted for result in _outermost(results)),
            snapshots=snapshots,
            function_profiles=functions,
            tensor_lifecycle=_lifecycle(self.tensor_tracker),
            basis=summary["basis"],
            basis_reason=summary["basis_reason"],
            peak_is_exact=summary["peak_is_exact"],
            device=self.device,
            results=list(results),
            summary=summary,
        )


def _total(counts: Any) -> int | None:
    known = list(counts)
    return sum(known) if known and None not in known else None


def _outermost(results: Iterable[Any]) -> list[Any]:
    """Without calls that ran within another: its counts have theirs."""
    found: list[Any] = []
    for result in sorted(results, key=lambda one: (one.memory_before.timestamp, -one.memory_after.timestamp)):
        if not found or result.memory_after.timestamp > found[-1].memory_after.timestamp:
            found.append(result)
    return found


def _lifecycle(tracker: Any) -> dict[str, dict[str, Any]]:
    with tracker._lock:
        tracked = list(tracker.tracked)
    lives: dict[str, dict[str, Any]] = {}
    for entry in tracked:
        number = sum(name.split(" (")[0] == entry.name for name in lives)
        lives[entry.name if not number else f"{entry.name} ({number + 1})"] = {
            "size_bytes": entry.size_bytes, "size_mb": entry.size_bytes / MIB, "device": entry.device,
            "dtype": entry.dtype, "shape": entry.shape, "created_at": entry.created_at, "freed_at": entry.freed_at,
        }  # fmt: skip
    return lives
