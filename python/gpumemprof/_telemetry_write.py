"""Writes telemetry files that are whole after every flush, whatever ends the program.

Every flush is one write to the descriptor: nothing waits in a buffer of ours that a signal, a crash or a forked
child could lose or write twice. A JSON list is closed after every flush; the next one overwrites the closing line
with more events and a new one, in that same write.
"""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .telemetry import FIELDS_V2, TelemetryEventV2, telemetry_event_to_dict

FORMATS = ("json", "jsonl", "csv")
_EXTENSIONS = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
_CLOSING = b"\n]\n"
_EMPTY = {"json": b"[" + _CLOSING, "jsonl": b"", "csv": ",".join(FIELDS_V2).encode() + b"\r\n"}


def format_of(path: Any, format: str | None = None, default: str = "csv") -> str:
    """"json", "jsonl" or "csv": what is asked for, else what the extension says. ValueError for another."""
    if format is not None:
        name = format.lower()
        if name not in FORMATS:
            raise ValueError(f"Unsupported format: {format} (json, jsonl or csv)")
        return name
    return _EXTENSIONS.get(Path(os.fspath(path)).suffix.lower(), default)


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


def json_line(event: TelemetryEventV2) -> bytes:
    """One line of JSON without its end."""
    text = json.dumps(plain(telemetry_event_to_dict(event)), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate, from a file name, has no UTF-8


def csv_line(event: TelemetryEventV2) -> bytes:
    """One row, ended; null is empty and metadata is JSON. Line ends inside of a value stay inside its quotes."""
    record = telemetry_event_to_dict(event)
    record["metadata"] = json.dumps(plain(record["metadata"]), ensure_ascii=False) if record["metadata"] else ""
    text = io.StringIO()
    csv.writer(text).writerow("" if record[name] is None else record[name] for name in FIELDS_V2)
    return text.getvalue().encode("utf-8", "backslashreplace")


class TelemetryWriter:
    """Appends events to a file that `load_telemetry_events` and `gpumemprof analyze` can read at every moment.

    The format follows the extension (json, jsonl, csv) unless `format` says it. The file is made anew (mode 0600).
    Only a fatal signal in the middle of a write that crosses a page of memory can cut that write short; the loader then
    says so and reads what is before it.

    `write` never raises: events that a full disk did not take are counted in `lost_events`, and `error` says why. In
    a forked child the writer does nothing: the file is the parent's. Thread-safe.
    """

    def __init__(self, path: Any, format: str | None = None) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.format = format_of(path, format, default="jsonl")
        self.written_events = 0
        self.lost_events = 0
        self.error: str | None = None
        self._lock = threading.RLock()
        self._waiting: list[TelemetryEventV2] = []
        self._writing = False
        self._pid = os.getpid()
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._end = 0  # where the file's whole part ends
        if not self._put(_EMPTY[self.format]):
            reason, self.error = self.error, None
            os.close(self._fd)
            raise OSError(f"{self.path}: {reason}")

    def write(self, events: Iterable[TelemetryEventV2]) -> None:
        """Adds the events, in one write. What it returns from is in the kernel's hands: it survives kill -9."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._waiting.extend(events)
            if self._writing:
                return  # a signal handler that came in the middle of a write: that write takes these along
            self._writing = True
            try:
                while self._waiting and self._fd >= 0:
                    batch, self._waiting = self._waiting, []
                    self._write_batch(batch)
            finally:
                self._writing = False

    def _write_batch(self, batch: list[TelemetryEventV2]) -> None:
        try:
            data = self._encoded(batch)
        except (TypeError, ValueError, RecursionError) as error:
            self.error = f"an event that cannot be written: {error}"
            self.lost_events += len(batch)
            return
        if self._put(data):
            self.written_events += len(batch)
        else:
            self.lost_events += len(batch)

    def close(self) -> None:
        """Idempotent. The file is whole without it, too."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()

    def _encoded(self, batch: list[TelemetryEventV2]) -> bytes:
        if self.format == "csv":
            return b"".join(map(csv_line, batch))
        lines = [json_line(event) for event in batch]
        if self.format == "jsonl":
            return b"".join(line + b"\n" for line in lines)
        before = b"\n" if self._end <= len(_EMPTY["json"]) else b",\n"
        return before + b",\n".join(lines) + _CLOSING

    def _put(self, data: bytes) -> bool:
        """One write at the end (for JSON: over the closing line). Undone where the disk took only a part."""
        # KeyboardInterrupt may have come between a write and the line that remembers it; the file remembers.
        self._end = max(self._end, os.fstat(self._fd).st_size)
        overwritten = len(_CLOSING) if self.format == "json" and self._end else 0
        at = self._end - overwritten
        try:
            count = os.pwrite(self._fd, data, at)
            while count < len(data):
                count += os.pwrite(self._fd, data[count:], at + count)
        except OSError as error:
            self.error = str(error)
            self._undo(at, overwritten)
            return False
        self._end = at + len(data)
        return True

    def _undo(self, at: int, overwritten: int) -> None:
        try:
            if overwritten:
                os.pwrite(self._fd, _CLOSING, at)  # these bytes are allocated: a full disk takes them
            os.ftruncate(self._fd, self._end)
        except OSError as error:
            self.error = str(error)


def write_events(path: Any, events: Iterable[TelemetryEventV2], format: str | None = None) -> int:
    """Writes a whole file, in the format of its extension, and returns how many events.

    Written beside its place and then renamed, so a reader sees the old file or the new one. OSError where it cannot be.
    """
    kind = format_of(path, format)
    target = os.path.realpath(os.fspath(path))
    count = 0
    fd, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(target))
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(b"[\n" if kind == "json" else _EMPTY[kind])
            for event in events:
                if kind == "json":
                    file.write((b",\n" if count else b"") + json_line(event))
                else:
                    file.write(csv_line(event) if kind == "csv" else json_line(event) + b"\n")
                count += 1
            file.write(_CLOSING if kind == "json" and count else b"]\n" if kind == "json" else b"")
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return count
