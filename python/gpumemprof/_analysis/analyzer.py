"""MemoryAnalyzer: leaks, patterns, insights, a score and recommendations, from anything that was measured.

The statistics of a series are in the C++ core and documented in docs/scores.md. This module converts profilers,
trackers, files and recordings into series, and words the results.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._telemetry.files import load_telemetry_events
from .collectives import CollectiveAttributionResult, attribute_collective_memory, resolve_collective_attribution_config
from .findings import Findings
from .free_blocks import FreeBlocks, free_blocks_now, free_blocks_of
from .gaps import GapFinding as GapFinding
from .gaps import analyze_gaps
from .inputs import collect
from .insights import PerformanceInsight as PerformanceInsight
from .insights import insights_of, why_no_correlation
from .measured import Measured, Series
from .ranks import analyze_cross_rank_events, summarize_cross_rank_analysis
from .recommendations import TORCH, recommendations_of, suggestions_for
from .report import OptimizationReport
from .score import functions_to_judge, highest_bytes, peak_part, score_of
from .series import analyze_series
from .shapes import event_record


@dataclass
class MemoryPattern:
    """pattern_type: steady_growth, sawtooth, spike or fragmentation; severity: info, warning or critical."""

    pattern_type: str
    description: str
    severity: str
    affected_functions: list[str] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    suggestions: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class MemoryAnalyzer:
    """Analyzes measurements. Every method takes a profiler or its results, a tracker, its events or statistics, a
    telemetry file, a recording (path), or samples in bytes; by default the profiler given to the constructor.

    `sensitivity` is the smallest growth that counts, as a share of the memory's level (default 0.05); smaller values
    find more. `collective_sensitivity` (low, medium or high) and `collective_threshold_overrides` are those of
    collective_attribution. Raises ValueError if a sensitivity is not above 0 and at most 1, or for an unknown preset or
    threshold; TypeError for an unsupported source.
    """

    _advice = TORCH

    def __init__(
        self,
        profiler: Any = None,
        sensitivity: float = 0.05,
        collective_sensitivity: str = "medium",
        collective_threshold_overrides: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(profiler, float):  # MemoryAnalyzer(0.01)
            profiler, sensitivity = None, profiler
        if not 0 < sensitivity <= 1:
            raise ValueError(f"sensitivity must be above 0 and at most 1, not {sensitivity!r:.40}")
        self.profiler = profiler
        self.sensitivity = float(sensitivity)
        self.collective_config = resolve_collective_attribution_config(
            collective_sensitivity, collective_threshold_overrides
        )

    def detect_memory_leaks(self, tracking_results: Any = None) -> Findings[dict[str, Any]]:
        """Findings as dicts: type (monotonic_increase, spikes, insufficient_cleanup), severity, description, bytes,
        confidence (0 to 1), evidence, and function if the calls of one function keep more and more memory. Of a
        recording also the leaks that the command finds, with their fix.

        If nothing could be determined, the result's `unknown` has the reason.
        """
        measured = self._collect(tracking_results)
        report = self._series_report(measured)
        leaks: Findings[dict[str, Any]] = Findings(report["findings"])
        leaks.extend(self._growing_functions(measured))
        if not leaks:
            leaks.unknown = measured.unknown or report["unknown"].get("growth", "")
        return leaks

    def analyze_memory_patterns(self, results: Any = None, memory_segments: Any = None) -> Findings[MemoryPattern]:
        """Shapes of memory over time. Fragmentation is derived only from sizes of free blocks: those in
        `memory_segments` (from torch.cuda.memory_snapshot()), otherwise the current ones of the profiler's CUDA device.
        """
        measured = self._collect(results)
        report = self._series_report(measured, self._free_blocks(measured, memory_segments))
        return self._patterns(measured, report)

    def generate_performance_insights(self, results: Any = None) -> Findings[PerformanceInsight]:
        """Facts about calls and samples, highest impact first. For a function with at least 10 calls: whether calls
        that use more memory take longer (Spearman's rho, p below 0.05 after Bonferroni correction)."""
        measured = self._collect(results)
        insights = insights_of(measured, self._series_report(measured))
        return Findings(insights, "" if insights else measured.unknown or why_no_correlation(measured))

    def analyze_memory_gaps(self, events: Any) -> Findings[GapFinding]:
        """Use of the device outside this process's allocator; see gap_analysis."""
        return analyze_gaps(collect(events).events, self.sensitivity)

    def analyze_cross_rank_timeline(self, events: Any) -> dict[str, Any]:
        """Which rank's memory rose first; see distributed_analysis. `events` are telemetry of several ranks, or a file
        of them. The keys are those of summarize_cross_rank_analysis."""
        return summarize_cross_rank_analysis(analyze_cross_rank_events(_telemetry(events)))

    def analyze_collective_attribution(self, events: Any) -> Findings[CollectiveAttributionResult]:
        """Memory outside the allocator during collectives; see collective_attribution. `events` are telemetry of one or
        more ranks, or a file of them."""
        return attribute_collective_memory(_telemetry(events), config=self.collective_config)

    def generate_optimization_report(
        self, results: Any = None, events: Any = None, memory_segments: Any = None
    ) -> OptimizationReport:
        """A dict: summary, critical_issues, high_impact_insights, all_patterns, all_insights, leaks, gap_analysis,
        collective_attribution, cross_rank_analysis (with telemetry of more than one rank), recommendations (sentences
        that name their finding or say that they are general), optimization_score (0 to 10, None if nothing was
        measured), optimization_score_parts and optimization_score_reason.

        `events` is telemetry for the gap analysis, if `results` are not telemetry.
        """
        measured = self._collect(results)
        telemetry = collect(events).events if events is not None else measured.events
        report = self._series_report(measured, self._free_blocks(measured, memory_segments))
        functions = self._growing_functions(measured)
        leaks = [*report["findings"], *functions]
        gaps = analyze_gaps(telemetry, self.sensitivity) if telemetry else None
        score, parts, reason = score_of(measured, report, functions, gaps)
        patterns, insights = self._patterns(measured, report), insights_of(measured, report)
        issues = [*leaks, *(gap.to_dict() for gap in gaps or ())]
        return OptimizationReport(
            summary=_summary(measured),
            critical_issues=[issue for issue in issues if issue["severity"] == "critical"],
            high_impact_insights=[insight.to_dict() for insight in insights if insight.impact == "high"],
            all_patterns=[pattern.to_dict() for pattern in patterns],
            all_insights=[insight.to_dict() for insight in insights],
            leaks=leaks,
            recording_findings=list(measured.findings),
            gap_analysis=[gap.to_dict() for gap in gaps or ()],
            **self._of_ranks(events if isinstance(events, (list, tuple)) else telemetry),
            recommendations=self._recommendations(measured, leaks, patterns, gaps or ()),
            optimization_score=score,
            optimization_score_parts=parts,
            optimization_score_reason=reason,
            unknown=_unknown(measured, report, gaps),
        )

    def _of_ranks(self, telemetry: Any) -> dict[str, Any]:
        results = attribute_collective_memory(telemetry, config=self.collective_config) if telemetry else ()
        parts: dict[str, Any] = {"collective_attribution": [result.to_dict() for result in results]}
        if len({event_record(event)["rank"] for event in telemetry or ()}) > 1:
            parts["cross_rank_analysis"] = self.analyze_cross_rank_timeline(telemetry)
        return parts

    def _collect(self, source: Any) -> Measured:
        return collect(self.profiler if source is None else source)

    def _recommendations(self, measured: Measured, leaks: Any, patterns: Any, gaps: Any) -> list[str]:
        return recommendations_of(leaks, patterns, gaps, peak_part(measured), self._advice)

    def _series_report(self, measured: Measured, free_blocks: FreeBlocks | None = None) -> dict[str, Any]:
        times, values = _judged_column(measured.series)
        report = analyze_series(times, values, self.sensitivity, measured.limit_bytes, free_blocks)
        # Of a recording the core has seen every event and every step: rows of a timeline say less.
        if measured.findings or measured.score_parts:
            findings = [*(one for one in report["findings"] if one["type"] != "spikes"), *_judged_by_the_core(measured)]
            report = {**report, "findings": findings}
        if measured.score_parts:
            score = {**report["score"], "parts": list(measured.score_parts), "hides_growth": False}
            report = {**report, "patterns": list(measured.patterns), "score": score}
        return report

    def _growing_functions(self, measured: Measured) -> list[dict[str, Any]]:
        """Functions whose calls keep more and more. Growth that others hide by what they free meanwhile is not found."""
        found = []
        for name, rows in functions_to_judge(measured).items():
            start = next(call.before_bytes or 0 for call in measured.calls if call.name == name)
            times = [end_s for end_s, _ in rows]
            values = [float(max(0, start + kept)) for _, kept in rows]
            for finding in analyze_series(times, values, self.sensitivity)["findings"]:
                if finding["type"] == "monotonic_increase":
                    text = f"Calls of {name} keep more and more memory: {finding['description']}"
                    found.append({**finding, "description": text, "function": name})
        return found

    def _patterns(self, measured: Measured, report: dict[str, Any]) -> Findings[MemoryPattern]:
        growing = [leak["function"] for leak in self._growing_functions(measured)]
        patterns = [
            MemoryPattern(
                pattern["pattern_type"], pattern["description"], pattern["severity"],
                growing if pattern["pattern_type"] == "steady_growth" else [],
                dict(pattern["evidence"]), suggestions_for(pattern["pattern_type"], self._advice),
            )
            for pattern in report["patterns"]
        ]  # fmt: skip
        return Findings(patterns, "" if patterns else measured.unknown or report["unknown"].get("growth", ""))

    def _free_blocks(self, measured: Measured, memory_segments: Any) -> FreeBlocks | None:
        return free_blocks_of(memory_segments) if memory_segments is not None else free_blocks_now(measured.device_id)


_TYPES_OF_KINDS = {"leak": "monotonic_increase", "spike": "spikes"}


def _judged_by_the_core(measured: Measured) -> list[dict[str, Any]]:
    """A recording's leaks, and the spikes that are no normal work, as findings of a series are."""
    return [
        {
            "type": _TYPES_OF_KINDS[finding["kind"]],
            "description": finding.get("title"),
            **{key: finding.get(key) for key in ("severity", "bytes", "confidence", "evidence", "fix")},
        }
        for finding in measured.findings
        if finding["kind"] == "leak" or (finding["kind"] == "spike" and finding["severity"] != "info")
    ]


def _telemetry(events: Any) -> Any:
    """The events of a file, or what was given."""
    if isinstance(events, (str, os.PathLike)):
        return load_telemetry_events(events)
    return events


def _judged_column(series: Series) -> tuple[list[float], list[float]]:
    """What tensors take, where that is known; else the next best of the columns."""
    for column in ("allocated", "reserved", "device_used"):
        times, values = series.known(column)
        if values:
            return times, values
    return [], []


def _summary(measured: Measured) -> dict[str, Any]:
    functions = measured.functions.values()
    allocated = [f.allocated_bytes for f in functions if f.allocated_bytes is not None]
    return {
        "total_functions_analyzed": len(functions),
        "total_function_calls": sum(f.call_count for f in functions),
        "total_memory_allocated": sum(allocated) if allocated else None,
        "total_execution_time": sum(f.total_time_s for f in functions),
        "total_samples": len(measured.series),
        "peak_memory": highest_bytes(measured),
        "memory_limit": measured.limit_bytes,
        "device": measured.device,
        "basis": measured.basis,
        "basis_reason": measured.basis_reason,
        "analysis_timestamp": time.time(),
    }


def _unknown(measured: Measured, report: dict[str, Any], gaps: Findings[GapFinding] | None) -> dict[str, str]:
    """Questions without an answer, and why."""
    unknown = {"source": measured.unknown} if measured.unknown else {}
    unknown.update(report["unknown"])
    if measured.functions and (why := why_no_correlation(measured)):
        unknown["memory_time_correlation"] = why
    if gaps is not None and gaps.unknown:
        unknown["gap"] = gaps.unknown
    return unknown
