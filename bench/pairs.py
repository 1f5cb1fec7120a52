"""Statistics of paired measurements: medians with 95 % bootstrap intervals, and verdicts."""
from dataclasses import dataclass

import numpy

RESAMPLES = 10_000
# A bound on a ratio counts as met when the interval's upper end is within this of it.
RATIO_TOLERANCE = 0.005


@dataclass
class Estimate:
    median: float
    low: float
    high: float
    count: int

    def scaled(self, factor):
        return Estimate(self.median * factor, self.low * factor, self.high * factor, self.count)


def estimate(values, seed=1):
    """The median of `values` and the middle 95 % of the medians of resamples of them."""
    values = numpy.asarray(values, dtype=float)
    if values.size == 0:
        raise ValueError("no values")
    chance = numpy.random.default_rng(seed)
    picks = chance.integers(0, values.size, (RESAMPLES, values.size))
    medians = numpy.median(values[picks], axis=1)
    low, high = numpy.percentile(medians, [2.5, 97.5])
    return Estimate(float(numpy.median(values)), float(low), float(high), int(values.size))


def ratio(with_it, without):
    """Each value over its partner, then the median. A drift that both share cancels out."""
    return estimate(numpy.asarray(with_it, dtype=float) / numpy.asarray(without, dtype=float))


def difference(with_it, without):
    return estimate(numpy.asarray(with_it, dtype=float) - numpy.asarray(without, dtype=float))


def ratio_is_met(value, bound):
    return value.high <= bound + RATIO_TOLERANCE
