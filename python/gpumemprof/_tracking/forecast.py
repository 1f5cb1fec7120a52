"""When memory will reach its limit at the current rate. The core decides it by the same test as its search for leaks
(docs/scores.md)."""

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
    """`seconds_to_limit` counts from the last sample; None if there is no forecast, with the `reason`."""

    seconds_to_limit: float | None
    seconds_to_limit_earliest: float | None  # with the upper end of the rate's 95 % interval
    seconds_to_limit_latest: float | None  # with its lower end; None if that is no growth
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
    """The forecast of one series: times in seconds, ascending, and the used bytes at each.

    If the series falls and rises again, as in every training step, the trend is that of its local maxima: the Theil-Sen
    slope, which outliers hardly change. The line is then raised to the highest point above it. Raises ValueError if the
    sequences differ in length or times decrease.
    """
    found = native().forecast_limit(times_s, values_bytes, limit_bytes)
    assumption = None
    if found["growth_bytes_per_s"] is not None and found["reason"] is None:
        assumption = f"memory keeps growing at the median rate of the last {found['window_s']:.1f} s"
    elif found["reason"] is None:
        assumption = "the limit is reached already"
    return Forecast(limit_bytes=limit_bytes, assumption=assumption, **found)
