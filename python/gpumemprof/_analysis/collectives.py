"""Memory outside the allocator during collectives, such as NCCL's buffers.

The inputs are samples of the gap (the device's used bytes less the rank allocator's reserved bytes), marks that name a
collective (`with tracker.phase("all_reduce"):`, or an event with "collective" in its metadata), and whether other
ranks' gaps rose at the same moment. None of this proves who owns the bytes, so every result has its evidence and a
confidence made of documented parts. Without a rise there is no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

from .findings import Findings
from .shapes import event_record

_MS = 1_000_000
# Words of NCCL's, MPI's and torch.distributed's operations. Whole words: "broadcasting_shapes" is no collective.
_COLLECTIVE = re.compile(
    r"(?<![a-z0-9])(nccl|rccl|gloo|collectives?|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|barrier"
    r"|(?:all_?)?gather|scatter|p2p|send_?recv)(?![a-z0-9])"
)
# 0.6745 is the third quartile of the standard normal distribution: it makes MAD / 0.6745 estimate its deviation.
_NORMAL_QUARTILE = 0.6745


@dataclass(frozen=True)
class CollectiveAttributionConfig:
    """Thresholds. A rise is min_gap_bytes above the rank's median gap, min_gap_ratio of the device if its size is
    known, and robust_zscore_threshold deviations. A mark counts within marker_window_ns of the rise. Ranks rise
    together within synchrony_window_ns, which counts if at least min_synchrony_ratio of the others do. Results below
    min_confidence are omitted. interval_padding_ns is the longest interval between rises that are joined."""

    preset: str = "medium"
    min_samples_per_rank: int = 6
    min_gap_bytes: int = 128 * 2**20
    min_gap_ratio: float = 0.04
    robust_zscore_threshold: float = 2.5
    marker_window_ns: int = 150 * _MS
    interval_padding_ns: int = 120 * _MS
    synchrony_window_ns: int = 120 * _MS
    min_synchrony_ratio: float = 0.5
    min_confidence: float = 0.5


_PRESETS = {
    "low": CollectiveAttributionConfig("low", 8, 256 * 2**20, 0.08, 3.5, 100 * _MS, 80 * _MS, 80 * _MS, 0.67, 0.65),
    "medium": CollectiveAttributionConfig(),
    "high": CollectiveAttributionConfig("high", 4, 64 * 2**20, 0.02, 2.0, 250 * _MS, 200 * _MS, 200 * _MS, 0.34, 0.35),
}


@dataclass(frozen=True)
class CollectiveAttributionEvidence:
    """In bytes. `robust_zscore` is None if all other samples are equal, `synchrony_ratio` with a single rank."""

    rise_bytes: int
    baseline_gap_bytes: int
    device_total_bytes: int | None
    robust_zscore: float | None
    synchrony_ratio: float | None
    synchronous_ranks: list[int] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CollectiveAttributionResult:
    """A rise of one rank's gap. Times of its first and last sample in ns since 1970. classification: confident
    (confidence 0.8 or more), likely (0.6) or suspect."""

    rank: int
    interval_start_ns: int
    interval_end_ns: int
    classification: str
    confidence: float
    reason_codes: list[str]
    evidence: CollectiveAttributionEvidence

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Mark:
    """A collective that the program named: a phase from its begin to its end, or a moment."""

    rank: int
    start_ns: int
    end_ns: int
    name: str


@dataclass(frozen=True)
class _Rise:
    start_ns: int
    end_ns: int
    bytes: int
    zscore: float | None


def resolve_collective_attribution_config(
    preset: str = "medium", overrides: Mapping[str, Any] | None = None
) -> CollectiveAttributionConfig:
    """The preset (low, medium or high sensitivity) with some fields overridden. Raises ValueError for an unknown preset
    or field."""
    if preset not in _PRESETS:
        raise ValueError(f"preset must be one of {', '.join(_PRESETS)}, not {preset!r:.40}")
    thresholds = set(CollectiveAttributionConfig.__dataclass_fields__) - {"preset"}
    changed = dict(overrides or {})
    if unknown := set(changed) - thresholds:
        raise ValueError(f"unknown threshold {', '.join(sorted(map(str, unknown)))}")
    return replace(_PRESETS[preset], **changed)


def attribute_collective_memory(
    events: Iterable[Any],
    *,
    config: CollectiveAttributionConfig | None = None,
    preset: str = "medium",
    overrides: Mapping[str, Any] | None = None,
) -> Findings[CollectiveAttributionResult]:
    """Rises of the gap that marks or other ranks connect to a collective, in time order.

    Confidence: 0.5 for a mark, 0.35 · the share of other ranks that rose together (if it reaches min_synchrony_ratio),
    0.15 · min(1, z / (2 · threshold)), or 0.15 if all other samples are equal. If nothing could be determined, the
    result's `unknown` has the reason. Events are TelemetryEventV2, TrackingEvent or their records.
    """
    chosen = config or resolve_collective_attribution_config(preset, overrides)
    records = [event_record(event) for event in events]
    gaps, totals = _gaps(records)
    enough = {rank: rows for rank, rows in gaps.items() if len(rows) >= chosen.min_samples_per_rank}
    if not enough:
        most = max(map(len, gaps.values()), default=0)
        return Findings(
            unknown=f"{most} samples of a rank have the device use outside of the allocator; at least "
            f"{chosen.min_samples_per_rank} are needed"
        )
    marks = _marks(records)
    rises = {rank: _rises(rows, totals.get(rank), chosen) for rank, rows in enough.items()}
    results = [
        result
        for rank, own in rises.items()
        for rise in own
        if (result := _judge(rank, rise, rises, marks, enough[rank], totals.get(rank), chosen)) is not None
    ]
    return Findings(sorted(results, key=lambda result: (result.interval_start_ns, result.rank)))


def _gaps(records: Iterable[dict[str, Any]]) -> tuple[dict[int, list[tuple[int, int]]], dict[int, int]]:
    """By rank: (time_ns, gap in bytes) in the order of time, and the device's size where it is known."""
    gaps: dict[int, list[tuple[int, int]]] = {}
    totals: dict[int, int] = {}
    own_figures: dict[int, bool] = {}
    for record in records:
        if record["event_type"] != "sample" or record["device_used"] is None or record["reserved"] is None:
            continue
        rank = record["rank"]
        same = record["device_used"] == max(record["allocated"] or 0, record["reserved"])
        own_figures[rank] = own_figures.get(rank, True) and same
        gap = int(record["device_used"] - record["reserved"])
        if gap >= 0:  # a negative one is two counters read at two moments
            gaps.setdefault(rank, []).append((round(record["time_s"] * 1e9), gap))
        if record["device_total"]:
            totals[rank] = int(record["device_total"])
    # Where every sample says what the allocator says, nobody looked at the device itself.
    return {rank: sorted(rows) for rank, rows in gaps.items() if not own_figures[rank]}, totals


