"""Reads telemetry files: JSON, JSON lines and CSV, told apart by their content. Every file is hostile."""

from __future__ import annotations

import csv
import json
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ._telemetry_legacy import records_of_columns
from .telemetry import FIELDS_V2, TelemetryEventV2, telemetry_event_from_record

MAX_WHOLE_BYTES = 1 << 30  # a JSON document is read as a whole
MAX_FILE_BYTES = 1 << 36  # lines are read one by one
MAX_LINE_BYTES = 1 << 24

_INTEGERS = frozenset(FIELDS_V2) - {"event_type", "collector", "host", "job_id", "context", "metadata"}
_field_limit_lock = threading.Lock()  # csv keeps its limit for the whole process


class _Damaged(ValueError):
    """What is wrong, and the byte where it is."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


def read_events(path: Any, permissive_legacy: bool, events_key: str | None) -> list[TelemetryEventV2]:
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE_BYTES:
                raise _Damaged(f"larger than {MAX_FILE_BYTES >> 30} GiB", MAX_FILE_BYTES)
            return [
                _event(record, offset, permissive_legacy) for record, offset in _records(file, size, events_key, name)
            ]
    except _Damaged as damage:
        raise ValueError(f"{name}: {damage} (at byte {damage.offset})") from None


def _event(record: Any, offset: int, permissive_legacy: bool) -> TelemetryEventV2:
    try:
        return telemetry_event_from_record(record, permissive_legacy)
    except (ValueError, OverflowError) as error:
        raise _Damaged(str(error), offset) from None


def _records(file: BinaryIO, size: int, events_key: str | None, name: str) -> Iterator[tuple[Any, int]]:
    """(record, byte offset of its line or document)."""
    start = 3 if file.read(3) == b"\xef\xbb\xbf" else 0
    file.seek(start)
    first, first_offset = b"", start
    for line, offset in _lines(file, start):
        if line.strip():
            first, first_offset = line, offset
            break
    if not first:
        return
    after = file.tell()
    file.seek(first_offset)
    opening = first.lstrip()[:1]
    if opening == b"{" and events_key is None and after < size and _is_object(first):
        yield from _json_lines(file, first_offset, name)
    elif opening in (b"{", b"["):
        if size > MAX_WHOLE_BYTES:
            raise _Damaged(f"a JSON document larger than {MAX_WHOLE_BYTES >> 30} GiB: use JSON lines", MAX_WHOLE_BYTES)
        yield from _document(file.read(), first_offset, events_key, name)
    else:
        yield from _csv_rows(file, first_offset, name)


def _lines(file: BinaryIO, offset: int) -> Iterator[tuple[bytes, int]]:
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise _Damaged(f"a line longer than {MAX_LINE_BYTES >> 20} MiB", offset)
        yield line, offset
        offset += len(line)


def _parse(data: bytes, offset: int) -> Any:
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _Damaged("not UTF-8", offset + error.start) from None
    except json.JSONDecodeError as error:
        at = offset + len(error.doc[: error.pos].encode())
        raise _Damaged(f"not JSON: {error.msg}", at) from None
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error).split(";")[0]
        raise _Damaged(f"not JSON: {what}", offset) from None


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(_parse(line, 0), dict)
    except _Damaged:
        return False


def _json_lines(file: BinaryIO, start: int, name: str) -> Iterator[tuple[Any, int]]:
    for line, offset in _lines(file, start):
        if not line.strip():
            continue
        try:
            record = _parse(line, offset)
        except _Damaged:
            if line.endswith(b"\n"):
                raise
            return _warn_cut(name, offset)
        yield record, offset


def _document(data: bytes, start: int, events_key: str | None, name: str) -> Iterator[tuple[Any, int]]:
    try:
        value = _parse(data, start)
    except _Damaged as damage:
        if data.partition(b"\n")[0].strip() != b"[":
            raise
        yield from _cut_array(data, start, damage, name)
        return
    if isinstance(value, dict):
        value = _list_in(value, events_key, start)
    elif events_key is not None:
        raise _Damaged(f"no object with a key {events_key!r:.40}", start)
    for record in value:
        yield record, start


def _list_in(value: dict[str, Any], events_key: str | None, start: int) -> Iterator[Any] | list[Any]:
    key = "events" if events_key is None else events_key
    events = value.get(key)
    if isinstance(events, list):
        # A tool that writes columns beside an empty list of events has its data in the columns.
        return events if events or "timestamps" not in value else records_of_columns(value) or []
    if events_key is not None:
        raise _Damaged(f"no list under the key {events_key!r:.40}", start)
    return records_of_columns(value) or [value]


def _cut_array(data: bytes, start: int, damage: _Damaged, name: str) -> Iterator[tuple[Any, int]]:
    """A list that lost its end, one record a line as our writer lays it out; another damage stays an error."""
    offset = start
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines):
        text = line.strip().strip(b",")
        if number > 0 and text and text != b"]":
            try:
                record = _parse(text, offset)
            except _Damaged:
                if number < len(lines) - 1:
                    raise damage from None
                return _warn_cut(name, offset)
            yield record, offset
        offset += len(line)
    _warn_cut(name, offset)


def _warn_cut(name: str, offset: int) -> None:
    warnings.warn(f"{name}: cut short (at byte {offset}): what follows is lost", stacklevel=2)


def _csv_rows(file: BinaryIO, start: int, name: str) -> Iterator[tuple[Any, int]]:
    consumed = start
    last = b""

    def text() -> Iterator[str]:
        nonlocal consumed, last
        for line, offset in _lines(file, start):
            consumed, last = offset + len(line), line
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise _Damaged("neither JSON nor CSV: not UTF-8", offset + error.start) from None

    reader = csv.reader(text(), strict=True)
    header: list[str] | None = None
    offset = start
    while True:
        try:
            row = _next_row(reader)
        except csv.Error as error:
            if not last.endswith(b"\n") and header is not None:
                return _warn_cut(name, offset)
            raise _Damaged(f"neither JSON nor CSV: {error}", offset) from None
        if row is None:
            return
        if not last.endswith(b"\n"):
            return _warn_cut(name, offset)  # a number or a column's name may have lost its end
        if header is None:
            header = _header(row, offset)
        elif row:
            if len(row) != len(header):
                raise _Damaged(f"{len(row)} values for {len(header)} columns", offset)
            yield _typed(dict(zip(header, row, strict=True)), offset), offset
        offset = consumed


def _next_row(reader: Any) -> list[str] | None:
    with _field_limit_lock:
        limit = csv.field_size_limit(MAX_LINE_BYTES)
        try:
            return next(reader, None)
        finally:
            csv.field_size_limit(limit)


def _header(row: list[str], offset: int) -> list[str]:
    if len(set(row)) != len(row) or not {"timestamp", "timestamp_ns", "time"} & set(row):
        raise _Damaged("neither JSON nor CSV with a column timestamp or timestamp_ns", offset)
    return row


def _typed(row: Mapping[str, str], offset: int) -> dict[str, Any]:
    """CSV has only texts: an empty one is null, version 2's integers are integers, metadata is JSON."""
    record: dict[str, Any] = {}
    version = row.get("schema_version") or None
    for key, text in row.items():
        if key == "metadata":
            record[key] = _parse(text.encode(), offset) if text else {}
        elif key == "schema_version" or (key in _INTEGERS and version is not None):
            record[key] = _integer(key, text, offset)
        else:
            # "" is null, also where a text may be empty: only context could be, and both say nothing.
            record[key] = text or None
    if record.get("schema_version") is None:
        record.pop("schema_version", None)
    return record


def _integer(key: str, text: str, offset: int) -> int | None:
    if not text:
        return None
    digits = text.removeprefix("-")
    if len(digits) > 19 or not (digits.isascii() and digits.isdigit()):
        raise _Damaged(f"{key} must be an integer, not {text!r:.40}", offset)
    return int(text)
