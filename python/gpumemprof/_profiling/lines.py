"""Memory per source line, on the CPU and on a GPU: what each line added, and its peak.

    from gpumemprof import profile_lines

    @profile_lines
    def step(): ...

or `python -m gpumemprof.lines SCRIPT [ARG...]`, which reports the functions that the script marks with `@profile` or
`@profile_lines`. The sources of figures are the usual ones: exact under `gpumemprof run` and after attach().
"""

from __future__ import annotations

import atexit
import functools
import inspect
import linecache
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, TextIO, TypeVar, overload

from .._counting.counters import Source, figures_of, source_for
from .._counting.devices import CPU, resolve_device
from .line_tracer import LineTracer

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class LineFigures:
    """The figures of a line on one device, over all executions, in bytes."""

    change_bytes: int = 0
    allocated_bytes: int = 0
    peak_rise_bytes: int = 0
    peak_is_exact: bool = True


@dataclass
class LineRecord:
    """One line. `hits` counts its executions; `devices` has the figures by device name."""

    number: int
    hits: int = 0
    devices: dict[str, LineFigures] = field(default_factory=dict)


@dataclass
class FunctionLines:
    """A function: its lines by number, the source of its figures by device name; by source why they are not exact."""

    name: str
    filename: str
    first_line: int
    lines: dict[int, LineRecord] = field(default_factory=dict)
    basis: dict[str, str] = field(default_factory=dict)
    why_inexact: dict[str, str] = field(default_factory=dict)


class LineProfiler:
    """Measures the given functions line by line. A generator's or coroutine's lines count only while they run:
    allocations while it is suspended do not count, and a line that suspends is one hit."""

    def __init__(self, device: Any = None) -> None:
        where = resolve_device(device)
        self._devices = [CPU] if where.is_cpu else [CPU, where]
        self.functions: dict[CodeType, FunctionLines] = {}
        self._tracer = LineTracer(self)

    def __call__(self, function: F) -> F:
        """The function, measured from now on whenever it runs. Its code is not changed."""
        target = inspect.unwrap(function)
        code = getattr(target, "__code__", None)
        if code is None:
            raise TypeError(f"{function!r} has no lines: it is not a Python function")
        self.functions[code] = FunctionLines(target.__qualname__, code.co_filename, code.co_firstlineno)
        self._tracer.add(code)
        return function

    def sources(self) -> list[Source]:
        """The sources of figures. Called at every call of a function, because the probe may have been attached since.
        """
        return [source_for(device) for device in self._devices]

    def record(self, code: CodeType, line: int, sources: list[Source], spans: list[Any], hits: int) -> None:
        """A line ended: its spans, one a source. `hits`: 0 if it is the rest of a line that had been suspended."""
        function = self.functions[code]
        record = function.lines.setdefault(line, LineRecord(line))
        record.hits += hits
        for source, span in zip(sources, spans):
            figures = figures_of(source, span.end())
            name = str(source.device)
            function.basis[name] = source.basis
            if source.basis != "exact":
                function.why_inexact[source.basis] = source.basis_reason
            sums = record.devices.setdefault(name, LineFigures())
            sums.change_bytes += figures.after.allocated_bytes - figures.before.allocated_bytes
            sums.allocated_bytes += figures.allocated_bytes
            sums.peak_rise_bytes = max(sums.peak_rise_bytes, figures.peak_bytes - figures.before.allocated_bytes)
            sums.peak_is_exact &= figures.peak_is_exact

    def report(self) -> str:
        """The functions with their source, one row per line; empty if none was called."""
        from .line_report import report

        return report([f for f in self.functions.values() if f.lines])

    def print_report(self, stream: TextIO | None = None) -> None:
        """Prints the report to `stream`, by default stdout."""
        print(self.report(), end="", file=stream or sys.stdout)

    def stop(self) -> None:
        """Ends measuring; the figures remain."""
        self._tracer.remove()


@overload
def profile_lines(function: F, /) -> F: ...
@overload
def profile_lines(
    function: None = None, /, *, device: Any = None, stream: TextIO | None = None, report: bool = True
) -> Callable[[F], F]: ...
def profile_lines(
    function: Any = None, /, *, device: Any = None, stream: TextIO | None = None, report: bool = True
) -> Any:
    """Decorator that measures every line of the function and prints the report when the program ends.

    `function.lines` is the LineProfiler. With `report=False` nothing is printed; `stream` is the output, by default
    stdout. Each line costs some microseconds. From Python 3.12 on, functions that it calls run at full speed. Before,
    until `function.lines.stop()`, every call of a Python function in a traced thread costs a fraction of a microsecond
    more.
    """
    if function is None:
        return functools.partial(profile_lines, device=device, stream=stream, report=report)
    profiler = _script_profiler or LineProfiler(device)
    profiler(function)
    try:
        function.lines = profiler
    except AttributeError:  # a bound method takes no attribute
        pass
    if report and _script_profiler is None:
        atexit.register(profiler.print_report, stream)
    return function


# Of `python -m gpumemprof.lines`: one report of all functions.
_script_profiler: LineProfiler | None = None


def run_script(argv: list[str]) -> int:
    """Runs a script as Python would, with `profile` as a builtin, prints the report and returns the script's exit code.

    Returns 2 if there is no such script.
    """
    global _script_profiler
    if not argv or not Path(argv[0]).is_file():
        missing = f"{argv[0]}: no such script" if argv else "usage: python -m gpumemprof.lines SCRIPT [ARG...]"
        print(f"gpumemprof: {missing}", file=sys.stderr)
        return 2
    import builtins

    profiler = _script_profiler = LineProfiler()
    builtins.profile = profiler  # type: ignore[attr-defined]
    sys.argv = argv
    sys.path[0] = str(Path(argv[0]).resolve().parent)
    try:
        runpy.run_path(argv[0], run_name="__main__")
    finally:
        profiler.stop()
        text = profiler.report()
        print(text or "gpumemprof: no function marked with @profile or @profile_lines ran\n", end="", flush=True)
        linecache.clearcache()
    return 0
