"""Host memory of the process: profiler and tracker for programs without a GPU, and for memory outside tensors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._core.fork import renews_after_fork
from .._core.printed import Printed, format_size, table
from .._core.sampler import Sampler
from .._counting import host_source
from .._counting.host_source import resident_bytes


@dataclass
class CPUMemorySnapshot:
    """The process at one moment: seconds since 1970, resident and virtual bytes, and its CPU use in percent of one
    processor since the previous snapshot (0.0 for the first)."""

    timestamp: float
    rss: int
    vms: int
    cpu_percent: float

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        return asdict(self)


@dataclass
class CPUProfileResult:
    """A call or block. `duration` in seconds, `peak_rss` in bytes.

    The peak is the process's high-water mark if that rose during the call; otherwise it is the higher of before and
    after, and `peak_is_exact` is false.
    """

    name: str
    duration: float
    snapshot_before: CPUMemorySnapshot
    snapshot_after: CPUMemorySnapshot
    peak_rss: int
    peak_is_exact: bool = False
    error: str | None = None

    def memory_diff(self) -> int:
        """Resident bytes after − before."""
        return self.snapshot_after.rss - self.snapshot_before.rss

    def __str__(self) -> str:
        over = max(self.peak_rss - self.snapshot_before.rss, 0)
        least = "" if self.peak_is_exact else "at least "
        return table([
            (self.name, f"{self.duration * 1e3:.3f} ms" + (f", {self.error}" if self.error else "")),
            ("peak", f"{least}{format_size(over)} over the start, {format_size(self.peak_rss)} in all"),
            ("change", format_size(self.memory_diff())),
            ("figures", "resident memory of the process"),
        ])

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain values; bytes and seconds."""
        return {
            "name": self.name,
            "duration": self.duration,
            "memory_diff": self.memory_diff(),
            "peak_rss": self.peak_rss,
            "peak_is_exact": self.peak_is_exact,
            "before": self.snapshot_before.to_dict(),
            "after": self.snapshot_after.to_dict(),
        }


class CPUMemoryProfiler:
    """Profiles the resident memory of this process. Keeps the last `max_results` results and snapshots."""

    def __init__(self, max_results: int = 10_000) -> None:
        self.max_results = max_results
        self.results: list[CPUProfileResult] = []
        self.results_dropped = 0
        self._lock = threading.RLock()
        renews_after_fork(self)
        self._last_times: tuple[float, float] | None = None
        self._sampler: Sampler[CPUMemorySnapshot] = Sampler(self._snapshot, max_results, lambda s: s.rss)
        self._set_baseline()

    def _after_fork(self) -> None:
        self._lock = threading.RLock()

    def _set_baseline(self) -> None:
        self._baseline, self._high_water = self._look()

    def _snapshot(self) -> CPUMemorySnapshot:
        return self._look()[0]

    def _look(self, blocks: int = 0) -> tuple[CPUMemorySnapshot, int]:
        """What the process is now, and the highest resident memory that it has had, of one moment; `blocks` as in
        process_look()."""
        now = time.monotonic()
        resident, highest, virtual, used = host_source.process_look(blocks)
        with self._lock:
            before, self._last_times = self._last_times, (now, used)
        percent = 0.0 if before is None or now <= before[0] else 100.0 * (used - before[1]) / (now - before[0])
        return CPUMemorySnapshot(time.time(), resident, virtual, percent), highest

    def profile_function(self, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> CPUProfileResult:
        """Calls the function once and returns its result. Exceptions of the function propagate; their result is kept.
        """
        with self.profile_context(getattr(func, "__name__", type(func).__name__)) as block:
            value = func(*args, **kwargs)
        del value
        return block.result

    def profile_context(self, name: str = "context") -> _Block:
        """`with profiler.profile_context("load") as block:` profiles the block; `block.result` is set at its end."""
        return _Block(self, name)

    def _keep(self, result: CPUProfileResult) -> None:
        with self._lock:
            self.results.append(result)
            if len(self.results) > self.max_results:
                drop = max(1, self.max_results // 10)
                del self.results[:drop]
                self.results_dropped += drop

    @property
    def snapshots(self) -> list[CPUMemorySnapshot]:
        """The latest snapshots of monitoring, oldest first."""
        return self._sampler.kept

    def start_monitoring(self, interval: float = 0.1) -> None:
        """Takes a snapshot every `interval` seconds until stop_monitoring(). Raises ValueError unless it is above 0."""
        self._sampler.start(interval)

    def stop_monitoring(self) -> None:
        """Ends monitoring; does nothing if it does not run."""
        self._sampler.stop()

    def clear_results(self) -> None:
        """Deletes results and snapshots, and takes a new baseline."""
        with self._lock:
            self.results.clear()
            self.results_dropped = 0
        self._sampler.clear()
        self._set_baseline()

    def get_summary(self) -> dict[str, Any]:
        """In bytes. `peak_memory_usage` is the highest resident memory since the start or clear_results()."""
        rss, high_water = resident_bytes()
        seen = [self._baseline.rss, rss, self._sampler.highest_bytes, *(r.peak_rss for r in list(self.results))]
        if high_water > self._high_water:
            seen.append(high_water)
        return _Summary({
            "mode": "cpu",
            "snapshots_collected": self._sampler.count,
            "peak_memory_usage": max(seen),
            "peak_is_exact": high_water > self._high_water,
            "current_memory_usage": rss,
            "memory_change_from_baseline": rss - self._baseline.rss,
            "baseline_rss": self._baseline.rss,
            "total_functions_profiled": len({r.name for r in list(self.results)}),
            "results_kept": len(self.results),
            "results_dropped": self.results_dropped,
            "monitoring_active": self._sampler.is_running,
        })

    def __enter__(self) -> CPUMemoryProfiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_monitoring()


class _Summary(Printed):
    def rows(self) -> list[tuple[str, str]]:
        least = "" if self["peak_is_exact"] else "at least "
        return [
            ("calls", f"of {self['total_functions_profiled']:,} functions, {self['results_kept']:,} kept"),
            ("peak", f"{least}{format_size(self['peak_memory_usage'])}"),
            ("now", f"{format_size(self['current_memory_usage'])}, {format_size(self['memory_change_from_baseline'])} over the baseline"),
            ("figures", "resident memory of the process"),
        ]


class _Block:
    result: CPUProfileResult

    def __init__(self, profiler: CPUMemoryProfiler, name: str) -> None:
        self._profiler, self._name = profiler, name
        self._before: CPUMemorySnapshot | None = None

    def __enter__(self) -> _Block:
        self._before, self._high_water = self._profiler._look(1)
        self._start_ns = time.perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before, self._before = self._before, None
        if before is None:  # left once already
            return
        duration = (time.perf_counter_ns() - self._start_ns) / 1e9
        after, high_water = self._profiler._look(-1)
        risen = high_water > self._high_water
        peak = max(before.rss, after.rss, high_water if risen else 0)
        name = None if kind is None else kind.__name__
        self.result = CPUProfileResult(self._name, duration, before, after, peak, risen, name)
        self._profiler._keep(self.result)
