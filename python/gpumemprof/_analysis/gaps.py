"""The gap: a device's used bytes less what this process's allocator reserved. It consists of other processes, the CUDA
context and kernels, and libraries that allocate outside PyTorch (NCCL, cuBLAS workspaces)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from .._core.printed import format_size
from .findings import Findings
from .series import analyze_series
from .shapes import event_record

LEAST_SAMPLES = 6  # as for any series; docs/scores.md
LEAST_SHARE_OF_DEVICE = 0.01  # a spike or a drift smaller than this does not matter on this device
LEAST_OFFSET_SHARE = 0.05
LEAST_SPLIT_SHARE = 0.3  # of reserved bytes, free but inside segments in use

_REMEDIES = {
    "transient_spike": (
        "Find what ran at that moment outside of PyTorch's allocator: buffers of a collective, a library's workspace",
        "Check with nvidia-smi whether another process started and ended",
    ),
    "persistent_drift": (
        "Look for memory that PyTorch does not manage: communicators and streams that are created repeatedly",
        "Check with nvidia-smi whether another process on the device grows",
    ),
    "steady_offset": (
        "Treat it as memory that PyTorch cannot use: the CUDA context, kernels, other processes",
        "Check with nvidia-smi which processes use the device",
    ),
    "fragmentation_like": (
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "Keep shapes equal from step to step, so that freed blocks fit the next request",
    ),
}


@dataclass
class GapFinding:
    """classification: transient_spike, persistent_drift, steady_offset or fragmentation_like; severity: info, warning
    or critical; confidence: 0 to 1, as docs/scores.md defines it for the statistic in `evidence`."""

    classification: str
    severity: str
    confidence: float
    evidence: dict[str, Any]
    description: str
    remediation: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def analyze_gaps(events: Iterable[Any], sensitivity: float = 0.05) -> Findings[GapFinding]:
    """Findings in telemetry, per device and rank, most severe first.

    `events` are TelemetryEventV2, TrackingEvent or their records. Samples without the device's use or the reserved
    bytes are ignored. If nothing could be determined, the result's `unknown` has the reason.
    """
    groups: dict[tuple[int, Any], list[dict[str, Any]]] = {}
    for record in (event_record(event) for event in events):
        groups.setdefault((record["rank"], record["device_id"]), []).append(record)
    result: Findings[GapFinding] = Findings()
    reasons = []
    for (rank, device), records in sorted(groups.items(), key=str):
        found = _analyze_device(sorted(records, key=lambda r: float(r["time_s"])), sensitivity)
        for finding in found:
            finding.evidence.update(rank=rank, device_id=device)
        result += found
        reasons += [found.unknown] if found.unknown else []
    order = ("critical", "warning", "info")
    result.sort(key=lambda finding: order.index(finding.severity))
    result.unknown = reasons[0] if reasons and not result else "" if groups else "there are no samples"
    return result


def _analyze_device(records: Sequence[dict[str, Any]], sensitivity: float) -> Findings[GapFinding]:
    found: Findings[GapFinding] = Findings(_split_memory(records))
    known = [r for r in records if r["device_used"] is not None and r["reserved"] is not None]
    if len(known) < LEAST_SAMPLES:
        found.unknown = (
            f"{len(known)} samples have both the device's use and the reserved bytes; {LEAST_SAMPLES} are needed"
        )
        return found
    # Where every sample says the same as the allocator, the collector had no figure of the device's own.
    if all(r["device_used"] == max(r["allocated"] or 0, r["reserved"]) for r in known):
        found.unknown = "the device's use in these samples is the allocator's own figure, so there is no gap"
        return found
    gaps = [(r["time_s"], r["device_used"] - r["reserved"]) for r in known]
    # The two counters are read one after the other, so a single negative gap is a race; many are another device.
    negative = sum(gap < 0 for _, gap in gaps)
    if negative > len(gaps) / 10:
        found.unknown = f"in {negative} of {len(gaps)} samples reserved bytes exceed the device's use"
        return found
    total = next((r["device_total"] for r in reversed(known) if r["device_total"]), None)
    return Findings(found + _of_series([g for g in gaps if g[1] >= 0], total, sensitivity))


def _of_series(gaps: Sequence[tuple[float, float]], total: float | None, sensitivity: float) -> list[GapFinding]:
    times, values = [t for t, _ in gaps], [v for _, v in gaps]
    report = analyze_series(times, values, sensitivity)
    least = LEAST_SHARE_OF_DEVICE * total if total else 0.0
    findings = []
    kinds = {"monotonic_increase": "persistent_drift", "spikes": "transient_spike"}
    words = {
        "monotonic_increase": "Memory outside of the allocator grows",
        "spikes": "Memory outside of the allocator spikes",
    }
    for finding in report["findings"]:
        if finding["type"] not in kinds or finding["bytes"] < least:
            continue
        severity = "critical" if total and finding["bytes"] >= 0.05 * total else "warning"
        evidence = {
            **finding["evidence"],
            "bytes": finding["bytes"],
            "samples": len(values),
            "device_total_bytes": total,
        }
        text = f"{words[finding['type']]} by {format_size(finding['bytes'])}"
        findings.append(_finding(kinds[finding["type"]], severity, finding["confidence"], evidence, text))
    middle = median(values)
    if total and middle >= LEAST_OFFSET_SHARE * total:
        evidence = {"median_gap_bytes": middle, "samples": len(values), "device_total_bytes": total}
        text = f"{format_size(middle)} of the device's {format_size(total)} are in use outside of the allocator"
        findings.append(_finding("steady_offset", "warning" if middle >= total / 4 else "info", 1.0, evidence, text))
    return findings


def _split_memory(records: Sequence[dict[str, Any]]) -> list[GapFinding]:
    """Free blocks inside segments in use (`inactive`), never reserved less allocated: that is mostly cache."""
    shares = [r["inactive"] / r["reserved"] for r in records if r["inactive"] is not None and r["reserved"]]
    if len(shares) < LEAST_SAMPLES or (share := median(shares)) < LEAST_SPLIT_SHARE:
        return []
    above = sum(one >= LEAST_SPLIT_SHARE for one in shares) / len(shares)
    evidence = {"median_inactive_share_of_reserved": share, "samples": len(shares)}
    text = f"{100 * share:.0f} % of the reserved memory is free but lies between blocks in use"
    return [_finding("fragmentation_like", "critical" if share >= 0.5 else "warning", above, evidence, text)]


def _finding(kind: str, severity: str, confidence: float, evidence: dict[str, Any], text: str) -> GapFinding:
    return GapFinding(kind, severity, confidence, evidence, text, list(_REMEDIES[kind]))
