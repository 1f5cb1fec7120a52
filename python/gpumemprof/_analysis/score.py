"""The score of a report: the core's parts for the series, and those of calls and telemetry."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from .._core.printed import format_size
from .findings import Findings
from .gaps import GapFinding
from .measured import Measured

BEST = 10.0
LEAST_CALLS = 6  # of a function that another call followed, before they are a series
_COMFORTABLE = 0.8  # of the limit, as in docs/scores.md
_GROWTH_COSTS = 4.0  # any growth, as in docs/scores.md
_COST = {"info": 2.0, "warning": 5.0, "critical": 9.0}

Part = dict[str, Any]  # {"name", "weight", "value": float | None, "reason"}


def score_of(
    measured: Measured,
    series_report: dict[str, Any],
    growing_functions: list[dict[str, Any]],
    gaps: Findings[GapFinding] | None,
) -> tuple[float | None, list[Part], str]:
    """(0 to 10 or None, its parts, why there is none): the weighted mean of the parts that are known.

    The parts of the series are growth, cleanup, spikes and fragmentation of docs/scores.md. Here are added: `peak`
    (weight 3), which takes the peaks of calls, not only of samples; `functions` (weight 2): the share of the
    functions called often enough whose calls keep more and more memory; `gap` (weight 2): 10 less 2, 5 or 9 for the
    worst finding outside of the allocator. What the calls of a function keep also limits growth, as a leak of a
    recording does, whatever the whole series looks like."""
    of_series = [part for part in series_report["score"]["parts"] if part["name"] != "peak"]
    parts = [peak_part(measured), *(_with_growth(part, growing_functions) for part in of_series)]
    parts += [functions_part(measured, len(growing_functions)), gap_part(gaps)]
    known = [part for part in parts if part["value"] is not None]
    is_growth_known = any(part["name"] == "growth" for part in known)
    if not known or (series_report["score"]["hides_growth"] and not is_growth_known):
        reason = measured.unknown or series_report["score"]["reason"] or "nothing was measured that can be scored"
        return None, parts, reason
    weights = sum(part["weight"] for part in known)
    return sum(part["value"] * part["weight"] for part in known) / weights, parts, ""


def _with_growth(part: Part, growing: list[dict[str, Any]]) -> Part:
    """A part of the series in the light of functions whose calls keep more and more: the worst of them, as one may call
    another. Nothing is released of what still grows."""
    if not growing or part["name"] not in ("growth", "cleanup"):
        return part
    if part["name"] == "cleanup":
        return _part("cleanup", part["weight"], None, "memory grows to the end")
    worst = max(growing, key=_share_grown)
    value = (BEST - _GROWTH_COSTS) * (1 - _share_grown(worst))
    if part["value"] is not None and part["value"] <= value:
        return part
    grown = format_size(worst["evidence"]["growth_bytes"])
    return _part("growth", part["weight"], value, f"calls of {worst['function']} keep {grown} more")


def _share_grown(finding: dict[str, Any]) -> float:
    start, grown = finding["evidence"]["start_bytes"], finding["evidence"]["growth_bytes"]
    return 1.0 if start <= 0 else min(1.0, grown / start)


def highest_bytes(measured: Measured) -> float | None:
    """The highest that any call, function or sample saw."""
    known = [highest_allocated_bytes(measured), *measured.series.known("reserved")[1]]
    return max((value for value in known if value is not None), default=None)


def highest_allocated_bytes(measured: Measured) -> float | None:
    """The same of allocated bytes, between samples too where that is known."""
    values = [value for column in ("allocated", "interval_peak") for value in measured.series.known(column)[1]]
    values += [float(call.peak_bytes) for call in measured.calls if call.peak_bytes is not None]
    values += [float(one.peak_bytes) for one in measured.functions.values() if one.peak_bytes is not None]
    return max(values, default=None)


def peak_part(measured: Measured) -> Part:
    peak, limit = highest_bytes(measured), measured.limit_bytes
    if peak is None or not limit:
        why = "no peak was measured" if peak is None else "the limit of this memory is not known"
        return _part("peak", 3, None, why)
    share = peak / limit
    value = BEST * (1 - (share - _COMFORTABLE) / (1 - _COMFORTABLE))
    return _part("peak", 3, value, f"peak of {format_size(peak)} against {format_size(limit)}")


def functions_part(measured: Measured, growing: int) -> Part:
    judged = len(functions_to_judge(measured))
    if not judged:
        return _part("functions", 2, None, f"no function was called {LEAST_CALLS + 1} times")
    return _part(
        "functions", 2, BEST * (1 - growing / judged), f"{growing} of {judged} functions keep more and more memory"
    )


def functions_to_judge(measured: Measured) -> dict[str, list[tuple[float, int]]]:
    """Functions called often enough, each with its rows of kept_by_calls()."""
    return {name: rows for name, rows in kept_by_calls(measured).items() if len(rows) >= LEAST_CALLS}


def kept_by_calls(measured: Measured) -> dict[str, list[tuple[float, int]]]:
    """By function (end of a call, bytes that its calls so far have kept) in the order of time.

    What calls left behind, added up, is at most what is live more when the next measured call starts: until then
    their caller has dropped what they only returned. After the last call nobody looked, so it has a row only where the
    function has no other."""
    known = sorted((call for call in measured.calls if call.kept_bytes is not None), key=lambda call: call.start_s)
    starts = [call.start_s for call in known]
    sums: dict[str, int] = {}
    first: dict[str, int] = {}
    rows: dict[str, list[tuple[float, int]]] = {}
    for call in sorted(known, key=lambda call: call.end_s):
        sums[call.name] = kept = sums.get(call.name, 0) + (call.kept_bytes or 0)
        start = first.setdefault(call.name, call.before_bytes or 0)
        following = bisect_left(starts, call.end_s)
        if following < len(known):
            rows.setdefault(call.name, []).append((call.end_s, min(kept, (known[following].before_bytes or 0) - start)))
        elif call.name not in rows:
            rows[call.name] = [(call.end_s, kept)]
    return rows


def gap_part(gaps: Findings[GapFinding] | None) -> Part:
    if gaps is None or gaps.unknown:
        return _part("gap", 2, None, gaps.unknown if gaps is not None else "no telemetry with the device's own use")
    worst = max((_COST[finding.severity] for finding in gaps), default=0.0)
    return _part("gap", 2, BEST - worst, f"{len(gaps)} findings outside of the allocator")


def _part(name: str, weight: float, value: float | None, reason: str) -> Part:
    clamped = None if value is None else max(0.0, min(BEST, value))
    return {"name": name, "weight": float(weight), "value": clamped, "reason": reason}
