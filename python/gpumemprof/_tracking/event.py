"""The tracker's events, and their conversion to telemetry."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .._telemetry.event import SCHEMA_VERSION_V2, UNKNOWN_HOST, TelemetryEventV2


@dataclass
class TrackingEvent:
    """One event. `timestamp` in seconds since 1970; memory in bytes, None if the device does not report it.

    `event_type` is one of start, stop, sample (every interval, even without a change), allocation, deallocation (memory
    rose or fell since the previous sample), peak, warning, critical, error, cleanup, phase_enter, phase_exit,
    collector_degraded, collector_recovered. A series over time consists of the sample events; the others repeat their
    figures.
    """

    timestamp: float
    event_type: str
    memory_allocated: int | None
    memory_reserved: int | None
    memory_change: int
    device_id: int
    context: str | None = None
    job_id: str | None = None
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    metadata: dict[str, Any] | None = None
    active_memory: int | None = None
    inactive_memory: int | None = None
    device_used: int | None = None
    device_free: int | None = None
    device_total: int | None = None
    backend: str = "cuda"
    session_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def to_telemetry(
    event: TrackingEvent, collector: str, sampling_interval_s: float, missing: Mapping[str, str], basis: str
) -> TelemetryEventV2:
    """The event in version 2. `missing` has the reasons of the collector for what it does not tell."""
    metadata = {**(event.metadata or {}), "basis": basis}
    if event.session_id is not None:
        metadata.setdefault("session_id", event.session_id)
    required = {
        "allocator_allocated_bytes": (event.memory_allocated, "allocated_bytes"),
        "allocator_reserved_bytes": (event.memory_reserved, "reserved_bytes"),
        "device_used_bytes": (event.device_used, "used_bytes"),
    }
    unknown = {
        name: missing.get(key, "not reported by the device") for name, (value, key) in required.items() if value is None
    }
    if unknown:
        metadata["unknown"] = unknown
    return TelemetryEventV2(
        schema_version=SCHEMA_VERSION_V2,
        timestamp_ns=round(event.timestamp * 1e9),
        event_type=event.event_type,
        collector=collector,
        sampling_interval_ms=round(sampling_interval_s * 1000),
        pid=os.getpid(),
        host=_host(),
        device_id=event.device_id,
        allocator_allocated_bytes=event.memory_allocated or 0,
        allocator_reserved_bytes=event.memory_reserved or 0,
        allocator_active_bytes=event.active_memory,
        allocator_inactive_bytes=event.inactive_memory,
        allocator_change_bytes=event.memory_change,
        device_used_bytes=event.device_used or 0,
        device_free_bytes=event.device_free,
        device_total_bytes=event.device_total,
        context=event.context,
        job_id=event.job_id,
        rank=event.rank,
        local_rank=event.local_rank,
        world_size=event.world_size,
        metadata=metadata,
    )


def timeline_of(events: Iterable[TrackingEvent], interval_s: float) -> dict[str, list[Any]]:
    """At most one sample per interval: the last of each interval, unchanged.

    Lists of the same length: timestamps (s since 1970), allocated, reserved, device_used, device_free, device_total
    (bytes or None) and peak_allocated, the highest known allocated bytes in that interval.
    """
    if not interval_s > 0:
        raise ValueError("interval must be > 0")
    names = {
        "timestamps": "timestamp", "allocated": "memory_allocated", "reserved": "memory_reserved",
        "device_used": "device_used", "device_free": "device_free", "device_total": "device_total",
    }  # fmt: skip
    result: dict[str, list[Any]] = {name: [] for name in (*names, "peak_allocated")}
    first: float | None = None
    bucket = -1
    for event in events:
        if event.event_type != "sample":
            continue
        first = event.timestamp if first is None else first
        number = max(bucket, int((event.timestamp - first) / interval_s))
        known = [event.memory_allocated, (event.metadata or {}).get("interval_peak_bytes")]
        if number > bucket:
            bucket = number
            for values in result.values():
                values.append(None)
        else:
            known.append(result["peak_allocated"][-1])
        for name, attribute in names.items():
            result[name][-1] = getattr(event, attribute)
        result["peak_allocated"][-1] = max((v for v in known if v is not None), default=None)
    return result


def _host() -> str:
    try:
        return socket.gethostname() or UNKNOWN_HOST
    except OSError:
        return UNKNOWN_HOST
