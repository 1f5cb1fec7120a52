"""Ranks on one clock."""

from __future__ import annotations

from typing import Any

from .._analysis.measured import Measured
from ._style import CALL_COLOURS, NO_DATA, byte_axis, new_figure, tidy, title

_DASHES = ("-", "--", "-.", ":")


def draw(measured: Measured, size: tuple[float, float]) -> Any:
    """Times are the hosts' own clocks: ranks of different machines are only as comparable as their clocks."""
    column = next((c for c in ("device_used", "allocated") if any(e[c] is not None for e in measured.events)), None)
    if column is None:
        raise ValueError(f"{NO_DATA}: {measured.unknown or 'no event knows a rank and its memory'}")
    ranks: dict[int, list[tuple[float, float]]] = {}
    for event in measured.events:
        if event[column] is not None:
            ranks.setdefault(event["rank"], []).append((event["time_s"], event[column]))
    start_s = min(points[0][0] for points in ranks.values())
    highest = max(value for points in ranks.values() for _, value in points)
    figure, axes = new_figure(size)
    for place, (rank, points) in enumerate(sorted(ranks.items())):
        points.sort()
        axes.plot(
            [t - start_s for t, _ in points], [v for _, v in points], drawstyle="steps-post", label=f"rank {rank}",
            color=CALL_COLOURS[place % len(CALL_COLOURS)], linestyle=_DASHES[place // len(CALL_COLOURS) % len(_DASHES)],
        )  # fmt: skip
    axes.set_ylim(0, highest * 1.1 or 1.0)
    byte_axis(axes.yaxis, max(highest, 1.0))
    axes.set_xlabel("seconds since the first sample of any rank")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    tidy(axes)
    title(
        figure,
        f"{'Device memory in use' if column == 'device_used' else 'Allocated memory'} of {len(ranks)} ranks",
        measured,
    )
    return figure
