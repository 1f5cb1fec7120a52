"""MemoryAnalyzer: gpumemprof's analyses of what was measured with TensorFlow, and TensorFlow's advice."""

from __future__ import annotations

from typing import Any

from gpumemprof._analysis.analyzer import GapFinding as GapFinding
from gpumemprof._analysis.analyzer import MemoryAnalyzer as _Analyzer
from gpumemprof._analysis.analyzer import MemoryPattern, PerformanceInsight
from gpumemprof._analysis.findings import Findings
from gpumemprof._analysis.measured import Measured
from gpumemprof._analysis.recommendations import Advice, recommendations_of
from gpumemprof._analysis.score import peak_part

from ._advice import advice_of_process, advice_of_recording

_TENSORFLOW = Advice(
    general=(),  # without evidence there is nothing to advise
    leaks={
        "monotonic_increase": "Find what keeps tensors from step to step: a list of losses, a metric that is never "
        "reset, a tf.function that is retraced for every new Python argument",
        "spikes": "Need less at that moment: smaller batches, or tf.recompute_grad around the largest layers",
        "insufficient_cleanup": "Drop what is no longer needed before the next phase: del the model and its datasets, "
        "then tf.keras.backend.clear_session()",
    },
    fragmentation=(
        "Set TF_GPU_ALLOCATOR=cuda_malloc_async",
        "Keep shapes equal from step to step",
    ),
    peak="Reduce the batch size, or use tf.recompute_grad or mixed precision",
)  # fmt: skip


class MemoryAnalyzer(_Analyzer):
    """Analyzes measurements: gpumemprof.MemoryAnalyzer, with the additional methods of TensorFlow's interface.

    Sources are those of gpumemprof's, and TFMemoryProfiler, its results, MemoryTracker, TrackingResult. Recommendations
    need evidence in the recording or this process; each names it and the bytes at stake.
    """

    _advice = _TENSORFLOW

    def detect_patterns(self, tracking_results: Any = None) -> Findings[MemoryPattern]:
        """Like analyze_memory_patterns."""
        return self.analyze_memory_patterns(tracking_results)

    def correlate_with_performance(self, results: Any = None) -> Findings[PerformanceInsight]:
        """Like generate_performance_insights."""
        return self.generate_performance_insights(results)

    def analyze_efficiency(self, results: Any = None) -> float | None:
        """The score, 0 to 10; None if nothing can be judged: `optimization_score_reason` of the report says why."""
        score: float | None = self.generate_optimization_report(results)["optimization_score"]
        return score

    def analyze_fragmentation(self, results: Any = None) -> dict[str, Any]:
        """{"fragmentation_ratio": None, "reason"}: TensorFlow does not report sizes of free blocks, and peak − current
        use is not fragmentation."""
        measured = self._collect(results)
        return {
            "fragmentation_ratio": None,
            "reason": measured.unknown or "TensorFlow does not report sizes of free blocks",
        }

    def score_optimization(self, results: Any = None, events: Any = None) -> dict[str, Any]:
        """{"overall_score" (0 to 10, or None), "reason", "parts", "recommendations", "advice"}."""
        report = self.generate_optimization_report(results, events)
        return {
            "overall_score": report["optimization_score"],
            "reason": report["optimization_score_reason"],
            "parts": report["optimization_score_parts"],
            "recommendations": report["recommendations"],
            "advice": self.advise(results),
        }

    def advise(self, source: Any = None) -> Findings[dict[str, Any]]:
        """TensorFlow's recommendations, most bytes first: dicts with kind, title, bytes (at stake; None if unknown),
        evidence, fix. `unknown` lists what could not be determined, and why."""
        measured = self._collect(source)
        return advice_of_recording(measured) if measured.findings else advice_of_process(measured)

    def _recommendations(self, measured: Measured, leaks: Any, patterns: Any, gaps: Any) -> list[str]:
        found = recommendations_of(leaks, patterns, gaps, peak_part(measured), self._advice)
        return [*found, *(f"{each['fix']} ({each['title']})" for each in self.advise(measured))]


__all__ = ["GapFinding", "MemoryAnalyzer", "MemoryPattern", "PerformanceInsight"]
