"""A profiler's memory: exact sums by name, and the last results."""

from __future__ import annotations

import threading
from typing import Any

from .._core.fork import renews_after_fork
from .._counting.spans import Raw, Source, start_bytes_of
from .result_list import Results
from .results import ProfileResult

MAX_NAMES = 10_000
OTHER_NAMES = "(other names)"


class FunctionSums:
    """Sums over all calls under one name."""

    __slots__ = ("call_count", "time_ns", "allocated_bytes", "freed_bytes", "peak_bytes", "over_start_bytes", "error_count")

    def __init__(self) -> None:
        self.call_count = self.time_ns = self.allocated_bytes = self.freed_bytes = self.peak_bytes = 0
        self.over_start_bytes = self.error_count = 0

    def summary(self) -> dict[str, Any]:
        """Bytes, seconds and counts, as get_summary()["function_summaries"] has them."""
        calls = self.call_count
        return {
            "call_count": calls,
            "total_time": self.time_ns / 1e9,
            "avg_time": self.time_ns / 1e9 / calls,
            "total_memory_allocated": self.allocated_bytes,
            "avg_memory_allocated": self.allocated_bytes / calls,
            "total_memory_freed": self.freed_bytes,
            "peak_memory": self.peak_bytes,
            "peak_over_start": self.over_start_bytes,
            "error_count": self.error_count,
        }


class Statistics:
    """Sums and results of one profiler; any thread may add.

    The sums are exact however many calls there were. Results are kept up to a limit, the oldest go first and are
    counted; names beyond MAX_NAMES share one entry, since a name made anew for every call would fill the memory.
    """

    def __init__(self, max_results: int) -> None:
        if max_results < 1:
            raise ValueError("max_results must be >= 1")
        self.max_results = max_results
        self.results = Results()
        self.results_dropped = 0
        self.by_name: dict[str, FunctionSums] = {}
        # Reentrant: a profiled function may run in a destructor, which may run at any allocation in here.
        self._lock = threading.RLock()
        renews_after_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()

    def add(self, ended: Raw, source: Source) -> None:
        """A measurement that ended, as Measurement.end gives it."""
        raw, name, duration_ns, error = ended[0], ended[1], ended[2], ended[7]
        with self._lock:
            sums = self.by_name.get(name)
            if sums is None:
                sums = self._new_name(name)
            sums.call_count += 1
            sums.time_ns += duration_ns
            sums.allocated_bytes += raw[0]
            sums.freed_bytes += raw[1]
            if raw[2] > sums.peak_bytes:
                sums.peak_bytes = raw[2]
            sums.over_start_bytes = max(sums.over_start_bytes, raw[2] - start_bytes_of(source, raw))
            if error is not None:
                sums.error_count += 1
            results = self.results
            results.add(ended, source)
            if len(results) > self.max_results:
                self._trim()

    def _new_name(self, name: str) -> FunctionSums:
        if len(self.by_name) >= MAX_NAMES:
            name = OTHER_NAMES
        return self.by_name.setdefault(name, FunctionSums())

    def _trim(self) -> None:
        # A tenth at once: taking one from the front of a list moves all others.
        drop = max(1, len(self.results) - self.max_results + self.max_results // 10)
        del self.results[:drop]
        self.results_dropped += drop

    def clear(self) -> None:
        with self._lock:
            self.results.clear()
            self.by_name.clear()
            self.results_dropped = 0

    def copy(self) -> tuple[list[ProfileResult], dict[str, FunctionSums]]:
        """The results and sums of this moment."""
        with self._lock:
            sums = {}
            for name, original in self.by_name.items():
                sums[name] = copied = FunctionSums()
                for slot in FunctionSums.__slots__:
                    setattr(copied, slot, getattr(original, slot))
            return list(self.results), sums
