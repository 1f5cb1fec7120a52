"""The optimization report as a dict, text, and HTML in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from .._core.printed import format_size


class OptimizationReport(dict[str, Any]):
    """What `MemoryAnalyzer.generate_optimization_report` returns: plain values under documented keys, so that
    json.dumps takes it, and a table of its own in a notebook."""

    def score_words(self) -> str:
        score = self["optimization_score"]
        return f"{score:.1f}/10" if score is not None else f"no score: {self['optimization_score_reason']}"

    def _repr_html_(self) -> str:
        summary = self["summary"]
        peak = summary["peak_memory"]
        lines = [f"<b>Memory score: {escape(self.score_words())}</b>"]
        if peak is not None:
            lines.append(f"Peak {format_size(peak)}, {escape(str(summary['basis'] or 'of unknown basis'))}")
        lines += [_row(leak["severity"], leak["description"]) for leak in self["leaks"]]
        lines += [_row(gap["severity"], gap["description"]) for gap in self["gap_analysis"]]
        items = "".join(f"<li>{escape(text)}</li>" for text in self["recommendations"])
        return "<div>" + "<br>".join(lines) + f"<ol>{items}</ol></div>"


def _row(severity: str, text: str) -> str:
    return f"<b>{escape(severity)}</b>: {escape(text)}"
