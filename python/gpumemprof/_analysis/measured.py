"""Measurements in one form for every analysis and plot: calls, and a series of memory over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

# The columns of a series in the order in which they are drawn, with the words for them.
COLUMN_WORDS = {
    "interval_peak": "highest since the previous sample",
    "allocated": "allocated",
    "reserved": "reserved by the allocator",
    "device_used": "device used, all processes",
}
BASIS_WORDS = {
    "exact": "exact, from allocator events",
    "framework": "from the framework's counters",
    "host": "from /proc: tensors and all other memory of the process",
}


@dataclass(frozen=True)
class Call:
    """One profiled call. Bytes are the device's, times are seconds since 1970; None: not known."""

    name: str
    start_s: float
    end_s: float
    duration_s: float  # the time that it ran: of a generator or coroutine less than from start to end
    before_bytes: int | None
    after_bytes: int | None
    peak_bytes: int | None  # the highest while the call ran
    allocated_bytes: int | None = None
    freed_bytes: int | None = None
    tensors_created: int | None = None
    tensors_deleted: int | None = None
    basis: str | None = None
    peak_is_exact: bool = True  # else `peak_bytes` is a lower bound

    @property
    def kept_bytes(self) -> int | None:
        """After less before; negative where the call gave back what others held."""
        if self.before_bytes is None or self.after_bytes is None:
            return None
        return self.after_bytes - self.before_bytes

    @property
    def peak_over_start_bytes(self) -> int | None:
        if self.peak_bytes is None or self.before_bytes is None:
            return None
        return max(0, self.peak_bytes - self.before_bytes)


@dataclass(frozen=True)
class Function:
    """All calls of one name; exact also where the list of calls is no longer complete."""

    name: str
    call_count: int
    total_time_s: float
    peak_bytes: int | None
    allocated_bytes: int | None
    peak_over_start_bytes: int | None = None  # of the call that needed most


@dataclass(frozen=True)
class Series:
    """Columns of one table, in the order of time. A cell is None where the source did not know it."""

    times_s: tuple[float, ...] = ()
    columns: dict[str, tuple[float | None, ...]] = field(default_factory=dict)

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[float, dict[str, float | None]]]) -> Series:
        """Rows in any order; a column that is None everywhere is left out."""
        ordered = sorted(rows, key=lambda row: row[0])
        names = {name for _, cells in ordered for name, value in cells.items() if value is not None}
        columns = {name: tuple(cells.get(name) for _, cells in ordered) for name in sorted(names)}
        return cls(tuple(time for time, _ in ordered), columns)

    def known(self, column: str) -> tuple[list[float], list[float]]:
        """Times and values of one column without the cells that are not known; both empty without the column."""
        pairs = [(t, v) for t, v in zip(self.times_s, self.columns.get(column, ())) if v is not None]
        return [t for t, _ in pairs], [v for _, v in pairs]

    def __len__(self) -> int:
        return len(self.times_s)


@dataclass(frozen=True)
class Measured:
    """What one source holds. `unknown` says why there is nothing in it, where there is nothing."""

    calls: tuple[Call, ...] = ()
    functions: dict[str, Function] = field(default_factory=dict)
    series: Series = field(default_factory=Series)
    events: tuple[dict[str, Any], ...] = ()  # telemetry, as records
    limit_bytes: float | None = None
    device: str = ""
    device_id: int | None = None  # where it was measured in this process: only that device may be asked again
    basis: str | None = None
    basis_reason: str = ""
    sampled: bool = False  # a series of samples that a clock took; else one point a call, or all of it
    findings: tuple[dict[str, Any], ...] = ()  # that the source brought with it: those of a recording
    patterns: tuple[dict[str, Any], ...] = ()  # likewise, as the core found them in every event
    score_parts: tuple[dict[str, Any], ...] = ()  # likewise; empty if none were requested
    unknown: str = ""
    dropped_calls: int = 0

    @property
    def empty(self) -> bool:
        return not self.calls and not self.functions and not len(self.series)

    def kept_by(self, function: str) -> int | None:
        """What the calls of a function kept, all together, of those for which it is known."""
        kept = [call.kept_bytes for call in self.calls if call.name == function]
        known = [one for one in kept if one is not None]
        return sum(known) if known else None

    def basis_words(self) -> str:
        """Where the numbers come from, for a title; empty where the source does not say."""
        return BASIS_WORDS.get(self.basis or "", "")

    def memory_words(self) -> str:
        """What a title calls it: `memory of cuda:0`, `resident memory of the process`, or `memory`."""
        if self.basis == "host":
            return "resident memory of the process"
        return f"memory of {self.device}" if self.device else "memory"


def functions_of(calls: Sequence[Call]) -> dict[str, Function]:
    """Totals by name, in the order of the first call."""
    totals: dict[str, Function] = {}
    for call in calls:
        before = totals.get(call.name, Function(call.name, 0, 0.0, None, None))
        totals[call.name] = Function(
            call.name,
            before.call_count + 1,
            before.total_time_s + call.duration_s,
            highest(before.peak_bytes, call.peak_bytes),
            total(before.allocated_bytes, call.allocated_bytes),
            highest(before.peak_over_start_bytes, call.peak_over_start_bytes),
        )
    return totals


def highest(a: int | None, b: int | None) -> int | None:
    """The higher of those that are known."""
    known = [value for value in (a, b) if value is not None]
    return max(known, default=None)


def total(a: int | None, b: int | None) -> int | None:
    """The sum of those that are known."""
    known = [value for value in (a, b) if value is not None]
    return sum(known) if known else None
