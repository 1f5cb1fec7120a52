"""A tracker's data, and the methods to query it."""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .._counting.collectors import DeviceMemoryCollector, DeviceMemorySample
from .alerts import DEFAULT_THRESHOLDS, TrackerAlerts, utilization
from .event import TrackingEvent, timeline_of, to_telemetry
from .figures import Tally, TrackerStatistics, statistics_of
from .forecast import Forecast, forecast_time_to_limit
from .phases import PhaseRecord

_FORECAST_SAMPLES = 2048
_TIMELINE_ROWS = 2000


class Events(deque[TrackingEvent]):
    """The events kept, oldest first. Iterating goes over a copy, so it is safe while the sampler adds more."""

    def __iter__(self) -> Iterator[TrackingEvent]:
        while True:
            try:
                return iter(list(super().__iter__()))
            except RuntimeError:  # one was added while the copy was made: it has to be made again
                continue

    def __reversed__(self) -> Iterator[TrackingEvent]:
        return reversed(list(self))


class TrackerRecord:
    """Events, figures and phases of one tracker. Every method may be called from any thread at any time."""

    def __init__(
        self,
        collector: DeviceMemoryCollector,
        sampling_interval: float,
        max_events: int,
        identity: dict[str, Any],
        alarm_options: tuple[float | None, float],
    ) -> None:
        self.collector = collector
        self.backend = collector.name()
        self.collector_capabilities = collector.capabilities()
        self.sampling_interval = sampling_interval
        self.max_events = max_events
        self.distributed_identity = identity
        self.session_id = uuid.uuid4().hex
        self.thresholds = dict(DEFAULT_THRESHOLDS)
        self.events = Events(maxlen=max_events)
        self.last_oom_dump_path: str | None = None
        self._alarm_options = alarm_options
        self._lock = threading.RLock()  # all fields; never held while the device or a callback is called
        self._start_time: float | None = None  # s since 1970; the next two on the steady clock
        self._started = self._stopped = 0.0
        self._phases: list[PhaseRecord] = []
        self._finished_phases: deque[PhaseRecord] = deque(maxlen=1000)
        self._last: DeviceMemorySample | None = None
        self._missing: Mapping[str, str] = {}
        self._sample_errors = self._callback_errors = self._alert_count = 0
        self._degraded = False
        self._reset_figures()

    @property
    def device(self) -> str:
        """"cpu", "cuda:0", …; "cuda" if none was named and the program has not used one yet."""
        kind, index = "cuda" if self.backend == "rocm" else self.backend, self.collector.device_id
        return kind if kind == "cpu" or index < 0 else f"{kind}:{index}"

    def get_events(
        self, event_type: str | None = None, last_n: int | None = None, since: float | None = None
    ) -> list[TrackingEvent]:
        """The kept events, oldest first; optionally of one type, from a time on (s since 1970), the last n."""
        with self._lock:
            events = list(self.events)
        found = [
            event
            for event in events
            if (event_type is None or event.event_type == event_type) and (since is None or event.timestamp >= since)
        ]
        return found if last_n is None else found[-last_n:] if last_n > 0 else []

    def get_alerts(self, last_n: int | None = None) -> list[TrackingEvent]:
        """Warnings, criticals and errors, oldest first: the last 1000, however many samples followed."""
        with self._lock:
            alerts = list(self._alert_log)
        return alerts if last_n is None else alerts[-last_n:] if last_n > 0 else []

    def get_memory_timeline(self, interval: float = 1.0) -> dict[str, list[Any]]:
        """The kept samples, at most one per interval (s): see `timeline_of` for the lists."""
        with self._lock:
            events = list(self.events)
        return timeline_of(events, interval)

    def forecast(self) -> Forecast:
        """When max(allocated, reserved, used) reaches the device's total at the rate of the last samples.

        Where that does not grow and this program's own memory does, because others gave some back: when the program
        alone fills what is left.
        """
        with self._lock:
            series, own, total = list(self._series), list(self._own_series), self._last.total_bytes if self._last else None
        found = forecast_time_to_limit([t for t, _ in series], [v for _, v in series], total)
        if total is None or not own or (found.growth_bytes_per_s or 0) > 0:
            return found
        of_others = series[-1][1] - own[-1][1]
        of_own = forecast_time_to_limit([t for t, _ in own], [v for _, v in own], total - of_others)
        if (of_own.growth_bytes_per_s or 0) <= 0:
            return found
        return replace(of_own, limit_bytes=total)

    @property
    def stats(self) -> dict[str, Any]:
        """The current figures."""
        with self._lock:
            figures = statistics_of(self._tally, self._duration_s())
            names = (
                "peak_memory", "total_allocations", "total_deallocations", "total_allocation_bytes",
                "total_deallocation_bytes",
            )  # fmt: skip
            return {
                **{name: figures[name] for name in names},
                "alert_count": self._alert_count,
                "tracking_start_time": self._start_time,
                "last_memory_check": self._last.allocated_bytes if self._last else None,
            }

    def get_statistics(self) -> dict[str, Any]:
        """All figures: bytes, seconds, counts since tracking began; None if the device does not report one.

        `timeline` has the kept samples, thinned to about 2000, as input for a leak analysis.

        `basis` and `basis_reason` say where allocated memory comes from. `counts_basis` and `peak_basis` say whether
        counts and the peak are exact or those of the samples (a peak between two samples is then missed).
        `peak_basis_reason` says why the peak is not exact although allocator events are counted (otherwise None).
        """
        current = self.collector.sample_with_diagnostics().sample
        forecast = self.forecast().to_dict()
        timeline = self.get_memory_timeline(max(self.sampling_interval, self._duration_s() / _TIMELINE_ROWS))
        now = time.time()
        with self._lock:
            current = current or self._last
            ratio = utilization(current) if current else None
            return TrackerStatistics({
                **self.stats,
                **statistics_of(self._tally, self._duration_s()),
                "basis": self.collector.basis,
                "basis_reason": self.collector.basis_reason,
                "backend": self.backend,
                "device": self.device,
                "session_id": self.session_id,
                "total_events": len(self.events),
                "dropped_events": self._events_total - len(self.events),
                "events_last_hour": sum(now - event.timestamp <= 3600 for event in self.events),
                "current_memory_allocated": current.allocated_bytes if current else None,
                "current_memory_reserved": current.reserved_bytes if current else None,
                "current_device_used": current.used_bytes if current else None,
                "total_memory": current.total_bytes if current else None,
                "memory_utilization_percent": None if ratio is None else 100 * ratio,
                "sample_errors": self._sample_errors,
                "callback_errors": self._callback_errors,
                "suppressed_alerts": self._alerts.suppressed_total,
                "time_to_limit_seconds": forecast["seconds_to_limit"],
                "forecast": forecast,
                "last_oom_dump_path": self.last_oom_dump_path,
                **self._more_statistics(),
                "timeline": timeline,
            })

    def _more_statistics(self) -> dict[str, Any]:
        """What only the tracker itself knows."""
        return {}

    def get_session_summary(self) -> dict[str, Any]:
        """The session in one dictionary: its identity, events by type, phases, statistics."""
        statistics = self.get_statistics()
        by_type: dict[str, int] = {}
        for event in self.get_events():
            by_type[event.event_type] = by_type.get(event.event_type, 0) + 1
        with self._lock:
            phases = [phase.to_dict() for phase in (*self._finished_phases, *self._phases)]
        return {
            "session_id": self.session_id, **self.distributed_identity, "events_by_type": by_type, "phases": phases,
            "statistics": statistics,
        }  # fmt: skip

    def export_events(self, filename: Any, format: str | None = None) -> str:
        """Writes the kept events as TelemetryEventV2 and returns the file's path, even if there are none.

        The format is `format`, by default that of the name (.json, .jsonl, .csv; otherwise CSV). Raises ValueError for
        another.
        """
        from .._telemetry.files import write_events

        write_events(filename, self._as_telemetry(self.get_events()), format)
        return str(filename)

    @property
    def total_memory(self) -> int | None:
        """The device's size in bytes; None if unknown (a GPU that this process has not used yet)."""
        sample = self._last or self.collector.sample_with_diagnostics().sample
        return sample.total_bytes if sample else None

    @property
    def gpu_info(self) -> dict[str, Any]:
        """`get_gpu_info` of the device."""
        from .._counting.machine import get_gpu_info

        return dict(get_gpu_info(None if self.backend == "cpu" else self.collector.device_id))

    def _reset_figures(self) -> None:
        self._tally = Tally()
        self._alerts = TrackerAlerts(self.thresholds, *self._alarm_options)
        self._alert_log: deque[TrackingEvent] = deque(maxlen=1000)
        self._series: deque[tuple[float, int]] = deque(maxlen=_FORECAST_SAMPLES)
        self._own_series: deque[tuple[float, int]] = deque(maxlen=_FORECAST_SAMPLES)
        self._last, self._missing = None, {}
        self._announced_peak = 0
        self._events_total = len(self.events)
        self._alert_count = self._callback_errors = self._sample_errors = 0
        self._degraded = False

    def _as_telemetry(self, events: Iterable[TrackingEvent]) -> Iterator[Any]:
        collector = self.collector.telemetry_name()
        interval, missing, basis = self.sampling_interval, self._missing, self.collector.basis
        return (to_telemetry(event, collector, interval, missing, basis) for event in events)

    def _duration_s(self) -> float:
        return (self._stopped or time.monotonic()) - self._started if self._started else 0.0

    def _tracker_metadata(self) -> dict[str, Any]:
        last = self._last
        return {
            "tracker_stats": self.stats,
            "collector_capabilities": self.collector_capabilities,
            "total_memory_bytes": last.total_bytes if last else None,
            "sampling_interval_s": self.sampling_interval,
            **self.distributed_identity,
            **({f"sample_{name}": value for name, value in vars(last).items()} if last else {}),
        }
