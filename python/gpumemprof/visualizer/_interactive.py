"""The same pictures by plotly, to be zoomed and asked."""

from __future__ import annotations

from typing import Any

from .._analysis.measured import COLUMN_WORDS, Call, Measured, format_size
from ._functions import Row, heading, rows_of
from ._heatmap import grid_of
from ._style import (
    BLUE,
    COLUMN_COLOURS,
    FAINT,
    INK,
    RED,
    byte_labels,
    byte_ticks,
    capital,
    column_words,
    end_of,
    peak_of,
    peak_words,
    require,
    markup,
    start_of,
    subtitle,
)

MOST_POINTS = 4000
MOST_CALLS = 1000
_DASHES = {"interval_peak": "solid", "allocated": "solid", "reserved": "dash", "device_used": "dot"}


def timeline(measured: Measured) -> Any:
    """Memory over time; hover tells the bytes."""
    figure = _new()
    start_s = start_of(measured)
    highest = 1.0
    for column in COLUMN_WORDS:
        times, values = thinned(*measured.series.known(column))
        if not values:
            continue
        highest = max(highest, *values)
        figure.add_scatter(
            x=[t - start_s for t in times],
            y=values,
            name=column_words(measured, column),
            text=[format_size(v) for v in values],
            line={
                "color": COLUMN_COLOURS[column],
                "dash": _DASHES[column],
                "shape": "vh" if column == "interval_peak" else "hv",
                "width": 2,
            },
            mode="markers" if column == "interval_peak" and len(values) < len(measured.series) - 1 else "lines",
            fill="tozeroy" if column == "allocated" else None,
            fillcolor="rgba(0,114,178,0.12)",
            hovertemplate="%{text} at %{x:.3f} s<extra></extra>",
        )
    shown, calls_words = _shown_calls(measured)
    xs, ys, texts = _call_blocks(shown, start_s)
    if xs:
        figure.add_scatter(
            x=xs,
            y=ys,
            text=texts,
            name=calls_words,
            mode="lines",
            fill="toself",
            line={"color": COLUMN_COLOURS["allocated"], "width": 0.5},
            fillcolor="rgba(0,114,178,0.20)",
            hoveron="points",
            hovertemplate="%{text}<extra></extra>",
        )
    peak = peak_of(measured)
    if peak is not None:
        highest = max(highest, peak[1])
        share = (peak[0] - start_s) / max(end_of(measured) - start_s, 1e-9)
        side = "right" if share < 0.3 else "left" if share > 0.7 else "center"
        figure.add_scatter(
            x=[peak[0] - start_s], y=[peak[1]], name="peak", mode="markers+text", marker={"color": RED, "size": 9},
            text=[peak_words(peak, start_s)], textposition=f"top {side}", textfont={"color": RED},
            hovertemplate="%{text}<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(**_byte_axis(highest), range=[0, highest * 1.15])
    figure.update_xaxes(title="seconds since the first sample", rangemode="tozero")
    return _titled(figure, f"{capital(measured.memory_words())} over time", measured)


def functions(measured: Measured, rows: list[Row], metric: str) -> Any:
    """Bars, the highest on top; a click on one is what the dashboard drills down by."""
    figure = _new()
    figure.add_bar(
        y=list(range(len(rows))), x=[row.value for row in rows], text=[row.label for row in rows],
        customdata=[row.name for row in rows], orientation="h", marker={"color": BLUE}, textposition="outside",
        cliponaxis=False, hovertext=[f"{markup(row.name)}: {row.label}" for row in rows],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    highest = max(1.0, *(row.value for row in rows))
    if metric in ("execution_time", "call_count"):
        figure.update_xaxes(showticklabels=False)
    else:
        figure.update_xaxes(**_byte_axis(highest))
    figure.update_xaxes(range=[min(0.0, *(row.value * 1.15 for row in rows)), highest * 1.2])
    figure.update_yaxes(**_name_axis([row.name for row in rows]))
    return _titled(figure, heading(measured, rows, metric), measured)


def heatmap(measured: Measured) -> Any:
    grid = grid_of(measured)
    known = [cell for row in grid.cells for cell in row if cell == cell]
    highest = max(known, default=1.0) or 1.0
    ticks = byte_ticks(highest)
    figure = _new()
    cells = [[cell if cell == cell else None for cell in row] for row in grid.cells]
    words = [[f"{markup(name)}: {format_size(cell)}" if cell is not None else "" for cell in row]
             for name, row in zip(grid.rows, cells, strict=True)]  # fmt: skip
    middles = [(a + b) / 2 for a, b in zip(grid.edges_s, grid.edges_s[1:], strict=False)]
    figure.add_heatmap(
        x=middles,
        y=list(range(len(grid.rows))),
        z=cells,
        text=words,
        colorscale="Cividis",
        zmin=0,
        zmax=highest,
        colorbar={"tickvals": ticks, "ticktext": byte_labels(ticks, highest), "outlinewidth": 0},
        hovertemplate="%{text} at %{x:.3f} s<extra></extra>",
        hoverongaps=False,
    )
    figure.update_xaxes(title="seconds since the first sample")
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(**_name_axis(grid.rows))
    what = "Peak memory of functions over time" if measured.calls else f"{capital(measured.memory_words())} over time"
    return _titled(figure, what, measured)


def time_against_memory(measured: Measured) -> Any:
    """A dot a call."""
    figure = _new()
    calls = _shown_calls(measured)[0]
    highest = max((float(call.peak_bytes or 0) for call in calls), default=1.0)
    figure.add_scatter(
        x=[call.duration_s for call in calls], y=[call.peak_bytes for call in calls], mode="markers", name="calls",
        marker={"color": BLUE, "size": 7, "opacity": 0.6}, text=[markup(call.name) for call in calls],
        hovertemplate="%{text}: %{x:.4g} s<extra></extra>",
    )  # fmt: skip
    figure.update_yaxes(**_byte_axis(highest), rangemode="tozero")
    figure.update_xaxes(title="seconds a call", rangemode="tozero")
    return _titled(figure, "Peak memory against time, a dot a call", measured)


def dashboard(measured: Measured) -> Any:
    """Timeline, functions, dots, heatmap; what the source has no data for stays away."""
    pictures = [("Memory over time", timeline(measured))]
    if any(function.peak_bytes is not None for function in measured.functions.values()):
        pictures.append(
            ("Peak memory of functions", functions(measured, rows_of(measured, "peak_memory"), "peak_memory"))
        )
    if measured.calls:
        pictures.append(("Peak memory against time, a dot a call", time_against_memory(measured)))
    pictures.append(("Memory as colour", heatmap(measured)))
    rows = -(-len(pictures) // 2)
    make_subplots = require("plotly.subplots").make_subplots
    figure = make_subplots(
        rows=rows,
        cols=2,
        subplot_titles=[name for name, _ in pictures],
        vertical_spacing=0.14,
        horizontal_spacing=0.24 if measured.functions else 0.12,
    )  # room for names of functions
    for place, (_, picture) in enumerate(pictures):
        row, column = place // 2 + 1, place % 2 + 1
        for trace in picture.data:
            if trace.type == "heatmap":
                trace.colorbar.update(len=0.9 / rows, y=1 - (row - 0.5) / rows)
            trace.showlegend = False
            figure.add_trace(trace, row=row, col=column)
        for axis in ("xaxis", "yaxis"):
            settings = picture.layout[axis].to_plotly_json()
            settings.pop("anchor", None), settings.pop("domain", None)
            getattr(figure, f"update_{axis[0]}axes")(row=row, col=column, **settings)
    figure.update_layout(template="plotly_white", height=420 * rows)
    return _titled(figure, f"Dashboard: {measured.memory_words()}", measured)


def _new() -> Any:
    figure = require("plotly.graph_objects").Figure()
    figure.update_layout(template="plotly_white", margin={"t": 76, "r": 24}, legend={"orientation": "h", "y": -0.2})
    return figure


def _titled(figure: Any, what: str, measured: Measured) -> Any:
    text = f"<b>{what}</b><br><sup>{subtitle(measured)}</sup>"
    figure.update_layout(title={"text": text, "x": 0.01, "xanchor": "left"}, font={"color": INK})
    figure.update_xaxes(gridcolor=FAINT)
    figure.update_yaxes(gridcolor=FAINT)
    return figure


def _name_axis(names: list[str]) -> dict[str, Any]:
    """By place, not by category: two names may be the same where they are cut short."""
    labels = [markup(name) for name in names]
    return {"tickvals": list(range(len(names))), "ticktext": labels, "range": [len(names) - 0.5, -0.5],
            "automargin": True, "showgrid": False, "zeroline": False}  # fmt: skip


def _byte_axis(highest_bytes: float) -> dict[str, Any]:
    ticks = byte_ticks(highest_bytes)
    return {"tickvals": ticks, "ticktext": byte_labels(ticks, highest_bytes)}


def thinned(times: list[float], values: list[float]) -> tuple[list[float], list[float]]:
    """As they are, or the lowest and highest of equal groups: a page that is sent every second must stay small, and
    no peak may be lost."""
    group = -(-2 * len(values) // MOST_POINTS)
    if group <= 1:
        return times, values
    kept: list[int] = []
    for start in range(0, len(values), group):
        places = range(start, min(start + group, len(values)))
        kept += sorted({min(places, key=values.__getitem__), max(places, key=values.__getitem__)})
    return [times[i] for i in kept], [values[i] for i in kept]


def _shown_calls(measured: Measured) -> tuple[list[Call], str]:
    """The calls with the highest peaks, in the order of time, and the legend's words."""
    calls = [call for call in measured.calls if call.peak_bytes is not None]
    words = "calls, as high as their peak"
    if len(calls) > MOST_CALLS:
        words = f"the highest {MOST_CALLS} of {len(calls)} {words}"
        highest = sorted(calls, key=lambda call: -(call.peak_bytes or 0))[:MOST_CALLS]
        calls = sorted(highest, key=lambda call: call.start_s)
    return calls, words


def _call_blocks(
    calls: list[Call], start_s: float
) -> tuple[list[float | None], list[float | None], list[str | None]]:
    """One trace for all calls: a trace a call would make a page of a thousand calls unusable."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    texts: list[str | None] = []
    for call in calls:
        left, right, top = call.start_s - start_s, call.end_s - start_s, float(call.peak_bytes or 0)
        xs += [left, left, right, right, None]
        ys += [0.0, top, top, 0.0, None]
        texts += [f"{markup(call.name)}: {format_size(top)}"] * 4 + [None]
    return xs, ys, texts
