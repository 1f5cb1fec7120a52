"""Ranks on one clock: which rose first.

The clock is that of the hosts (`timestamp_ns` since 1970), without correction. Ranks on different machines are
comparable only as far as their clocks are synchronized, which `notes` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from .shapes import event_record, get

LEAST_RISE_BYTES = 64 * 2**20
LEAST_RISE_SHARE = 0.1  # of the rank's highest
_BASELINE_SAMPLES = 5


@dataclass(frozen=True)
class RankTimelinePoint:
    """One sample in bytes. `used_bytes` is the device's use, or the allocated bytes if that is unknown."""

    rank: int
    timestamp_ns: int
    used_bytes: int


@dataclass
class CrossRankMergeResult:
    """The ranks of the job with the most samples. `missing_ranks` are ranks of world_size without a sample."""

    job_id: str | None
    world_size: int
    points: dict[int, list[RankTimelinePoint]]
    missing_ranks: list[int]
    notes: list[str] = field(default_factory=list)

    @property
    def participating_ranks(self) -> list[int]:
        return sorted(self.points)


@dataclass
class FirstCauseSuspect:
    """A rank that rose. `timestamp_ns` is when it first was `rise_bytes` above its baseline without falling back;
    confidence: high, medium or low."""

    rank: int
    timestamp_ns: int
    baseline_bytes: int
    rise_bytes: int
    lead_over_next_ns: int | None
    confidence: str


@dataclass
class FirstCauseAnalysisResult:
    merge: CrossRankMergeResult
    suspects: list[FirstCauseSuspect]

    @property
    def cluster_onset_timestamp_ns(self) -> int | None:
        """The time at which the second rank rose: from then on more than one rank is affected."""
        return self.suspects[1].timestamp_ns if len(self.suspects) > 1 else None


def merge_cross_rank_timelines(events: Iterable[Any]) -> CrossRankMergeResult:
    """The samples of all ranks in time order. Events of other jobs than the most common one are omitted, with a note.
    Events are TelemetryEventV2, TrackingEvent or their records."""
    listed = [event for event in events if (get(event, "event_type") or "sample") == "sample"]
    jobs = Counter(get(event, "job_id") for event in listed)
    job = jobs.most_common(1)[0][0] if jobs else None
    own = [event for event in listed if get(event, "job_id") == job]
    result = CrossRankMergeResult(job, 1, {}, [])
    for event in own:
        record = event_record(event)
        used = record["device_used"] if record["device_used"] is not None else record["allocated"]
        result.world_size = max(result.world_size, int(get(event, "world_size") or 1), record["rank"] + 1)
        if used is not None:
            point = RankTimelinePoint(record["rank"], int(record["time_s"] * 1e9), int(used))
            result.points.setdefault(record["rank"], []).append(point)
    for points in result.points.values():
        points.sort(key=lambda point: point.timestamp_ns)
    result.missing_ranks = [rank for rank in range(result.world_size) if rank not in result.points]
    hosts = {str(get(event, "host")) for event in own if get(event, "host")}
    if len(hosts) > 1:
        result.notes.append(f"{len(hosts)} hosts: their times are only as comparable as their clocks")
    if len(jobs) > 1:
        result.notes.append(f"{len(listed) - len(own)} samples of {len(jobs) - 1} other jobs are left out")
    if not own:
        result.notes.append("there are no samples")
    return result


def analyze_cross_rank_events(events: Iterable[Any]) -> FirstCauseAnalysisResult:
    """Ranks that rose by max(64 MiB, a tenth of their highest) over the median of their first samples and stayed there
    until their peak, earliest first.

    Confidence is high if the first led the next by more than two of the slower one's sampling intervals, medium for
    more than one, else low, because the order within an interval is unknown. It is high if only one rank rose.
    """
    merge = merge_cross_rank_timelines(events)
    found = [(onset, rank) for rank, points in merge.points.items() if (onset := _onset(points)) is not None]
    found.sort(key=lambda pair: pair[0].timestamp_ns)
    suspects = []
    for place, (onset, rank) in enumerate(found):
        lead = found[place + 1][0].timestamp_ns - onset.timestamp_ns if place + 1 < len(found) else None
        ranks = [rank] + ([found[place + 1][1]] if lead is not None else [])
        interval = max(_interval_ns(merge.points[one]) for one in ranks)
        confidence = "high" if lead is None or lead > 2 * interval else "medium" if lead > interval else "low"
        base = _baseline(merge.points[rank])
        rise = max(point.used_bytes for point in merge.points[rank]) - base
        suspects.append(FirstCauseSuspect(rank, onset.timestamp_ns, base, rise, lead, confidence))
    return FirstCauseAnalysisResult(merge, suspects)


def summarize_cross_rank_analysis(result: FirstCauseAnalysisResult) -> dict[str, Any]:
    """The result as plain values."""
    merge = result.merge
    return {
        "job_id": merge.job_id,
        "world_size": merge.world_size,
        "participating_ranks": merge.participating_ranks,
        "missing_ranks": merge.missing_ranks,
        "rank_sample_counts": {rank: len(points) for rank, points in sorted(merge.points.items())},
        "alignment_offsets_ns": dict.fromkeys(merge.participating_ranks, 0),
        "cluster_onset_timestamp_ns": result.cluster_onset_timestamp_ns,
        "first_cause_suspects": [asdict(suspect) for suspect in result.suspects],
        "notes": merge.notes,
    }


def _baseline(points: Sequence[RankTimelinePoint]) -> int:
    return int(median(point.used_bytes for point in points[:_BASELINE_SAMPLES]))


def _onset(points: Sequence[RankTimelinePoint]) -> RankTimelinePoint | None:
    """The first sample above the threshold from which memory stayed above it until its peak: a staircase counts, what
    came and went before does not."""
    if len(points) <= _BASELINE_SAMPLES:
        return None
    peak = max(range(len(points)), key=lambda i: points[i].used_bytes)
    least = _baseline(points) + max(LEAST_RISE_BYTES, LEAST_RISE_SHARE * points[peak].used_bytes)
    onset = None
    for point in reversed(points[: peak + 1]):
        if point.used_bytes < least:
            break
        onset = point
    return onset


def _interval_ns(points: Sequence[RankTimelinePoint]) -> float:
    return median(b.timestamp_ns - a.timestamp_ns for a, b in zip(points, points[1:]))
