"""One call or block while it is measured, and afterwards the values from which its result is made."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter_ns, time
from types import FrameType
from typing import Any, NamedTuple

from ._source_host import rss_bytes
from ._spans import Raw, SegmentedSpan, Source, figures_of
from .snapshot import snapshot_of

# This package and its sister, which has the words of TensorFlow for the same things.
_PACKAGES = tuple(f"{Path(__file__).parent.parent / name}/" for name in ("gpumemprof", "tfmemprof"))
_MAX_FRAMES = 64


class Options(NamedTuple):
    """What a profiler measures besides its device's bytes: tensor counts, the process's memory, stacks."""

    counts: bool
    cpu: bool
    stacks: bool


def user_stack(frame: FrameType | None = None) -> str:
    """The calling frames that are not of these packages, innermost first, one `file:line function` a line."""
    frame = frame or sys._getframe(1)
    lines: list[str] = []
    while frame is not None and len(lines) < _MAX_FRAMES:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGES):
            lines.append(f"{code.co_filename}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return "\n".join(lines)


class Measurement:
    """Begun when made, over at `end`. What can wait until somebody looks, waits."""

    __slots__ = ("name", "source", "span", "options", "time_s", "rss", "duration_ns", "stack")

    span: Any

    def __init__(self, name: str, source: Source, options: Options, in_context: bool = False) -> None:
        self.name = name
        self.source = source
        self.options = options
        self.stack = user_stack() if options.stacks else None
        self.time_s = time()
        now = perf_counter_ns()
        self.rss = rss_bytes(now) if options.cpu else 0
        self.span = source.begin(in_context)
        self.duration_ns = -perf_counter_ns()

    def end(self, error: BaseException | None) -> Raw:
        """The measurement as a tuple for `fields_of`. To be called once."""
        now = perf_counter_ns()
        raw = self.span.end()
        return (
            raw, self.name, self.duration_ns + now, self.time_s, None, self.rss,
            rss_bytes(now) if self.options.cpu else 0, None if error is None else type(error).__name__, self.stack,
            self.options.counts,
        )  # fmt: skip


class SegmentedMeasurement(Measurement):
    """Of a generator or coroutine: only the time and memory between resume and suspend. It begins suspended."""

    __slots__ = ()

    def __init__(self, name: str, source: Source, options: Options) -> None:
        self.name = name
        self.source = source
        self.options = options
        self.stack = user_stack() if options.stacks else None
        self.time_s = time()
        self.rss = rss_bytes(perf_counter_ns()) if options.cpu else 0
        self.span = SegmentedSpan(source)
        self.duration_ns = 0

    def resume(self) -> None:
        self.span.resume()
        self.duration_ns -= perf_counter_ns()

    def suspend(self) -> None:
        self.duration_ns += perf_counter_ns()
        self.span.suspend()

    def end(self, error: BaseException | None) -> Raw:
        raw = self.span.end()
        end_rss = rss_bytes(perf_counter_ns()) if self.options.cpu else 0
        return (
            raw, self.name, self.duration_ns, self.time_s, time(), self.rss, end_rss,
            None if error is None else type(error).__name__, self.stack, self.options.counts,
        )  # fmt: skip


def fields_of(ended: Raw, source: Source) -> dict[str, Any]:
    """The fields of the ProfileResult of a measurement that ended."""
    raw, name, duration_ns, time_s, end_time_s, rss, end_rss, error, stack, counts = ended
    figures = figures_of(source, raw)
    device, basis, own = source.device, source.basis, figures.own
    if end_time_s is None:
        end_time_s = time_s + duration_ns / 1e9
    before = snapshot_of(figures.before, time_s, device, basis, rss, name, stack)
    after = snapshot_of(figures.after, end_time_s, device, basis, end_rss, name, stack)
    # At the peak only the allocated bytes are known. Of the rest the higher of before and after was reached, and it is
    # never less than what is allocated.
    peak = snapshot_of(figures.after, end_time_s, device, basis, max(rss, end_rss), name, stack)
    peak.allocated_memory = figures.peak_bytes
    peak.max_memory_allocated = max(peak.max_memory_allocated, figures.peak_bytes)
    peak.reserved_memory = max(before.reserved_memory, after.reserved_memory, figures.peak_bytes)
    peak.max_memory_reserved = max(peak.max_memory_reserved, peak.reserved_memory)
    peak.active_memory = max(before.active_memory, after.active_memory, figures.peak_bytes)
    peak.inactive_memory = max(peak.reserved_memory - peak.active_memory, 0)
    return {
        "function_name": name,
        "execution_time": duration_ns / 1e9,
        "memory_before": before,
        "memory_after": after,
        "memory_peak": peak,
        "memory_allocated": figures.allocated_bytes,
        "memory_freed": figures.freed_bytes,
        "tensors_created": figures.created if counts else None,
        "tensors_deleted": figures.deleted if counts else None,
        "call_count": 1,
        "basis": basis,
        "basis_reason": figures.basis_reason,
        "peak_is_exact": figures.peak_is_exact,
        "own_peak_bytes": own and own.peak_bytes,
        "own_allocated_bytes": own and own.alloc_bytes,
        "own_freed_bytes": own and own.free_bytes,
        "own_tensors_created": own and own.alloc_count,
        "own_tensors_deleted": own and own.free_count,
        "error": error,
    }
