"""Records of other shapes than version 2, as events of version 2.

What such a record does not say is a stand-in (0, or what loaders have always put there) that
`metadata["unknown"]` names, so nobody takes it for a measurement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .telemetry import FIELDS_V2, SCHEMA_VERSION_V2, UNKNOWN_HOST, UNKNOWN_PID, TelemetryEventV2

MIB = 1 << 20
_NOT_SAID = "the record does not say"
# Our field <- the names under which older records have it, bytes or MiB.
_SIZES: dict[str, tuple[str, ...]] = {
    "allocator_allocated_bytes": ("memory_allocated", "allocated_memory", "allocated", "allocated_bytes", "rss"),
    "allocator_reserved_bytes": ("memory_reserved", "reserved_memory", "reserved", "reserved_bytes"),
    "allocator_active_bytes": ("active_memory", "active_bytes"),
    "allocator_inactive_bytes": ("inactive_memory", "inactive_bytes"),
    "allocator_change_bytes": ("memory_change",),
    "device_used_bytes": ("device_used", "used_bytes"),
    "device_free_bytes": ("device_free", "free_bytes"),
    "device_total_bytes": ("device_total", "total_bytes", "total_memory"),
}
_MEBIBYTES = {
    "allocator_allocated_bytes": ("memory_mb", "gpu_memory_mb", "allocated_mb"),
    "allocator_reserved_bytes": ("gpu_memory_reserved_mb", "reserved_mb"),
}
_REQUIRED_SIZES = (
    "allocator_allocated_bytes", "allocator_reserved_bytes", "allocator_change_bytes", "device_used_bytes",
)  # fmt: skip
_OTHERS = {"timestamp", "time", "event_type", "type", "device", "backend", "interval"} | set(FIELDS_V2)
_TAKEN = _OTHERS | {n for names in (*_SIZES.values(), *_MEBIBYTES.values()) for n in names}


def event_of_old_record(record: Mapping[str, Any], collector: str, interval_ms: int) -> TelemetryEventV2:
    """A record without a version. ValueError where it has no time or a size makes no sense."""
    unknown: dict[str, str] = {}
    sizes = {name: _size(record, name) for name in _SIZES}
    allocated = sizes["allocator_allocated_bytes"]
    if allocated is None:
        unknown["allocator_allocated_bytes"] = _NOT_SAID
    for name in ("allocator_reserved_bytes", "device_used_bytes"):
        if sizes[name] is None:
            unknown[name] = _NOT_SAID
            sizes[name] = allocated or 0
    if sizes["allocator_change_bytes"] is None:
        unknown["allocator_change_bytes"] = _NOT_SAID
    rank = _whole(record.get("rank"), 0)
    if rank and record.get("world_size") in (None, ""):
        unknown["world_size"] = _NOT_SAID  # at least this large
    return TelemetryEventV2(
        schema_version=SCHEMA_VERSION_V2,
        timestamp_ns=_time_ns(record),
        event_type=_text(record, "event_type") or _text(record, "type") or "sample",
        collector=_text(record, "collector") or _collector_of(record) or collector,
        sampling_interval_ms=_whole(record.get("sampling_interval_ms"), interval_ms),
        pid=_whole(record.get("pid"), UNKNOWN_PID),
        host=_text(record, "host") or UNKNOWN_HOST,
        device_id=_device_id(record),
        context=_text(record, "context"),
        job_id=_text(record, "job_id"),
        rank=rank,
        local_rank=_whole(record.get("local_rank"), rank),
        world_size=_whole(record.get("world_size"), rank + 1),
        allocator_allocated_bytes=allocated or 0,
        allocator_reserved_bytes=sizes["allocator_reserved_bytes"] or 0,
        allocator_active_bytes=sizes["allocator_active_bytes"],
        allocator_inactive_bytes=sizes["allocator_inactive_bytes"],
        allocator_change_bytes=sizes["allocator_change_bytes"] or 0,
        device_used_bytes=sizes["device_used_bytes"] or 0,
        device_free_bytes=sizes["device_free_bytes"],
        device_total_bytes=sizes["device_total_bytes"],
        metadata=_metadata(record, unknown),
    )


def event_of_later_version(record: Mapping[str, Any]) -> TelemetryEventV2:
    """Versions 3 (a session) and 4 (counters may be null): more keys go into metadata, null counters are unknown."""
    values = {name: record[name] for name in FIELDS_V2 if name in record}
    missing = [n for n in ("timestamp_ns", "event_type", "collector") if n not in values]
    if missing:
        raise ValueError(f"missing: {', '.join(missing)}")
    unknown: dict[str, str] = {}
    for name in _REQUIRED_SIZES:
        if values.get(name) is None:
            values[name] = 0
            unknown[name] = f"null in version {record['schema_version']}"
    for name in ("allocator_active_bytes", "allocator_inactive_bytes", "device_free_bytes", "device_total_bytes"):
        values.setdefault(name, None)
    values.setdefault("context", None)
    stand_ins = {"sampling_interval_ms": 0, "pid": UNKNOWN_PID, "host": UNKNOWN_HOST, "device_id": -1}
    values.update({name: stand_in for name, stand_in in stand_ins.items() if values.get(name) is None})
    own = values.get("metadata") or {}
    if not isinstance(own, dict):
        raise ValueError(f"metadata must be an object, not {type(own).__name__}")
    others = {str(k): v for k, v in record.items() if k not in FIELDS_V2}
    metadata = {**own, **others, "source_schema_version": record["schema_version"]}
    if unknown:
        metadata["unknown"] = unknown
    return TelemetryEventV2(**{**values, "schema_version": SCHEMA_VERSION_V2, "metadata": metadata})


def records_of_columns(columns: Mapping[str, Any]) -> Iterator[dict[str, Any]] | None:
    """The rows of an object of parallel lists, {"timestamps": […], "allocated": […]}; None where it is none."""
    times = columns.get("timestamps")
    if not isinstance(times, list):
        return None
    names = {"memory_usage": "memory_mb"}  # that shape counts in MiB
    others = ("timestamps", "events")
    lists = {names.get(k, k): v for k, v in columns.items() if isinstance(v, list) and k not in others}
    chosen = {k: v for k, v in lists.items() if k in _TAKEN and len(v) == len(times)}
    return ({"timestamp": time, **{k: v[i] for k, v in chosen.items()}} for i, time in enumerate(times))


def _size(record: Mapping[str, Any], name: str) -> int | None:
    """Bytes, or None where the record has no such size."""
    for key in (name, *_SIZES[name]):
        if record.get(key) not in (None, ""):
            return _number(key, record[key], 1)
    for key in _MEBIBYTES.get(name, ()):
        if record.get(key) not in (None, ""):
            return _number(key, record[key], MIB)
    return None


def _number(key: str, value: Any, factor: int) -> int:
    """Text (from CSV) or a number, as whole bytes. Large integers stay exact: they never pass through a float."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,19}", value.strip()):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value * factor
    try:
        number = float(value) * factor
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{key} must be a number, not {value!r:.40}")
    return round(number)


