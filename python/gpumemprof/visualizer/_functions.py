"""Functions beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._analysis.measured import Measured
from .._core.printed import format_size
from ._style import BLUE, FAINT, INK, NO_DATA, byte_axis, new_figure, plain, tidy, title

MOST_FUNCTIONS = 20
METRICS = {
    "peak_memory": "Peak memory of functions, in brackets over the start of the call",
    "memory_allocated": "Memory that functions allocated, all calls together",
    "memory_kept": "Memory that functions left behind, all calls together",
    "execution_time": "Time that functions took, all calls together",
    "call_count": "Calls of functions",
}


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    label: str
    over_start: float | None = None  # of a peak: what was not there before


def rows_of(measured: Measured, metric: str) -> list[Row]:
    """Highest first, 20 at most. ValueError for an unknown metric, or where no function knows it."""
    if metric not in METRICS:
        raise ValueError(f"Unknown metric: {metric} ({', '.join(METRICS)})")
    rows = []
    for function in measured.functions.values():
        value: float | None = {
            "peak_memory": function.peak_bytes,
            "memory_allocated": function.allocated_bytes,
            "memory_kept": measured.kept_by(function.name),
            "execution_time": function.total_time_s,
            "call_count": function.call_count,
        }[metric]
        if value is not None:
            over_start = function.peak_over_start_bytes if metric == "peak_memory" else None
            label = _label(metric, value) + (f" (+{format_size(over_start)})" if over_start is not None else "")
            rows.append(Row(function.name, float(value), label, over_start))
    if not rows:
        raise ValueError(f"{NO_DATA}: {measured.unknown or f'no function with a {metric}'}")
    return sorted(rows, key=lambda row: (-row.value, row.name))[:MOST_FUNCTIONS]


def _label(metric: str, value: float) -> str:
    if metric == "execution_time":
        return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"
    return f"{value:.0f}" if metric == "call_count" else format_size(value)


def heading(measured: Measured, rows: list[Row], metric: str) -> str:
    left_out = len(measured.functions) - len(rows)
    return METRICS[metric] + (f", the highest {len(rows)} of {len(measured.functions)}" if left_out > 0 else "")


def draw(measured: Measured, rows: list[Row], metric: str, size: tuple[float, float]) -> Any:
    """Bars that lie, so that long names can be read, each with its value at its end."""
    figure, axes = new_figure((size[0], max(2.2, 1.2 + 0.34 * len(rows))))
    bars = axes.barh(range(len(rows)), [row.value for row in rows], color=BLUE, height=0.7)
    # What was there before is pale: of bars that are alike the end tells.
    before = [row.value - row.over_start if row.over_start is not None else 0.0 for row in rows]
    if any(before):
        axes.barh(range(len(rows)), before, color=FAINT, height=0.7)
    axes.bar_label(bars, [row.label for row in rows], padding=4, fontsize=9, color=INK)
    axes.set_yticks(range(len(rows)), [plain(row.name) for row in rows])
    axes.invert_yaxis()
    highest, lowest = max(max(row.value for row in rows), 0.0), min(min(row.value for row in rows), 0.0)
    axes.set_xlim(lowest * 1.15, highest * 1.15 if highest > 0 else 1.0)
    if metric in ("peak_memory", "memory_allocated", "memory_kept") and lowest == 0:
        byte_axis(axes.xaxis, max(highest, 1.0))
    else:
        axes.set_xticks([])
    tidy(axes, "x")
    title(figure, heading(measured, rows, metric), measured)
    return figure
