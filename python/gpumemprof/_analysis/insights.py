"""Insights from calls: facts first, a correlation only with enough calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.printed import format_size
from .correlation import LEAST_PAIRS, spearman
from .measured import Call, Measured
from .score import highest_allocated_bytes, kept_by_calls

MOST_P = 0.05
LEAST_RHO = 0.5


@dataclass
class PerformanceInsight:
    """category: memory_time_correlation, peak, kept, time, or one of the series (growth, limit, cycle); impact: low,
    medium or high; confidence: 0 to 1, 1 for a measured fact."""

    category: str
    title: str
    description: str
    impact: str
    confidence: float
    data: dict[str, Any] = field(default_factory=dict)
    recommendations: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def insights_of(measured: Measured, series_report: dict[str, Any]) -> list[PerformanceInsight]:
    """Those of the calls and of the series, the ones with the highest impact first."""
    found = _correlations(measured.calls) + _facts(measured)
    found += [_of_series(_with_peak(one, measured)) for one in series_report["insights"]]
    order = ("high", "medium", "low")
    return sorted(found, key=lambda insight: order.index(insight.impact))


def _correlations(calls: Sequence[Call]) -> list[PerformanceInsight]:
    by_name: dict[str, list[Call]] = {}
    for call in calls:
        if call.peak_over_start_bytes is not None and call.duration_s > 0:
            by_name.setdefault(call.name, []).append(call)
    tested = []
    for name, own in by_name.items():
        rises = [float(call.peak_over_start_bytes or 0) for call in own]
        result = spearman(rises, [call.duration_s for call in own])
        if result is not None:
            tested.append((name, len(own), *result))
    found = []
    for name, count, rho, p in tested:
        # Of many functions one correlates by chance: Bonferroni.
        adjusted = min(1.0, p * len(tested))
        if adjusted >= MOST_P or abs(rho) < LEAST_RHO:
            continue
        how = "longer" if rho > 0 else "shorter"
        data = {"function": name, "spearman_rho": rho, "p": p, "p_adjusted": adjusted, "calls": count}
        found.append(
            PerformanceInsight(
                "memory_time_correlation",
                f"{name}: memory and time go together",
                f"Calls of {name} that use more memory take {how}: "
                f"Spearman's rho {rho:.2f} over {count} calls, p {p:.2g}",
                "high" if abs(rho) >= 0.8 else "medium",
                1 - adjusted,
                data,
                [f"Measure {name} with a smaller and a larger input: the two are correlated; the cause is unknown"],
            )
        )
    return found


def _facts(measured: Measured) -> list[PerformanceInsight]:
    found = []
    rises = [(call.peak_over_start_bytes, call) for call in measured.calls if call.peak_over_start_bytes]
    if rises:
        rise, call = max(rises, key=lambda pair: pair[0])
        text = f"{call.name} needs the most memory: {format_size(rise)} above the level at its start"
        found.append(PerformanceInsight("peak", "Highest rise", text, "medium", 1.0,
                                        {"function": call.name, "peak_over_start_bytes": rise}))  # fmt: skip
    kept = {name: rows[-1][1] for name, rows in kept_by_calls(measured).items()}
    if kept and max(kept.values()) > 0:
        name = max(kept, key=kept.__getitem__)
        text = (
            f"{name} leaves the most memory behind: {format_size(kept[name])} more after its calls than before them"
        )
        found.append(PerformanceInsight("kept", "Most memory kept", text, "medium", 1.0,
                                        {"function": name, "kept_bytes": kept[name]}))  # fmt: skip
    if measured.functions:
        slowest = max(measured.functions.values(), key=lambda function: function.total_time_s)
        calls = "1 call" if slowest.call_count == 1 else f"{slowest.call_count} calls"
        text = f"{slowest.name} takes the most time: {slowest.total_time_s:.3g} s in {calls}"
        found.append(PerformanceInsight("time", "Most time", text, "low", 1.0,
                                        {"function": slowest.name, "total_time_s": slowest.total_time_s}))  # fmt: skip
    return found


def _with_peak(insight: dict[str, Any], measured: Measured) -> dict[str, Any]:
    """An insight of samples, in the light of a higher peak between them, near which nobody saw memory."""
    peak = highest_allocated_bytes(measured)
    sampled = insight["evidence"].get("peak_bytes")
    if insight["category"] != "peak" or peak is None or peak <= sampled or not measured.series.known("allocated")[1]:
        return insight
    text = (
        f"The peak of {format_size(peak)} was between samples, which saw at most {format_size(sampled)}: "
        "how long memory was near it is unknown"
    )
    evidence = {"share_of_time": None, "peak_bytes": peak, "sampled_peak_bytes": sampled}
    return {**insight, "description": text, "evidence": evidence}


def _of_series(insight: dict[str, Any]) -> PerformanceInsight:
    impact = {"limit": "high", "growth": "high"}.get(insight["category"], "low")
    title = {"limit": "Time to the limit", "growth": "Growth", "cycle": "Cycle", "peak": "Time near the peak"}
    category = insight["category"]
    return PerformanceInsight(category, title.get(category, category), insight["description"], impact, 1.0,
                              dict(insight["evidence"]))  # fmt: skip


def why_no_correlation(measured: Measured) -> str:
    """ "" where a correlation was tested for; else what it would take."""
    most = max((f.call_count for f in measured.functions.values()), default=0)
    if most >= LEAST_PAIRS:
        return ""
    return f"comparing memory with time takes {LEAST_PAIRS} calls of one function; the most called one has {most}"
