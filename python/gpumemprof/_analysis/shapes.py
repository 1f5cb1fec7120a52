"""Objects in the form of measurements: profilers, results, trackers, their events and statistics. Missing values stay
None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .._counting.device_limits import device_id_of, device_words, limit_of
from .measured import Call, Function, Measured, Series, functions_of
from .recordings import of_analysis

NOTHING = "nothing was measured: give a profiler, a tracker, their results, or a file"
_MIB = 1024 * 1024
_LIMIT = 2**63


def collect_object(source: Any) -> Measured:
    """What `source` holds. TypeError for what is none of the documented sources, naming its type."""
    if source is None:
        return Measured(unknown=NOTHING)
    if isinstance(source, Measured):
        return source
    if isinstance(source, Mapping):
        return _of_mapping(source)
    for attribute, read in _READERS.items():
        if hasattr(source, attribute):
            measured: Measured = read(source)
            return measured
    if isinstance(source, Iterable):
        return _of_items(list(source))
    raise TypeError(f"cannot analyze an object of type {type(source).__name__}: {NOTHING.split(': ')[1]}")


def _of_profiler(profiler: Any) -> Measured:
    results, snapshots = list(profiler.results), list(getattr(profiler, "snapshots", ()))
    summary = profiler.get_summary() if hasattr(profiler, "get_summary") else {}
    return of_results(results, snapshots, summary)


def of_results(results: Iterable[Any], snapshots: Iterable[Any] = (), summary: Any = None) -> Measured:
    """ProfileResults (or their dicts), snapshots, and the summary with the totals of the calls no longer listed."""
    results, snapshots = list(results), list(snapshots)
    calls = sorted((_call(result) for result in results), key=lambda call: call.end_s)
    shown = [get(result, "memory_after") for result in results[:1] if get(result, "memory_after")] + snapshots[:1]
    device_id = whole(shown[0], "device_id") if shown else device_id_of(_text(summary, "device"))
    if (
        shown
        and device_id is None
        and get(shown[0], "rss") is not None
        or any(call.basis == "host" for call in calls[:1])
    ):
        device_id = -1
    rows = [row for result in calls for row in _call_rows(result)]
    rows += [_snapshot_row(snapshot) for snapshot in snapshots]
    functions = {**functions_of(calls), **_summed_functions(summary or {})}
    called = sum(function.call_count for function in functions.values())
    return Measured(
        calls=tuple(calls),
        functions=functions,
        series=Series.of_rows(rows),
        basis=_text(summary, "basis") or next((call.basis for call in calls if call.basis), None),
        basis_reason=_text(summary, "basis_reason") or "",
        device=device_words(device_id),
        device_id=device_id,
        limit_bytes=limit_of(device_id),
        unknown="" if calls or rows or functions else "the profiler has no results yet",
        dropped_calls=max(0, called - len(calls)),
    )


def _call(result: Any) -> Call:
    if get(result, "peak_rss") is not None:
        return _cpu_call(result)
    before, after, peak = (get(result, key) for key in ("memory_before", "memory_after", "memory_peak"))
    end_s = number(after, "timestamp") or 0.0
    duration_s = number(result, "execution_time") or 0.0
    return Call(
        name=str(get(result, "function_name") or "?"),
        start_s=number(before, "timestamp") or end_s - duration_s,
        end_s=end_s,
        duration_s=duration_s,
        before_bytes=whole(before, "allocated_memory"),
        after_bytes=whole(after, "allocated_memory"),
        peak_bytes=whole(peak, "allocated_memory"),
        allocated_bytes=whole(result, "memory_allocated"),
        freed_bytes=whole(result, "memory_freed"),
        tensors_created=whole(result, "tensors_created"),
        tensors_deleted=whole(result, "tensors_deleted"),
        basis=_text(result, "basis"),
        peak_is_exact=get(result, "peak_is_exact") is not False,
    )


def _cpu_call(result: Any) -> Call:
    """A CPUProfileResult or its dict: resident memory of the process."""
    before = get(result, "snapshot_before") or get(result, "before")
    after = get(result, "snapshot_after") or get(result, "after")
    end_s, duration_s = number(after, "timestamp") or 0.0, number(result, "duration") or 0.0
    return Call(
        name=str(get(result, "name") or "?"),
        start_s=number(before, "timestamp") or end_s - duration_s,
        end_s=end_s,
        duration_s=duration_s,
        before_bytes=whole(before, "rss"),
        after_bytes=whole(after, "rss"),
        peak_bytes=whole(result, "peak_rss"),
        basis="host",
        peak_is_exact=get(result, "peak_is_exact") is not False,
    )


def _call_rows(call: Call) -> list[tuple[float, dict[str, float | None]]]:
    """Before and after. The peak's moment within the call is not known, so it is no row."""
    return [(call.start_s, {"allocated": call.before_bytes}), (call.end_s, {"allocated": call.after_bytes})]


