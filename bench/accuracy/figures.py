"""The figures by which predictions are judged."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rows import CAPACITY_MIB, Row, fitted_batch

HEADROOMS = (0.0, 0.05, 0.10)


def quantile(values: Sequence[float], share: float) -> float:
    """Between neighbours in proportion."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


@dataclass
class Errors:
    rows: int
    median: float
    p90: float
    under: list[float]  # share of rows above the prediction with each headroom
    net_median: float  # of what the constant leaves
    net_p90: float


def errors(rows: list[Row], constant_mib: float, capped: bool = False) -> Errors:
    """`capped`: a run that needs more than there is dies with the device full."""

    def predicted(row: Row) -> float:
        whole = row.predicted_mib(constant_mib)
        return min(whole, CAPACITY_MIB) if capped else whole

    relative = [abs(predicted(row) - row.measured_mib) / row.measured_mib for row in rows]
    net = [abs(predicted(row) - row.measured_mib) / max(1.0, row.measured_mib - constant_mib) for row in rows]
    under = [sum(predicted(row) * (1 + room) < row.measured_mib for row in rows) / len(rows) for room in HEADROOMS]
    return Errors(
        len(rows),
        statistics.median(relative),
        quantile(relative, 0.9),
        under,
        statistics.median(net),
        quantile(net, 0.9),
    )


def fit_constant(rows: list[Row]) -> int:
    """In steps of 10 MiB the one with the smallest median error."""
    return min(
        range(1000, 3000, 10),
        key=lambda mib: statistics.median(
            abs(row.predicted_mib(mib) - row.measured_mib) / row.measured_mib for row in rows
        ),
    )


def fit_spread(rows: list[Row], constant_mib: float) -> tuple[float, float]:
    """The middle 90 % of measured against predicted bytes."""
    ratios = [row.measured_mib / row.predicted_mib(constant_mib) for row in rows]
    return quantile(ratios, 0.05), quantile(ratios, 0.95)


@dataclass
class Largest:
    models: int = 0
    exact: int = 0
    too_high: int = 0
    too_low: int = 0


def largest_batches(models: dict[str, list[Row]], at_least: int) -> Largest:
    """The largest batch of the table that fitted, against the predicted one. `at_least`: Row.fits that is asked for."""
    result = Largest()
    for rows in models.values():
        fitted = fitted_batch(rows)
        if fitted is None:
            continue
        said = max([row.batch for row in rows if row.fits >= at_least], default=0)
        result.models += 1
        result.exact += said == fitted
        result.too_high += said > fitted
        result.too_low += said < fitted
    return result


def trace_seconds(folder: Path, names: list[str]) -> tuple[list[float], list[float]]:
    """Of a model, both traces and its building: on the clock and of the processor."""
    clock, processor = [], []
    for name in names:
        facts = []
        for batch in (2, 4):
            with (folder / f"{name}.{batch}.trace").open() as file:
                file.readline()
                facts.append(json.loads(file.readline()))
        clock.append(sum(fact["trace_s"] for fact in facts))
        processor.append(sum(fact["trace_cpu_s"] for fact in facts))
    return clock, processor
