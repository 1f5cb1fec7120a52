"""A call or block while it is measured, and the values for its result."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter_ns, time
from types import FrameType
from typing import Any, NamedTuple

from .._counting.host_source import rss_bytes
from .._counting.spans import Raw, SegmentedSpan, Source

# This package and its sister, which has the words of TensorFlow for the same things.
_PACKAGES = tuple(f"{Path(__file__).parents[2] / name}/" for name in ("gpumemprof", "tfmemprof"))
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

    __slots__ = ("name", "source", "span", "options", "time_s", "rss", "duration_ns", "stack", "in_context")

    span: Any

    def __init__(self, name: str, source: Source, options: Options, in_context: bool = False) -> None:
        self.name = name
        self.source = source
        self.options = options
        self.in_context = in_context
        self.stack = user_stack() if options.stacks else None
        self.time_s = time()
        now = perf_counter_ns()
        self.rss = rss_bytes(now) if options.cpu else 0
        self.span = source.begin(in_context)
        self.duration_ns = -perf_counter_ns()

    def end(self, error: BaseException | None) -> Raw:
        """The measurement as a tuple for `ProfileResult.of`. To be called once."""
        now = perf_counter_ns()
        raw = self.span.end()
        return (
            raw, self.name, self.duration_ns + now, self.time_s, None, self.rss,
            rss_bytes(now) if self.options.cpu else 0, None if error is None else type(error).__name__, self.stack,
            self.options.counts, self.in_context,
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
            None if error is None else type(error).__name__, self.stack, self.options.counts, False,
        )  # fmt: skip
