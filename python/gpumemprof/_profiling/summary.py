"""get_summary()."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.printed import Printed, format_size
from .remembered import Statistics
from .results import MemorySnapshot

_FUNCTIONS_SHOWN = 10

if TYPE_CHECKING:
    from .profiler import GPUMemoryProfiler


class ProfilerSummary(Printed):
    """What GPUMemoryProfiler.get_summary gives."""

    def rows(self) -> list[tuple[str, str]]:
        """The figures that one looks at first, and the functions that need most."""
        calls, names = self["total_function_calls"], self["total_functions_profiled"]
        least = "" if self["peak_is_exact"] else "at least "
        functions = sorted(self["function_summaries"].items(), key=lambda one: -one[1]["peak_over_start"])
        lines = [
            ("device", f"{self['device']}: {_counted(calls, 'call')} of {_counted(names, 'function')}"),
            ("peak", f"{least}{format_size(self['peak_memory_usage'])}"),
            ("now", f"{format_size(self['current_memory_usage'])}, {format_size(self['memory_change_from_baseline'])} over the baseline"),
        ]
        for name, one in functions[:_FUNCTIONS_SHOWN]:
            # The highest of all calls: the two may be of different ones.
            peak = f"{format_size(one['peak_over_start'])} over a call's start, {format_size(one['peak_memory'])} in all"
            allocated = f"{format_size(one['total_memory_allocated'])} in {_counted(one['call_count'], 'call')}"
            lines.append((name, f"highest {peak}; allocated {allocated}"))
        if len(functions) > _FUNCTIONS_SHOWN:
            lines.append(("…", f"and {len(functions) - _FUNCTIONS_SHOWN:,} more functions"))
        return [*lines, ("figures", f"{self['basis']}: {self['basis_reason']}")]


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def summary(
    profiler: GPUMemoryProfiler,
    statistics: Statistics,
    baseline: MemorySnapshot,
    now: MemorySnapshot,
    watch: tuple[int, bool],
) -> dict[str, Any]:
    """The dict of GPUMemoryProfiler.get_summary. `watch`: the highest since the baseline, and whether it is exact."""
    _, sums = statistics.copy()
    sampler = profiler._sampler
    peaks = [watch[0], now.allocated_memory]
    changed = profiler._basis_changed
    if not changed:  # else results and snapshots are partly of another kind of memory
        peaks += [sampler.highest_bytes, *(s.peak_bytes for s in sums.values())]
    allocated = sum(s.allocated_bytes for s in sums.values())
    freed = sum(s.freed_bytes for s in sums.values())
    result = ProfilerSummary({
        "device": str(profiler.device),
        "total_functions_profiled": len(sums),
        "total_function_calls": sum(s.call_count for s in sums.values()),
        "total_execution_time": sum(s.time_ns for s in sums.values()) / 1e9,
        "total_memory_allocated": allocated,
        "total_memory_freed": freed,
        "net_memory_change": allocated - freed,
        "peak_memory_usage": max(peaks),
        "peak_is_exact": watch[1] and not changed,
        "current_memory_usage": now.allocated_memory,
        "baseline_memory_usage": baseline.allocated_memory,
        "memory_change_from_baseline": now.allocated_memory - baseline.allocated_memory,
        "function_summaries": {name: s.summary() for name, s in sums.items()},
        "monitoring_active": profiler.is_monitoring,
        "snapshots_collected": sampler.count,
        "results_kept": len(statistics.results),
        "results_dropped": statistics.results_dropped,
        "basis": profiler.basis,
        "basis_reason": profiler.basis_reason + changed,
    })
    if sampler.failure is not None:
        result["monitoring_failure"] = sampler.failure
    if not sums:
        result["message"] = "No profiling results available"
    return result
