"""Calls and samples as CSV or JSON."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import Any

from .._analysis.measured import Call, Measured
from .._core.columns import side_by_side

CALL_COLUMNS = (
    "function_name",
    "execution_time",
    "memory_allocated",
    "memory_freed",
    "peak_memory",
    "memory_diff",
    "tensors_created",
    "tensors_deleted",
    "start_time",
    "basis",
)
_FORMATS = ("csv", "json")


def export(measured: Measured, path: Path, format: str | None) -> str:
    """Writes `path` (see MemoryVisualizer.export_data) and returns it. An empty cell is a value that is not known."""
    extension = path.suffix.lower().lstrip(".")
    chosen = (format or (extension if extension in _FORMATS else "csv")).lower()
    if chosen not in _FORMATS:
        raise ValueError(f"Unsupported format: {format} (csv or json)")
    if extension != chosen:
        path = path.with_name(f"{path.name}.{chosen}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if chosen == "json":
        path.write_text(json.dumps(_document(measured), indent=2) + "\n", encoding="utf-8")
        return str(path)
    samples = path
    if measured.calls or not len(measured.series):
        _write_rows(path, CALL_COLUMNS, [_call_row(call) for call in measured.calls])
        samples = path.with_name(f"{path.stem}_samples.csv")
    if len(measured.series):
        columns = measured.series.columns
        rows = [[t, *(values[i] for values in columns.values())] for i, t in enumerate(measured.series.times_s)]
        _write_rows(samples, ("timestamp", *(f"{name}_bytes" for name in columns)), rows)
    return str(path)


def _call_row(call: Call) -> list[Any]:
    return [
        call.name, call.duration_s, call.allocated_bytes, call.freed_bytes, call.peak_bytes, call.kept_bytes,
        call.tensors_created, call.tensors_deleted, call.start_s, call.basis,
    ]  # fmt: skip


def _write_rows(path: Path, header: tuple[str, ...], rows: list[list[Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([["" if cell is None else cell for cell in row] for row in rows])


def _document(measured: Measured) -> dict[str, Any]:
    series = measured.series
    return {
        "metadata": {
            "export_time": time.time(),
            "num_results": len(measured.calls),
            "num_snapshots": len(series),
            "dropped_results": measured.dropped_calls,
            "device": measured.device,
            "basis": measured.basis,
            "basis_reason": measured.basis_reason,
        },
        "results": [dict(side_by_side(CALL_COLUMNS, _call_row(call))) for call in measured.calls],
        "samples": {"timestamp": series.times_s, **{f"{name}_bytes": v for name, v in series.columns.items()}},
    }