def _snapshot_row(snapshot: Any) -> tuple[float, dict[str, float | None]]:
    reserved = number(snapshot, "reserved_memory")
    cells = {"allocated": number(snapshot, "allocated_memory"), "reserved": reserved}
    if cells["allocated"] is None:
        cells["allocated"] = number(snapshot, "rss")
    return number(snapshot, "timestamp") or 0.0, cells


def _summed_functions(summary: Any) -> dict[str, Function]:
    summed = get(summary, "function_summaries")
    result = {}
    for name, row in summed.items() if isinstance(summed, Mapping) else ():
        count, time_s = whole(row, "call_count") or 0, number(row, "total_time") or 0.0
        peak, allocated = whole(row, "peak_memory"), whole(row, "total_memory_allocated")
        result[str(name)] = Function(str(name), count, time_s, peak, allocated, whole(row, "peak_over_start"))
    return result


def _of_tracker(tracker: Any) -> Measured:
    measured = of_events(tracker.get_events())
    statistics = tracker.get_statistics() if hasattr(tracker, "get_statistics") else {}
    limit = number(tracker, "total_memory") or measured.limit_bytes
    basis = _text(statistics, "basis") or measured.basis
    reason = _text(statistics, "basis_reason") or ""
    return replace(measured, limit_bytes=limit, basis=basis, basis_reason=reason)


def of_events(events: Iterable[Any]) -> Measured:
    """TrackingEvents, TelemetryEventV2, or records of either. One rank's: the first one seen; a series of several
    ranks would be a zigzag between them."""
    records = sorted((event_record(event) for event in events), key=lambda record: float(record["time_s"]))
    rank = records[0]["rank"] if records else 0
    own = [record for record in records if record["rank"] == rank and record["time_s"] > 0]
    # Samples are the series; the other events repeat their figures. Older files have none but the others.
    samples = [record for record in own if record["event_type"] == "sample"] or own
    device_id = own[-1]["device_id"] if own else None
    # Of the CPU it is what the whole machine uses: nothing to hold beside one process.
    names = ("allocated", "reserved", "interval_peak", *(("device_used",) if device_id != -1 else ()))
    rows = [(record["time_s"], {name: record[name] for name in names}) for record in samples]
    totals = [record["device_total"] for record in own if record["device_total"]]
    return Measured(
        series=Series.of_rows(rows),
        events=tuple(records),
        limit_bytes=totals[-1] if totals else None,
        device=device_words(device_id),
        basis=next((record["basis"] for record in own if record["basis"]), None),
        sampled=True,
        unknown="" if own else "there are no samples",
    )