def _time_ns(record: Mapping[str, Any]) -> int:
    if record.get("timestamp_ns") not in (None, ""):
        return _number("timestamp_ns", record["timestamp_ns"], 1)
    for key in ("timestamp", "time"):
        if record.get(key) not in (None, ""):
            return _number(key, record[key], 1_000_000_000)
    raise ValueError("no timestamp_ns and no timestamp")


def _whole(value: Any, default: int) -> int:
    return default if value in (None, "") else _number("value", value, 1)


def _text(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    return None if value in (None, "") else str(value)


def _collector_of(record: Mapping[str, Any]) -> str | None:
    backend = _text(record, "backend")
    return f"gpumemprof.{backend}_tracker" if backend in ("cuda", "rocm", "mps", "cpu") else None


def _device_id(record: Mapping[str, Any]) -> int:
    if record.get("device_id") not in (None, ""):
        return _number("device_id", record["device_id"], 1)
    number = re.search(r":(\d{1,6})$", _text(record, "device") or "")
    return int(number[1]) if number else -1


def _metadata(record: Mapping[str, Any], unknown: dict[str, str]) -> dict[str, Any]:
    """The record's own, its `metadata_*` columns, and whatever key has no field of its own."""
    own = record.get("metadata")
    if own not in (None, "") and not isinstance(own, Mapping):
        raise ValueError(f"metadata must be an object, not {type(own).__name__}")
    result = dict(own) if isinstance(own, Mapping) else {}
    for key, value in record.items():
        if key not in _TAKEN and value not in (None, ""):
            result[str(key).removeprefix("metadata_")] = value
    if isinstance(result.get("unknown"), Mapping):
        unknown = {**result["unknown"], **unknown}
    return {**result, "unknown": unknown} if unknown else result
