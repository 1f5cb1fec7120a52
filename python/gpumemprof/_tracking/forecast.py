"""When will memory meet its limit, if it goes on like this?

The rate is the Theil–Sen slope (the median of the slopes between all pairs of points; Sen 1968), which a few odd
samples cannot move. Growth is only believed where the Mann–Kendall test (with its correction for ties) is one-sided
significant and both halves of the window grow by themselves: one jump, and a warm-up that has ended, are no trend.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

MIN_POINTS = 8
MAX_POINTS = 96  # pairs grow with the square: 4,560 of them take about 2 ms
SIGNIFICANCE = 0.01
MAX_HORIZON = 100  # a second of samples says nothing about tomorrow

_Points = list[tuple[float, float]]


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
    so the trend is theirs. The line is then raised to the highest point above it. ValueError where the two sequences
    differ in length or times go backwards.
    """
    if len(times_s) != len(values_bytes):
        raise ValueError(f"{len(times_s)} times for {len(values_bytes)} values")
    if any(b < a for a, b in zip(times_s, times_s[1:], strict=False)):
        raise ValueError("times must ascend")
    series = list(zip(map(float, times_s), map(float, values_bytes), strict=True))
    window_s = series[-1][0] - series[0][0] if series else 0.0
    maxima = _local_maxima(series)
    points = _thinned(maxima if len(maxima) >= MIN_POINTS else series)

    def none(reason: str, slope: float | None = None) -> Forecast:
        return Forecast(None, None, None, slope, limit_bytes, len(points), window_s, None, reason)

    if limit_bytes is None:
        return none("the limit is unknown")
    if len(points) < MIN_POINTS or window_s <= 0:
        return none(f"fewer than {MIN_POINTS} points in time")
    if series[-1][1] >= limit_bytes:
        return Forecast(0.0, 0.0, 0.0, None, limit_bytes, len(points), window_s, "the limit is reached already", None)
    slopes = _pair_slopes(points)
    slope = statistics.median(slopes)
    score, deviation = _mann_kendall(points)
    halves = [points[: len(points) // 2], points[len(points) // 2 :]]
    if slope <= 0 or any(statistics.median(_pair_slopes(half)) <= 0 for half in halves):
        return none("memory is not growing", min(slope, 0.0) if slope <= 0 else None)
    if deviation == 0 or 0.5 * math.erfc((score - 1) / deviation / math.sqrt(2)) >= SIGNIFICANCE:
        return none("the growth is not significant")

    intercept = max(value - slope * time for time, value in points)
    now = series[-1][0]
    line_now = max(intercept + slope * now, series[-1][1])
    room = max(0.0, limit_bytes - line_now)
    if room / slope > MAX_HORIZON * window_s:
        return none(f"the limit is more than {MAX_HORIZON} times further away than the observed time", slope)
    low, high = _slope_interval(slopes, deviation)
    return Forecast(
        seconds_to_limit=room / slope,
        seconds_to_limit_earliest=room / high,
        seconds_to_limit_latest=room / low if low > 0 else None,
        growth_bytes_per_s=slope,
        limit_bytes=limit_bytes,
        points=len(points),
        window_s=window_s,
        assumption=f"memory keeps growing at the median rate of the last {window_s:.1f} s",
        reason=None,
    )


def _local_maxima(series: _Points) -> _Points:
    """Where the series falls after it rose. The ends are left out: nobody knows whether they are maxima."""
    result: _Points = []
    rising: tuple[float, float] | None = None
    for before, after in zip(series, series[1:], strict=False):
        if after[1] > before[1]:
            rising = after
        elif after[1] < before[1] and rising is not None:
            result.append(rising)
            rising = None
    return result


def _thinned(points: _Points) -> _Points:
    """At most MAX_POINTS: the highest of each of as many runs of equal length."""
    if len(points) <= MAX_POINTS:
        return points
    edges = [len(points) * i // MAX_POINTS for i in range(MAX_POINTS + 1)]
    return [max(points[a:b], key=lambda p: p[1]) for a, b in zip(edges, edges[1:], strict=False)]


def _pair_slopes(points: _Points) -> list[float]:
    return sorted(
        (value - before) / (time - earlier)
        for i, (earlier, before) in enumerate(points)
        for time, value in points[i + 1 :]
        if time > earlier
    ) or [0.0]


def _mann_kendall(points: _Points) -> tuple[int, float]:
    """S and its standard deviation under "no trend", ties of equal values corrected for (Kendall 1975)."""
    values = [value for _, value in points]
    score = sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :])
    count = len(values)
    ties = (values.count(value) for value in set(values))
    variance = (count * (count - 1) * (2 * count + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    return score, math.sqrt(max(variance, 0.0))


def _slope_interval(slopes: list[float], deviation: float) -> tuple[float, float]:
    """The 95 % interval of Sen's slope: order statistics around the median, 1.96 deviations of S apart."""
    half_width = 1.96 * deviation / 2
    low = max(0, math.floor(len(slopes) / 2 - half_width))
    high = min(len(slopes) - 1, math.ceil(len(slopes) / 2 + half_width))
    return slopes[low], slopes[high]
