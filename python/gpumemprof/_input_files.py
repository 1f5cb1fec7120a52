"""Files as sources of analyses and pictures: recordings through the C++ core, telemetry through its reader."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ._core import native
from ._inputs import collect, of_events
from ._measured import Measured, Series

MOST_BYTES = 256 * 2**20  # of a JSON object that is read as a whole


def collect_file(path: str) -> Measured:
    """A recording (a folder, a .gmp file), telemetry (JSON, JSON lines, CSV) or results that were saved as JSON.

    Errors: OSError where it cannot be opened, ValueError with one line where its content is none of these."""
    is_folder = os.path.isdir(path)
    if not is_folder:
        open(path, "rb").close()
    if is_folder or native().input_kind(path) == "recording":
        return of_analysis(json.loads(native().analyze_recording(path)))
    saved = _saved_object(path)
    if saved is not None:
        try:
            measured = collect(saved)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            line = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"{path}: not results that were saved by gpumemprof: {line}") from error
        # Saved by who knows which machine: its devices are not ours.
        return replace(measured, limit_bytes=None, device_id=None) if measured.functions else measured
    from .telemetry import load_telemetry_events

    return of_events(load_telemetry_events(path))


def of_analysis(analysis: Mapping[str, Any]) -> Measured:
    """The core's analysis of a recording: the timeline of the device with the highest peak, and the findings."""
    devices = [device for device in analysis.get("devices", ()) if device.get("timeline", {}).get("max_bytes")]
    if not devices:
        return Measured(unknown="the recording has no event of an allocator")
    device = max(devices, key=lambda one: max(one["timeline"]["max_bytes"]))
    timeline = device["timeline"]
    start_s = _unix_start_s(device)
    # Two rows a bucket: the floor that leaks are looked for in, and the exact height, are both kept.
    step_s = timeline["bucket_ns"] / 1e9
    rows: list[tuple[float, dict[str, float | None]]] = []
    for i, (low, high) in enumerate(zip(timeline["min_bytes"], timeline["max_bytes"], strict=False)):
        rows.append((start_s + (i + 0.25) * step_s, {"allocated": low}))
        rows.append((start_s + (i + 0.75) * step_s, {"allocated": high}))
    return Measured(
        series=Series.of_rows(rows),
        device="the CPU" if device.get("device") == "cpu" else str(device.get("device", "")),
        basis="exact",
        basis_reason="a recording of every allocation and free",
        findings=tuple(dict(finding) for finding in analysis.get("findings", ())),
        patterns=tuple(device.get("patterns", ())),
        score_parts=tuple({"name": name, **part} for name, part in analysis.get("score", {}).get("parts", {}).items()),
    )


def _unix_start_s(device: Mapping[str, Any]) -> float:
    """When the timeline began, in seconds since 1970, by the peak, which has both clocks; else on the recording's."""
    start_ns = device["timeline"]["start_ns"]
    peak = device.get("peak", {})
    if peak.get("time_us") is None or peak.get("time_ns") is None:
        return float(start_ns) / 1e9
    return float(peak["time_us"]) / 1e6 - float(peak["time_ns"] - start_ns) / 1e9


def _saved_object(path: str) -> Mapping[str, Any] | None:
    """A JSON object that is not one telemetry record: a summary, saved results, an analysis, a timeline."""
    with open(path, "rb") as file:
        if file.read(64).lstrip()[:1] != b"{" or os.fstat(file.fileno()).st_size > MOST_BYTES:
            return None
        file.seek(0)
        try:
            saved = json.load(file)
        except (
            ValueError,
            RecursionError,
        ):  # JSON lines, or damaged: telemetry's reader tells which, and at which byte
            return None
    return saved if isinstance(saved, dict) and "timestamp_ns" not in saved and "timestamp" not in saved else None
