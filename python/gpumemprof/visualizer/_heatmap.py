"""Memory as colour: functions over time, or without functions the kinds of memory over time."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isnan, nan
from typing import Any

from .._analysis.measured import COLUMN_WORDS, Measured
from .._core.columns import side_by_side
from ._functions import MOST_FUNCTIONS
from ._style import (
    HEAT,
    byte_labels,
    byte_ticks,
    capital,
    column_words,
    end_of,
    new_figure,
    plain,
    start_of,
    title,
)

MOST_SLICES = 60

Span = tuple[str, float, float, float]  # name, begin, end, bytes


@dataclass(frozen=True)
class Grid:
    """`cells[row][column]` in bytes, the highest of that time; nan where nothing was measured then."""

    rows: list[str]
    edges_s: list[float]  # one more than columns, since the first sample
    cells: list[list[float]]


def grid_of(measured: Measured) -> Grid:
    """Equal slices of time. A call counts in every slice that it touches: at what height, its peak tells, not when."""
    start_s = start_of(measured)
    duration_s = max(end_of(measured) - start_s, 1e-9)
    slices = min(MOST_SLICES, max(1, 2 * max(len(measured.calls), len(measured.series))))
    spans = _calls_as_spans(measured) or _samples_as_spans(measured)
    peaks: dict[str, float] = {}
    for name, _, _, height in spans:
        peaks[name] = max(peaks.get(name, 0.0), height)
    names = sorted(peaks, key=lambda name: -peaks[name])[:MOST_FUNCTIONS]
    cells = {name: [nan] * slices for name in names}
    for name, begin, end, height in spans:
        if name not in cells:
            continue
        row = cells[name]
        first, last = ((time_s - start_s) / duration_s * slices for time_s in (begin, end))
        # A span that ends where a slice begins does not touch it.
        for place in range(min(int(first), slices - 1), min(max(int(first), ceil(last) - 1), slices - 1) + 1):
            row[place] = height if isnan(row[place]) else max(row[place], height)
    return Grid(names, [i * duration_s / slices for i in range(slices + 1)], [cells[name] for name in names])


def _calls_as_spans(measured: Measured) -> list[Span]:
    return [(c.name, c.start_s, c.end_s, float(c.peak_bytes)) for c in measured.calls if c.peak_bytes is not None]


def _samples_as_spans(measured: Measured) -> list[Span]:
    """A sample holds until the next one: that is the best that is known of the time between."""
    spans: list[Span] = []
    for column in COLUMN_WORDS:
        times, values = measured.series.known(column)
        words = column_words(measured, column)
        spans += [(words, t, after, v) for t, after, v in side_by_side(times, [*times[1:], *times[-1:]], values)]
    return spans


def draw(measured: Measured, size: tuple[float, float]) -> Any:
    grid = grid_of(measured)
    figure, axes = new_figure((size[0], max(2.4, 1.5 + 0.36 * len(grid.rows))))
    highest = max((cell for row in grid.cells for cell in row if not isnan(cell)), default=1.0)
    edges = [i - 0.5 for i in range(len(grid.rows) + 1)]
    mesh = axes.pcolormesh(
        grid.edges_s, edges, grid.cells, cmap=HEAT, vmin=0, vmax=max(highest, 1.0), edgecolors="none"
    )
    axes.set_yticks(range(len(grid.rows)), [plain(name) for name in grid.rows])
    axes.set_ylim(len(grid.rows) - 0.5, -0.5)
    axes.set_facecolor("#F3F4F6")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xlabel("seconds since the first sample")
    ticks = [tick for tick in byte_ticks(max(highest, 1.0)) if tick <= highest * 1.001]
    bar = figure.colorbar(mesh, ax=axes, ticks=ticks, pad=0.02, aspect=25)
    bar.ax.set_yticklabels(byte_labels(ticks, max(highest, 1.0)))
    bar.outline.set_visible(False)
    what = "Peak memory of functions over time" if measured.calls else f"{capital(measured.memory_words())} over time"
    title(figure, what, measured)
    return figure
