"""MemoryTracker: gpumemprof's tracker for TensorFlow's devices, with thresholds and results in MiB."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpumemprof._tracking.event import TrackingEvent
from gpumemprof._tracking.tracker import MemoryTracker as _Tracker

from .collector import TensorFlowCollector
from .results import MIB
from .watchdog import MemoryWatchdog as MemoryWatchdog

LOGGER = logging.getLogger("tfmemprof.tracker")
_REARM = 0.95  # of the threshold: below it, it can be crossed again
_RECENT_S = 10.0


@dataclass
class TrackingResult:
    """The result of tracking. Times in seconds since 1970, sizes in MiB; parallel lists of the kept samples.

    `peak_memory` is the highest known, including peaks between samples if `peak_basis` is "exact"; None without
    samples. `events` are TrackingEvents, `statistics` those of the tracker, both in bytes.
    """

    start_time: float
    end_time: float
    memory_usage: list[float]
    timestamps: list[float]
    events: list[TrackingEvent]
    alerts_triggered: list[dict[str, Any]]
    peak_memory: float | None
    average_memory: float | None
    min_memory: float | None
    basis: str
    basis_reason: str
    peak_basis: str
    statistics: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end_time - self.start_time

    @property
    def memory_growth_rate(self) -> float | None:
        """MiB per second from the first sample to the last; None with fewer than two."""
        if len(self.timestamps) < 2 or self.timestamps[-1] <= self.timestamps[0]:
            return None
        return (self.memory_usage[-1] - self.memory_usage[0]) / (self.timestamps[-1] - self.timestamps[0])

    def get_events(self) -> list[TrackingEvent]:
        """`events`, as analyses and plots accept them."""
        return self.events

    def get_statistics(self) -> dict[str, Any]:
        """`statistics`."""
        return self.statistics


class MemoryTracker(_Tracker):
    """Samples one of TensorFlow's devices from a thread: "/GPU:0", "/CPU:0", None for the first GPU, otherwise the CPU.

    `alert_threshold_mb` in MiB: alerts when memory rises above it, again only after it fell 5 % below. `enable_logging`
    sends alerts to the log `tfmemprof.tracker`. Other arguments and features (phases, files, out-of-memory bundles,
    percent alerts) are gpumemprof.MemoryTracker's.
    """

    def __init__(
        self,
        sampling_interval: float = 1.0,
        alert_threshold_mb: float | None = None,
        device: Any = None,
        enable_logging: bool = True,
        job_id: str | None = None,
        rank: int | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            sampling_interval=sampling_interval, job_id=job_id, rank=rank, local_rank=local_rank, world_size=world_size,
            collector=TensorFlowCollector(device), **options,
        )  # fmt: skip
        self.enable_logging = enable_logging
        self._above = False
        self.set_alert_threshold(alert_threshold_mb)

    @property
    def device(self) -> str:
        """The device's name, "/GPU:0"."""
        return str(self.collector.tf_device)  # type: ignore[attr-defined]

    def set_alert_threshold(self, threshold_mb: float | None) -> None:
        """In MiB; None for no alert. Raises ValueError unless it is above 0."""
        if threshold_mb is not None and not threshold_mb > 0:
            raise ValueError("alert_threshold_mb must be > 0")
        self.alert_threshold_mb = threshold_mb
        self._above = False

    def add_alert_callback(self, callback: Callable[[dict[str, Any]], Any]) -> None:  # type: ignore[override]
        """Calls the function with a dict for every alert: type, message, timestamp, memory_mb, threshold_mb (None for
        alerts of other kinds), on the thread that took the sample."""
        super().add_alert_callback(_Told(callback))

    def remove_alert_callback(self, callback: Callable[[dict[str, Any]], Any]) -> None:  # type: ignore[override]
        with self._lock:
            self.alert_callbacks[:] = [each for each in self.alert_callbacks if not _is_of(each, callback)]

    def get_current_memory(self) -> float | None:
        """MiB now; None if the device does not report it."""
        sample = self.collector.sample_with_diagnostics().sample
        return None if sample is None or sample.allocated_bytes is None else sample.allocated_bytes / MIB

    def check_alerts(self) -> bool:
        """Whether there was an alert within the last ten seconds."""
        now = time.time()
        return any(now - event.timestamp <= _RECENT_S for event in self.get_alerts(1))

    def stop_tracking(self) -> TrackingResult:  # type: ignore[override]
        """Takes a last sample, ends, and returns the result."""
        super().stop_tracking()
        return self.get_tracking_results()

    def get_tracking_results(self) -> TrackingResult:
        """The result so far; also while tracking."""
        events, statistics = self.get_events(), self.get_statistics()
        samples = [e for e in events if e.event_type == "sample" and e.memory_allocated is not None]
        usage = [(e.memory_allocated or 0) / MIB for e in samples]
        start = statistics["tracking_start_time"] or time.time()
        return TrackingResult(
            start_time=start,
            end_time=start + self._duration_s(),
            memory_usage=usage,
            timestamps=[e.timestamp for e in samples],
            events=events,
            alerts_triggered=[_as_alert(event) for event in self.get_alerts()],
            peak_memory=statistics["peak_memory"] / MIB if samples else None,
            average_memory=sum(usage) / len(usage) if usage else None,
            min_memory=min(usage, default=None),
            basis=self.collector.basis,
            basis_reason=self.collector.basis_reason,
            peak_basis=statistics["peak_basis"],
            statistics=statistics,
        )

    def _sample(self) -> None:
        super()._sample()
        last, threshold = self._last, self.alert_threshold_mb
        if threshold is None or last is None or last.allocated_bytes is None:
            return
        memory_mb = last.allocated_bytes / MIB
        if self._above:
            self._above = memory_mb >= threshold * _REARM
        elif memory_mb > threshold:
            self._above = True
            text = f"{memory_mb:.1f} MiB on {self.device}, above the threshold of {threshold:g} MiB"
            self._note("warning", {"threshold_mb": threshold}, text)
            if self.enable_logging:
                LOGGER.warning("tfmemprof: %s", text)


def _is_of(known: object, callback: object) -> bool:
    return known == callback  # a _Told says whose it is


class _Told:
    """A callback that wants a dict. Equal to the function that it calls."""

    def __init__(self, callback: Callable[[dict[str, Any]], Any]) -> None:
        self._callback = callback

    def __call__(self, event: TrackingEvent) -> Any:
        return self._callback(_as_alert(event))

    def __eq__(self, other: object) -> bool:
        return other is self or other == self._callback

    def __hash__(self) -> int:
        return hash(self._callback)


def _as_alert(event: TrackingEvent) -> dict[str, Any]:
    memory = event.memory_allocated
    return {
        "type": event.event_type,
        "message": event.context or "",
        "timestamp": event.timestamp,
        "memory_mb": None if memory is None else memory / MIB,
        "threshold_mb": (event.metadata or {}).get("threshold_mb"),
    }
