"""TelemetryEventV2: one measurement of one process and device, as exchanged in files.

Version 2 requires an integer in fields that a machine may not know. Such a field holds 0, and `metadata["unknown"]`
maps its name to the reason; a field named there is not a measurement. The schema is
docs/schemas/telemetry-event-v2.schema.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

SCHEMA_VERSION_V2: Literal[2] = 2
UNKNOWN_PID = -1
UNKNOWN_HOST = "unknown"
DEFAULT_COLLECTOR = "legacy.unknown"

# The order of keys in files and of columns in CSV.
FIELDS_V2 = (
    "schema_version", "timestamp_ns", "event_type", "collector", "sampling_interval_ms", "pid", "host", "job_id",
    "rank", "local_rank", "world_size", "device_id", "allocator_allocated_bytes", "allocator_reserved_bytes",
    "allocator_active_bytes", "allocator_inactive_bytes", "allocator_change_bytes", "device_used_bytes",
    "device_free_bytes", "device_total_bytes", "context", "metadata",
)  # fmt: skip
IDENTITY_FIELDS = ("job_id", "rank", "local_rank", "world_size")
REQUIRED_V2 = tuple(name for name in FIELDS_V2 if name not in IDENTITY_FIELDS)

_LIMIT = 2**63  # what every reader can hold; nothing that is measured comes near
_COUNTS = (
    "timestamp_ns", "sampling_interval_ms", "rank", "local_rank", "allocator_allocated_bytes",
    "allocator_reserved_bytes", "device_used_bytes",
)  # fmt: skip
_OPTIONAL_COUNTS = (
    "allocator_active_bytes", "allocator_inactive_bytes", "device_free_bytes", "device_total_bytes",
)  # fmt: skip


@dataclass
class TelemetryEventV2:
    """Sizes in bytes; `timestamp_ns` since 1970; `device_id` −1 is the host; `allocator_change_bytes` is signed.

    Raises ValueError for a value of the wrong type or out of range. Some devices report more used or free memory than
    they have; such values are kept, with a line in `metadata["notes"]`.
    """

    schema_version: Literal[2]
    timestamp_ns: int
    event_type: str
    collector: str
    sampling_interval_ms: int
    pid: int
    host: str
    device_id: int
    allocator_allocated_bytes: int
    allocator_reserved_bytes: int
    allocator_active_bytes: int | None
    allocator_inactive_bytes: int | None
    allocator_change_bytes: int
    device_used_bytes: int
    device_free_bytes: int | None
    device_total_bytes: int | None
    context: str | None
    job_id: str | None = None
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _is_int(self.schema_version) or self.schema_version != SCHEMA_VERSION_V2:
            raise ValueError(f"schema_version must be {SCHEMA_VERSION_V2}, not {self.schema_version!r:.40}")
        for name in _COUNTS:
            _check_int(name, getattr(self, name), 0)
        for name in _OPTIONAL_COUNTS:
            if getattr(self, name) is not None:
                _check_int(name, getattr(self, name), 0)
        _check_int("pid", self.pid, -1)
        _check_int("world_size", self.world_size, 1)
        for name in ("device_id", "allocator_change_bytes"):
            _check_int(name, getattr(self, name), 1 - _LIMIT)
        for name in ("event_type", "collector", "host"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ValueError(f"{name} must be a non-empty string, not {value!r:.40}")
        for name in ("context", "job_id"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name} must be a string or null, not {value!r:.40}")
            if value == "":
                setattr(self, name, None)  # it says as little, and CSV could not tell the two apart
        if not isinstance(self.metadata, dict):
            raise ValueError(f"metadata must be an object, not {type(self.metadata).__name__}")
        for name in ("rank", "local_rank"):
            if getattr(self, name) >= self.world_size:
                raise ValueError(f"{name} {getattr(self, name)} must be < world_size {self.world_size}")
        self._note_contradictions()

    def _note_contradictions(self) -> None:
        total = self.device_total_bytes
        said = [("device_used_bytes", self.device_used_bytes), ("device_free_bytes", self.device_free_bytes)]
        over = [name for name, value in said if value is not None and total is not None and value > total]
        notes = [f"{name} exceeds device_total_bytes" for name in over]
        known = self.metadata.get("notes", [])
        if isinstance(known, list) and any(note not in known for note in notes):
            self.metadata = {**self.metadata, "notes": known + [note for note in notes if note not in known]}


def unknown_fields(event: TelemetryEventV2) -> dict[str, str]:
    """The fields of the event that hold no measurement, each with the reason."""
    unknown = event.metadata.get("unknown")
    return {str(k): str(v) for k, v in unknown.items()} if isinstance(unknown, dict) else {}


def telemetry_event_to_dict(event: TelemetryEventV2) -> dict[str, Any]:
    """All 22 keys in the order of FIELDS_V2; `metadata` is a copy."""
    record = {name: getattr(event, name) for name in FIELDS_V2}
    record["metadata"] = dict(event.metadata)
    return record


def validate_telemetry_record(record: Mapping[str, Any]) -> None:
    """Raises ValueError unless a record is exactly version 2: no missing or extra key, no wrong value."""
    strict_event(record)


def strict_event(record: Mapping[str, Any]) -> TelemetryEventV2:
    """The event of a record that must be exactly version 2. Raises ValueError with the reason."""
    if not isinstance(record, Mapping):
        raise ValueError(f"a record must be an object, not {type(record).__name__}")
    missing = [name for name in REQUIRED_V2 if name not in record]
    if missing:
        raise ValueError(f"missing: {', '.join(missing)}")
    extra = sorted(str(name) for name in record if name not in _NAMES)
    if extra:
        raise ValueError(f"not in version 2: {', '.join(extra)[:80]}")
    return TelemetryEventV2(**record)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_int(name: str, value: Any, least: int) -> None:
    if not _is_int(value):
        raise ValueError(f"{name} must be an integer, not {value!r:.40}")
    if not least <= value < _LIMIT:
        raise ValueError(f"{name} must be >= {least} and < 2**63")


_NAMES = frozenset(f.name for f in fields(TelemetryEventV2))
