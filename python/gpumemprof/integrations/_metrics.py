"""The metrics for all experiment trackers. Sizes in MiB, as their names say, because trackers plot numbers."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from .._analysis.inputs import collect
from .._analysis.measured import Measured
from .._analysis.score import highest_bytes
from .._core.needed import needed

PREFIX = "gpumemprof"
MOST_POINTS = 2000  # of a series: what a tracker's page can draw
_MIB = 2.0**20


def require(module: str, package: str) -> Any:
    """The module; ImportError that names the package to install where it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{needed(module, package)} ({error})") from error


def summary_metrics(source: Any) -> dict[str, float]:
    """Names without a prefix: peak_mib, calls, time_s, samples, and function/NAME/peak_mib, …/calls, …/time_s. What
    is not known is left out."""
    measured = collect(source)
    peak = highest_bytes(measured)
    functions = measured.functions.values()
    metrics: dict[str, float | None] = {
        "peak_mib": None if peak is None else peak / _MIB,
        "limit_mib": None if not measured.limit_bytes else measured.limit_bytes / _MIB,
        "calls": float(sum(f.call_count for f in functions)) if functions else None,
        "time_s": sum(f.total_time_s for f in functions) if functions else None,
        "samples": float(len(measured.series)) if measured.sampled else None,
    }
    for function in functions:
        name = f"function/{_safe(function.name)}"
        metrics[f"{name}/peak_mib"] = None if function.peak_bytes is None else function.peak_bytes / _MIB
        metrics[f"{name}/calls"] = float(function.call_count)
        metrics[f"{name}/time_s"] = function.total_time_s
    return {name: value for name, value in metrics.items() if value is not None}


def series_points(source: Any) -> list[tuple[float, dict[str, float]]]:
    """(seconds since 1970, {"allocated_mib": …}) of every sample; of many the highest of equal groups, at its own
    time."""
    measured = collect(source)
    rows = [
        (time_s, {f"{name}_mib": value / _MIB for name, values in measured.series.columns.items()
                  if (value := values[i]) is not None})
        for i, time_s in enumerate(measured.series.times_s)
    ]  # fmt: skip
    groups = -(-len(rows) // MOST_POINTS)
    if groups <= 1:
        return rows
    chunks = [rows[i : i + groups] for i in range(0, len(rows), groups)]
    return [max(chunk, key=lambda row: max(row[1].values(), default=0.0)) for chunk in chunks]


def write_artifacts(source: Any, folder: Path) -> list[Path]:
    """report.json, data.json, and with matplotlib memory_timeline.png."""
    from .._analysis.analyzer import MemoryAnalyzer
    from ..visualizer import MemoryVisualizer

    measured = collect(source)
    report = MemoryAnalyzer().generate_optimization_report(measured)
    paths = [folder / "report.json", folder / "data.json"]
    paths[0].write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    MemoryVisualizer().export_data(measured, save_path=paths[1])
    if not measured.empty:
        try:
            path = folder / "memory_timeline.png"
            MemoryVisualizer().plot_memory_timeline(measured, save_path=path, interactive=False)
            paths.append(path)
        except ImportError:  # without matplotlib there is no picture, and the rest is as good
            pass
    return paths


def result_metrics(result: Any) -> dict[str, float]:
    """One profiled step: peak_mib, peak_over_start_mib, kept_mib, and own_peak_mib where it is known."""
    before, after = result.memory_before.allocated_memory, result.memory_after.allocated_memory
    metrics = {
        "peak_mib": result.peak_memory_usage() / _MIB,
        "peak_over_start_mib": (result.peak_memory_usage() - before) / _MIB,
        "kept_mib": (after - before) / _MIB,
    }
    if result.own_peak_bytes is not None:
        metrics["own_peak_mib"] = result.own_peak_bytes / _MIB
    return metrics


def basis_of(source: Any) -> str:
    measured: Measured = collect(source)
    return measured.basis or "unknown"


def _safe(name: str) -> str:
    """A name that every tracker takes as one: letters, digits, and what none of them refuses."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-. ") else "_" for c in name)[:120]
