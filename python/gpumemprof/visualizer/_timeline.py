"""Memory over time, drawn by matplotlib."""

from __future__ import annotations

from typing import Any

from .._analysis.measured import COLUMN_WORDS, Call, Measured
from ._style import (
    CALL_COLOURS,
    COLUMN_COLOURS,
    COLUMN_DASHES,
    GREY,
    INK,
    RED,
    byte_axis,
    capital,
    column_words,
    new_figure,
    peak_of,
    peak_words,
    plain,
    start_of,
    tidy,
    title,
)

MOST_LANES = 8


def draw(measured: Measured, size: tuple[float, float]) -> Any:
    """Lines of the columns, a block as high as its peak for every call, a lane for every function below."""
    lanes = lanes_of(measured)
    ratios = [4.0, max(0.6, 0.28 * len(lanes))] if lanes else [1.0]
    figure, axes = new_figure(size, nrows=len(ratios), sharex=True, squeeze=False, height_ratios=ratios)
    main, start_s = axes[0][0], start_of(measured)
    highest = _draw_columns(main, measured, start_s)
    highest = max(highest, _draw_calls(main, measured, start_s))
    peak = peak_of(measured)
    if peak is not None:
        _mark_peak(main, peak, start_s)
    main.set_ylim(0, max(highest, 1.0) * 1.16)
    byte_axis(main.yaxis, max(highest, 1.0))
    tidy(main)
    if len(measured.series.columns) > 1:
        main.legend(
            loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, fontsize=9, borderaxespad=0.2
        )
    if lanes:
        _draw_lanes(axes[1][0], measured, lanes, start_s)
    axes[-1][0].set_xlabel("seconds since the first sample", color=INK)
    title(figure, f"{capital(measured.memory_words())} over time", measured)
    return figure


def lanes_of(measured: Measured) -> list[str]:
    """Functions that get a lane: those that took the most time, in the order of their first call."""
    names = list(dict.fromkeys(call.name for call in measured.calls))
    times = {name: measured.functions[name].total_time_s for name in names}
    kept = set(sorted(names, key=lambda name: -times[name])[:MOST_LANES])
    return [name for name in names if name in kept]


def _draw_columns(axes: Any, measured: Measured, start_s: float) -> float:
    highest = 0.0
    for column in COLUMN_WORDS:
        times, values = measured.series.known(column)
        if not values:
            continue
        highest = max(highest, *values)
        shown = [time - start_s for time in times]
        # Memory stays where it is until somebody allocates: a step, not a slope. The peak of an interval is told by
        # the sample that ends it; where not all are known, a line would cover intervals of which nothing is known.
        style: dict[str, Any] = {
            "color": COLUMN_COLOURS[column],
            "linestyle": COLUMN_DASHES[column],
            "linewidth": 1.6,
        }
        style["drawstyle"] = "steps-pre" if column == "interval_peak" else "steps-post"
        if column == "interval_peak" and len(values) < len(measured.series) - 1:
            style.update(linestyle="none", marker="^", markersize=4)
        axes.plot(shown, values, label=column_words(measured, column), gid=column, **style)
        if column == "allocated":
            axes.fill_between(shown, values, step="post", color=COLUMN_COLOURS[column], alpha=0.12, linewidth=0)
    return highest


def _draw_calls(axes: Any, measured: Measured, start_s: float) -> float:
    highest = 0.0
    blocks = []
    for call in measured.calls:
        if call.peak_bytes is None:
            continue
        highest = max(highest, float(call.peak_bytes))
        blocks.append(_block(call, start_s))
    if blocks:
        from matplotlib.collections import PolyCollection

        axes.add_collection(PolyCollection(blocks, facecolor=COLUMN_COLOURS["allocated"], alpha=0.18, gid="calls"))
        axes.autoscale_view()
    return highest


def _block(call: Call, start_s: float) -> list[tuple[float, float]]:
    left, right, top = call.start_s - start_s, call.end_s - start_s, float(call.peak_bytes or 0)
    return [(left, 0.0), (left, top), (right, top), (right, 0.0)]


def _mark_peak(axes: Any, peak: tuple[float, float, bool], start_s: float) -> None:
    time_s, height = peak[0] - start_s, peak[1]
    axes.plot([time_s], [height], "o", color=RED, markersize=6, zorder=5, gid="peak")
    left, right = axes.get_xlim()
    near_right = time_s > left + 0.7 * (right - left)
    axes.annotate(
        peak_words(peak, start_s), (time_s, height), xytext=(-8 if near_right else 8, 7), textcoords="offset points",
        ha="right" if near_right else "left", color=RED, fontweight="bold", fontsize=9, zorder=6,
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5},
    )  # fmt: skip


def _draw_lanes(axes: Any, measured: Measured, lanes: list[str], start_s: float) -> None:
    left, right = min(c.start_s for c in measured.calls), max(c.end_s for c in measured.calls)
    least = (right - left) / 600  # what would be thinner than a pixel is still to be seen
    for lane, name in enumerate(lanes):
        spans = [(c.start_s - start_s, max(least, c.end_s - c.start_s)) for c in measured.calls if c.name == name]
        axes.broken_barh(spans, (lane - 0.36, 0.72), color=CALL_COLOURS[lane % len(CALL_COLOURS)])
    axes.set_yticks(range(len(lanes)), [plain(name) for name in lanes], fontsize=8)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    tidy(axes, "x")
    axes.set_ylabel("calls", color=GREY, fontsize=8)
