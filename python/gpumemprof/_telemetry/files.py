"""Telemetry files: the core's reader and writer, with events."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from .._core.columns import side_by_side
from .._core.native import native
from .._core.whole_file import whole_file
from .event import DEFAULT_COLLECTOR, FIELDS_V2, SCHEMA_VERSION_V2, TelemetryEventV2, strict_event

FORMATS = ("json", "jsonl", "csv")
_EXTENSIONS = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
_NAMES = FIELDS_V2[1:]  # the version is the same in all
_REQUIRED_SIZES = ("allocator_allocated_bytes", "allocator_reserved_bytes", "device_used_bytes")
_BATCH = 1000


def load_telemetry_events(
    path: Any, permissive_legacy: bool = True, events_key: str | None = None
) -> list[TelemetryEventV2]:
    """The events of a file: JSON (list, {"events": […]}, one event, columns), JSON lines or CSV, recognized by content.

    `events_key` is the key of the list in a JSON object. With permissive_legacy=False only version 2 is accepted.
    Raises ValueError with one line, "FILE: what is wrong (at byte N)"; OSError if the file cannot be read. A truncated
    last record is skipped with a warning.
    """
    name = os.fspath(path)
    events, losses = native().read_telemetry(os.fsencode(name), not permissive_legacy, events_key)
    for loss in losses:
        warnings.warn(f"{os.fsdecode(name)}: {loss}", stacklevel=2)
    return [_event(values) for values in events]


def telemetry_event_from_record(
    record: Mapping[str, Any],
    permissive_legacy: bool = True,
    default_collector: str = DEFAULT_COLLECTOR,
    default_sampling_interval_ms: int = 0,
) -> TelemetryEventV2:
    """The event of a record from a file: version 2, a later one (3, 4) or one of the formats without a version.

    With permissive_legacy=False it must be exactly version 2. Raises ValueError with the reason.
    """
    if not permissive_legacy:
        return strict_event(record)
    if not isinstance(record, Mapping):
        raise ValueError(f"a record must be an object, not {type(record).__name__}")
    event = _event(native().telemetry_record(_json(record)))
    if event.collector == DEFAULT_COLLECTOR:
        event.collector = default_collector
    if record.get("sampling_interval_ms") in (None, ""):
        event.sampling_interval_ms = default_sampling_interval_ms
    return event


def _event(values: tuple[Any, ...]) -> TelemetryEventV2:
    record: dict[str, Any] = dict(side_by_side(_NAMES, values))
    for name in _REQUIRED_SIZES:  # what is not known is 0, and metadata says why
        record[name] = record[name] or 0
    record["metadata"] = json.loads(record["metadata"])
    return TelemetryEventV2(schema_version=SCHEMA_VERSION_V2, **record)


def _values(event: TelemetryEventV2) -> tuple[Any, ...]:
    return (*(getattr(event, name) for name in _NAMES[:-1]), _json(event.metadata))


def format_of(path: Any, format: str | None = None, default: str = "csv") -> str:
    """"json", "jsonl" or "csv": what is asked for, else what the extension says. ValueError for another."""
    if format is not None:
        name = format.lower()
        if name not in FORMATS:
            raise ValueError(f"Unsupported format: {format} (json, jsonl or csv)")
        return name
    return _EXTENSIONS.get(Path(os.fspath(path)).suffix.lower(), default)


def _json(value: Mapping[str, Any]) -> str:
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate, from a file name, has no UTF-8


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON can say it: keys and foreign objects as text, no NaN (null), no cycle."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None  # infinities and NaN have no JSON
    if depth >= 32:
        return "…"
    if isinstance(value, Mapping):
        return {str(k): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v, depth + 1) for v in value]
    try:
        return str(value)
    except Exception:  # somebody's __str__
        return f"<{type(value).__name__}>"


class TelemetryWriter:
    """Appends events to a file that `load_telemetry_events` and `gpumemprof analyze` can read at any moment.

    The format is `format`, by default that of the extension (json, jsonl, csv). The file is created anew (mode 0600).
    Raises ValueError if another tracker writes it. Only a fatal signal during a write that crosses a memory page can
    truncate that write; the loader then says so and reads what precedes it.

    `write` never raises: events that a full disk rejected are counted in `lost_events`, with the reason in `error`. In
    a forked child the writer does nothing: the file is the parent's. Thread-safe.
    """

    def __init__(self, path: Any, format: str | None = None) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.format = format_of(path, format, default="jsonl")
        self.written_events = 0
        self.lost_events = 0
        self.error: str | None = None
        self._lock = threading.RLock()  # a signal handler may write in the middle of a write
        self._pid = os.getpid()
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._file: Any = native().telemetry_writer(os.fsencode(self.path), self.format)

    def write(self, events: Iterable[TelemetryEventV2]) -> None:
        """Appends the events in one write. Once it returns the kernel has them: they survive kill -9."""
        if os.getpid() != self._pid:
            return
        batch = list(events)
        with self._lock:
            if self._file is None or not batch:
                return
            try:
                self._file.append([_values(event) for event in batch])
            except (OSError, TypeError, ValueError, RuntimeError) as error:
                self.error = str(error)
                self.lost_events += len(batch)
            else:
                self.written_events += len(batch)

    def close(self) -> None:
        """Idempotent. The file is complete even without it."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                file.close()


def write_events(path: Any, events: Iterable[TelemetryEventV2], format: str | None = None) -> int:
    """Writes a whole file, in the format of its extension, and returns the number of events.

    A reader sees the old file or the new one. Raises OSError on failure.
    """
    kind = format_of(path, format)
    count = 0
    with whole_file(path) as made:
        file = native().telemetry_writer(os.fsencode(made), kind)
        rest = iter(events)
        while batch := list(islice(rest, _BATCH)):
            file.append([_values(event) for event in batch])
            count += len(batch)
        file.close()
    return count
