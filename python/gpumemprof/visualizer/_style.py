"""Shared by all plots: colours, axes in bytes, and the libraries, imported when they are first needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from math import ceil, log2
from typing import Any

from .._analysis.measured import COLUMN_WORDS, Measured
from .._core.needed import needed
from .._core.printed import format_size

NO_DATA = "No data available for plotting"

# Okabe and Ito's colours, which people with any common colour blindness tell apart; and each line has a dash of its
# own.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#6B7280",
)  # fmt: skip
COLUMN_COLOURS = {"interval_peak": SKY, "allocated": BLUE, "reserved": ORANGE, "device_used": GREEN}
COLUMN_DASHES = {"interval_peak": "-", "allocated": "-", "reserved": "--", "device_used": ":"}
CALL_COLOURS = (SKY, ORANGE, GREEN, PURPLE, RED, BLUE, YELLOW)
HEAT = "cividis"  # its brightness rises evenly, also in grey
INK, FAINT = "#1F2933", "#D5DAE0"

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def require(module: str) -> Any:
    """A module of matplotlib; ImportError that says what to install where it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(needed("Matplotlib, for MemoryVisualizer,", "matplotlib")) from error


def new_figure(size: tuple[float, float], **grid: Any) -> tuple[Any, Any]:
    """A figure that belongs to nobody's pyplot, and its axes: no global state, no window, no backend is chosen."""
    figure = _figure_class()(figsize=size, layout="constrained")
    return figure, figure.subplots(**grid)


def _figure_class() -> Any:
    figure_module = require("matplotlib.figure")

    class NotebookFigure(figure_module.Figure):  # type: ignore[misc, name-defined]
        """Shows itself in a notebook, also where no backend is."""

        def _repr_png_(self) -> bytes:
            import io

            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=100)
            return buffer.getvalue()

    return NotebookFigure


def byte_unit(highest_bytes: float) -> tuple[float, str]:
    """The unit in which `highest_bytes` is a number from 1 to 1024, and how many bytes it has."""
    scale, unit = 1.0, 0
    while highest_bytes / scale >= 1024 and unit < len(_UNITS) - 1:
        scale, unit = scale * 1024, unit + 1
    return scale, _UNITS[unit]


def byte_ticks(highest_bytes: float) -> list[float]:
    """Four to eight steps of a power of two of one binary unit, from 0 to at or above `highest_bytes`."""
    scale, _ = byte_unit(highest_bytes)
    step = scale * 2.0 ** ceil(log2(max(highest_bytes / scale, 1e-9) / 8))
    return [i * step for i in range(int(-(-highest_bytes // step)) + 1)]


def byte_labels(ticks: Sequence[float], highest_bytes: float) -> list[str]:
    scale, unit = byte_unit(highest_bytes)
    return [f"{tick / scale:g} {unit}" if tick else "0" for tick in ticks]


def byte_axis(axis: Any, highest_bytes: float) -> None:
    """Labels a matplotlib axis in one binary unit."""
    ticks = byte_ticks(highest_bytes)
    axis.set_ticks(ticks, byte_labels(ticks, highest_bytes))


def tidy(axes: Any, grid: str = "y") -> None:
    """No box, faint lines behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, length=0)
    axes.grid(axis=grid, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def title(figure: Any, what: str, measured: Measured) -> None:
    """What it is, and where the numbers come from, left above the picture."""
    # An empty second line keeps the room that the smaller line is then put into.
    figure.suptitle(f"{what}\n", x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
    below = 0.98 - 13 * 1.45 / 72 / figure.get_size_inches()[1]
    figure.text(0.01, below, subtitle(measured), ha="left", va="top", fontsize=9, color=GREY, gid="basis")


def subtitle(measured: Measured) -> str:
    """Where the numbers come from, and what is left out."""
    words = [measured.basis_words() or "basis not known"]
    if measured.sampled and "interval_peak" not in measured.series.columns:
        words.append("sampled: what came and went between two samples is not seen")
    if measured.dropped_calls and measured.calls:
        words.append(f"the last {len(measured.calls)} calls of {len(measured.calls) + measured.dropped_calls}")
    return "; ".join(words)


def column_words(measured: Measured, column: str) -> str:
    """The legend's word for a column."""
    return "resident" if column == "allocated" and measured.basis == "host" else COLUMN_WORDS[column]


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def is_html(path: Any) -> bool:
    return str(os.fspath(path)).lower().endswith((".html", ".htm"))


def plain(name: str) -> str:
    """Short, and with nothing in it that matplotlib takes for mathematics."""
    return shortened(name).replace("$", r"\$")


def shortened(name: str, most: int = 34) -> str:
    """The end of a long name: that is where functions differ."""
    return name if len(name) <= most else "…" + name[1 - most :]


def peak_of(measured: Measured) -> tuple[float, float, bool] | None:
    """(time, bytes, exact) of the highest memory: of a call, whose moment within it is not known (its middle is
    taken), or of a sample. None if nothing is known."""
    found: list[tuple[float, float, bool]] = []
    own = [column for column in ("allocated", "interval_peak") if column in measured.series.columns]
    for column in own or measured.series.columns:
        times, values = measured.series.known(column)
        if values:
            place = max(range(len(values)), key=values.__getitem__)
            # Of samples the highest one is a peak only where the peaks in between are known.
            exact = not measured.sampled if column == "allocated" else column == "interval_peak"
            found.append((times[place], values[place], exact))
    for call in measured.calls:
        if call.peak_bytes is not None:
            found.append(((call.start_s + call.end_s) / 2, float(call.peak_bytes), call.peak_is_exact))
    return max(found, key=lambda one: one[1:], default=None)


def peak_words(peak: tuple[float, float, bool], start_s: float) -> str:
    time_s, size, exact = peak
    return f"{'peak' if exact else 'at least'} {format_size(size)} at {time_s - start_s:.3g} s"


def start_of(measured: Measured) -> float:
    """The first moment, in seconds since 1970: times in pictures are since then."""
    times: Sequence[float] = [*measured.series.times_s[:1], *(call.start_s for call in measured.calls)]
    return min(times, default=0.0)


def end_of(measured: Measured) -> float:
    """The last moment, in seconds since 1970."""
    return max([*measured.series.times_s[-1:], *(call.end_s for call in measured.calls)], default=0.0)