def _marks(records: Iterable[dict[str, Any]]) -> list[_Mark]:
    found: list[_Mark] = []
    open_phases: dict[tuple[int, str], list[_Mark]] = {}
    for record in records:
        name = _collective_name(record)
        if name is None:
            continue
        at, rank = round(record["time_s"] * 1e9), record["rank"]
        begun = open_phases.setdefault((rank, name), [])
        if record["event_type"] == "phase_exit" and begun:
            begun.pop().end_ns = at
            continue
        found.append(_Mark(rank, at, at, name))
        if record["event_type"] == "phase_enter":
            begun.append(found[-1])
    return found


def _collective_name(record: dict[str, Any]) -> str | None:
    if record["event_type"] == "sample":
        return None
    texts = (record["phase"], record["context"], record["event_type"])
    named = next((text for text in texts if text and _COLLECTIVE.search(text.lower())), None)
    return record["collective"] or named


def _rises(
    rows: Sequence[tuple[int, int]], total: int | None, config: CollectiveAttributionConfig
) -> list[_Rise]:
    middle = median(gap for _, gap in rows)
    deviation = median(abs(gap - middle) for _, gap in rows)
    least = max(config.min_gap_bytes, config.min_gap_ratio * total if total else 0)
    found: list[_Rise] = []
    for time_ns, gap in rows:
        rise = gap - middle
        zscore = _NORMAL_QUARTILE * rise / deviation if deviation else None
        if rise < least or (zscore is not None and zscore < config.robust_zscore_threshold):
            continue
        last = found[-1] if found else None
        if last and time_ns - last.end_ns <= config.interval_padding_ns:
            higher = last if last.bytes >= rise else _Rise(0, 0, int(rise), zscore)
            found[-1] = _Rise(last.start_ns, time_ns, higher.bytes, higher.zscore)
        else:
            found.append(_Rise(time_ns, time_ns, int(rise), zscore))
    return found


def _judge(
    rank: int,
    rise: _Rise,
    rises: Mapping[int, Sequence[_Rise]],
    marks: Sequence[_Mark],
    rows: Sequence[tuple[int, int]],
    total: int | None,
    config: CollectiveAttributionConfig,
) -> CollectiveAttributionResult | None:
    names = [mark.name for mark in marks if mark.rank == rank and _overlap(rise, mark, config.marker_window_ns)]
    others = [other for other in rises if other != rank]
    together = [other for other in others if any(_overlap(rise, one, config.synchrony_window_ns) for one in rises[other])]
    ratio = len(together) / len(others) if others else None
    synchronous = ratio is not None and ratio >= config.min_synchrony_ratio
    if not names and not synchronous:
        return None  # a rise alone is a finding of gap_analysis, not a collective
    strength = 1.0 if rise.zscore is None else min(1.0, rise.zscore / (2 * config.robust_zscore_threshold))
    confidence = 0.5 * bool(names) + 0.35 * (ratio or 0.0) * synchronous + 0.15 * strength
    if confidence < config.min_confidence:
        return None
    codes = (["marker"] if names else ["no_marker"]) + (["synchronous_ranks"] if synchronous else [])
    codes += (["single_rank"] if not others else []) + (["device_total_unknown"] if total is None else [])
    middle = int(median(gap for _, gap in rows))
    evidence = CollectiveAttributionEvidence(rise.bytes, middle, total, rise.zscore, ratio, together, names)
    kind = "confident" if confidence >= 0.8 else "likely" if confidence >= 0.6 else "suspect"
    return CollectiveAttributionResult(rank, rise.start_ns, rise.end_ns, kind, confidence, codes, evidence)


def _overlap(one: _Rise, other: _Rise | _Mark, window_ns: int) -> bool:
    return one.start_ns - window_ns <= other.end_ns and other.start_ns - window_ns <= one.end_ns