def event_record(event: Any) -> dict[str, Any]:
    """One event of any version as {time_s, event_type, rank, device_id, allocated, reserved, inactive, device_used,
    device_total, context, collective, phase, basis, interval_peak}; bytes, and None where the event says that it does not know a field."""
    if isinstance(event, dict) and "time_s" in event:
        return event  # is one already
    metadata = get(event, "metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    unknown = metadata.get("unknown")
    unknown = unknown if isinstance(unknown, Mapping) else {}

    def cell(*keys: str) -> float | None:
        return next((v for key in keys if key not in unknown and (v := number(event, key)) is not None), None)

    time_ns = number(event, "timestamp_ns")
    return {
        "time_s": time_ns / 1e9 if time_ns is not None else number(event, "timestamp") or 0.0,
        "event_type": _text(event, "event_type") or "sample",
        "rank": whole(event, "rank") or 0,
        "device_id": whole(event, "device_id"),
        "allocated": cell("allocator_allocated_bytes", "memory_allocated", "allocated_memory"),
        "reserved": cell("allocator_reserved_bytes", "memory_reserved", "reserved_memory"),
        "inactive": cell("allocator_inactive_bytes", "inactive_memory"),
        "device_used": cell("device_used_bytes", "device_used"),
        "device_total": cell("device_total_bytes", "device_total"),
        "context": _text(event, "context"),
        "collective": _text(metadata, "collective"),
        "phase": _text(metadata, "phase"),
        "basis": _text(metadata, "basis"),
        "interval_peak": number(metadata, "interval_peak_bytes"),
    }


def _of_samples(result: Any) -> Measured:
    """An object or dict with parallel `timestamps` and `memory_usage` in MiB."""
    times, values = get(result, "timestamps"), get(result, "memory_usage")
    rows: list[tuple[float, dict[str, float | None]]] = []
    rows += [(float(t), {"allocated": float(v) * _MIB}) for t, v in zip(times, values)]
    return Measured(series=Series.of_rows(rows), sampled=True, unknown="" if rows else "there are no samples")


def _of_timeline(timeline: Mapping[str, Any], statistics: Mapping[str, Any]) -> Measured:
    """Parallel lists in bytes: `timestamps`, `allocated`, and others where they are."""
    columns = {name: timeline[name] for name in ("allocated", "reserved", "device_used") if name in timeline}
    rows: list[tuple[float, dict[str, float | None]]] = []
    for i, time in enumerate(timeline["timestamps"]):
        cells = {name: number({"": values[i]}, "") if i < len(values) else None for name, values in columns.items()}
        if (time_s := number({"": time}, "")) is not None:
            rows.append((time_s, cells))
    return Measured(
        series=Series.of_rows(rows),
        basis=_text(statistics, "basis"),
        sampled=True,
        limit_bytes=number(statistics, "total_memory"),
        unknown="" if rows else "there are no samples",
    )


def _of_mapping(source: Mapping[str, Any]) -> Measured:
    if "events" in source and not isinstance(source["events"], Mapping):
        return of_events(source["events"])
    timeline = source if "timestamps" in source else source.get("timeline", source.get("memory_timeline"))
    if isinstance(timeline, Mapping) and "timestamps" in timeline:
        if "memory_usage" in timeline:
            return _of_samples(timeline)
        return _of_timeline(timeline, source)
    if "results" in source:
        return of_results(source["results"], source.get("snapshots") or (), source.get("summary"))
    if str(source.get("schema", "")).startswith("gpumemprof.analysis/"):
        return of_analysis(source)
    if "function_summaries" in source:
        return of_results((), (), source)
    if "function_name" in source or "peak_rss" in source:
        return of_results([source])
    if source and all(get(row, "call_count") is not None for row in source.values()):
        return of_results((), (), {"function_summaries": source})
    if results := _results_by_name(source):
        return of_results(results)
    why = "these statistics hold totals but no samples over time: give the tracker, its events or its file"
    return Measured(unknown=why, basis=_text(source, "basis"), limit_bytes=number(source, "total_memory"))


def _results_by_name(source: Mapping[str, Any]) -> list[Any]:
    """What `function_stats` holds, name -> its results, or name -> one result; empty if it is something else."""
    lists = [value if isinstance(value, (list, tuple)) else [value] for value in source.values()]
    results = [result for each in lists for result in each]
    return results if all(get(result, "function_name") is not None for result in results) else []


def _of_items(items: list[Any]) -> Measured:
    if not items:
        return Measured(unknown="there are no results")
    first = items[0]
    if isinstance(first, (int, float)):  # samples in bytes without times: their order is the clock
        return Measured(series=Series(tuple(map(float, range(len(items)))), {"allocated": tuple(map(float, items))}))
    if get(first, "function_name") is not None or get(first, "peak_rss") is not None:
        return of_results(items)
    if get(first, "event_type") is not None or get(first, "timestamp_ns") is not None:
        return of_events(items)
    if get(first, "allocated_memory") is not None or get(first, "rss") is not None:
        return of_results((), items)
    raise TypeError(f"cannot analyze a list of {type(first).__name__}: {NOTHING.split(': ')[1]}")


def get(source: Any, key: str) -> Any:
    """`key` of a dict or attribute of an object; None if there is none."""
    return source.get(key) if isinstance(source, dict) else getattr(source, key, None)


def number(source: Any, key: str) -> float | None:
    """A number that a measurement can be: not a bool, not NaN, and what every reader can hold."""
    value = get(source, key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -_LIMIT < value < _LIMIT else None


def whole(source: Any, key: str) -> int | None:
    value = number(source, key)
    return None if value is None else int(value)


def _text(source: Any, key: str) -> str | None:
    value = get(source, key)
    return str(value) if value is not None and value != "" else None


# By what an object has, the most telling first: a profiler has results, a tracker has events.
_READERS: dict[str, Any] = {
    "results": _of_profiler,
    "profiler": lambda holder: collect_object(holder.profiler),
    "get_events": _of_tracker,
    "memory_usage": _of_samples,
    "function_name": lambda result: of_results([result]),
    "peak_rss": lambda result: of_results([result]),
    "function_profiles": lambda results: collect_object(results.function_profiles),
}
