"""The core's analysis of a recording in the form of measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .measured import Measured, Series


def of_analysis(analysis: Mapping[str, Any]) -> Measured:
    """The core's analysis of a recording: the timeline of the device with the highest peak, and the findings."""
    devices = [device for device in analysis.get("devices", ()) if device.get("timeline", {}).get("max_bytes")]
    if not devices:
        return Measured(unknown="the recording has no event of an allocator")
    # Regions hold the blocks that are counted on other devices.
    device = max(devices, key=lambda one: (one.get("layer") != "driver", max(one["timeline"]["max_bytes"])))
    timeline = device["timeline"]
    start_s = _unix_start_s(device)
    # Two rows a bucket: the floor that leaks are looked for in, and the exact height, are both kept.
    step_s = timeline["bucket_ns"] / 1e9
    rows: list[tuple[float, dict[str, float | None]]] = []
    for i, (low, high) in enumerate(zip(timeline["min_bytes"], timeline["max_bytes"])):
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
