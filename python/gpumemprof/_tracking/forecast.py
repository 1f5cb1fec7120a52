"""When will memory meet its limit, if it goes on like this? Asked of the core, which decides by the test that its search for
leaks decides by (docs/scores.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .._core.native import native

# As the core has them (src/analysis/series/series_forecast.cc, src/analysis/statistics/growth.cc).
MIN_POINTS = 8
MAX_POINTS = 96
SIGNIFICANCE = 0.001
MAX_HORIZON = 100


@dataclass(frozen=True)
class Forecast:
    """`seconds_to_limit` counts from the last sample; None where `reason` says why there is no forecast."""

    seconds_to_limit: float | None
    seconds_to_limit_earliest: float | None  # with the upper end of the rate's 95 % interval
    seconds_to_limit_latest: float | None  # with its lower end; None where that is no growth
    growth_bytes_per_s: float | None
    limit_bytes: int | None
    points: int
    window_s: float
    assumption: str | None
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def forecast_time_to_limit(
    times_s: Sequence[float], values_bytes: Sequence[float], limit_bytes: int | None
) -> Forecast:
    """The forecast of one series: times in seconds, ascending, and the bytes in use at each.

    Where the series falls and rises again (every training step does), its local maxima are what will meet the limit,
    so the trend is theirs: the Theil-Sen slope, which a few odd samples cannot move. The line is then raised to the
    highest point above it. ValueError where the two sequences differ in length or times go backwards.
    """
    found = native().forecast_limit(times_s, values_bytes, limit_bytes)
    assumption = None
    if found["growth_bytes_per_s"] is not None and found["reason"] is None:
        assumption = f"memory keeps growing at the median rate of the last {found['window_s']:.1f} s"
    elif found["reason"] is None:
        assumption = "the limit is reached already"
    return Forecast(limit_bytes=limit_bytes, assumption=assumption, **found)
