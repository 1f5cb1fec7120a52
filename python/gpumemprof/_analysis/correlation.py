"""Rank correlation of memory and time."""

from __future__ import annotations

from collections.abc import Sequence
from math import atanh, fsum, sqrt
from statistics import NormalDist, fmean

LEAST_PAIRS = 10  # the approximation of p is good from here on


def ranks(values: Sequence[float]) -> list[float]:
    """1 for the smallest; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            result[place] = (start + end + 1) / 2
        start = end
    return result


def _correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's: statistics.correlation, which Python has from 3.10 on."""
    middle_x, middle_y = fmean(x), fmean(y)
    both = fsum((a - middle_x) * (b - middle_y) for a, b in zip(x, y))
    return both / sqrt(fsum((a - middle_x) ** 2 for a in x) * fsum((b - middle_y) ** 2 for b in y))


def spearman(x: Sequence[float], y: Sequence[float]) -> tuple[float, float] | None:
    """Spearman's rho and its two-sided p, or None: fewer than `LEAST_PAIRS` pairs, or one side never changes.

    p by Fisher's z with the variance 1.06 / (n - 3) of Fieller, Hartley and Pearson (1957)."""
    if len(x) < LEAST_PAIRS or len(set(x)) < 2 or len(set(y)) < 2:
        return None
    rho = max(-1.0, min(1.0, _correlation(ranks(x), ranks(y))))
    if abs(rho) > 1 - 1e-12:
        return rho, 0.0
    z = atanh(rho) * sqrt((len(x) - 3) / 1.06)
    return rho, 2 * (1 - NormalDist().cdf(abs(z)))
