"""MemoryTracker: samples a device in the background and alerts.

Each tracker has one thread, which reads the device at a steady rate. It never synchronizes the device and ends with the
program. In a forked child the tracker does not track. Callbacks run on that thread, outside all locks; their exceptions
are counted.
"""

from __future__ import annotations

import numbers
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from .._core.threads import SteadyThread, ends_with_program
from .._counting import probe_counters
from .._counting.collectors import AllocatorTotals, DeviceMemoryCollector, build_device_memory_collector
from .._oom.recorder import OOMFlightRecorder, OOMFlightRecorderConfig, classify_oom_exception
from .alarm import DEFAULT_HYSTERESIS
from .alerts import DEFAULT_THRESHOLDS, MOST, own_bytes, pressure_bytes
from .event import TrackingEvent as TrackingEvent
from .job_rank import resolve_distributed_identity
from .phases import PhaseHandle, PhaseRecord
from .record import TrackerRecord
from .watchdog import MemoryWatchdog as MemoryWatchdog

AlertCallback = Callable[[TrackingEvent], Any]
_ALERTS = ("warning", "critical", "error")
_PEAK_STEP = 1.01  # a peak is worth an event of its own when it is 1 % above the last one


class MemoryTracker(TrackerRecord):
    """Tracks the memory of one device (None: the GPU if there is one, otherwise host memory).

    `sampling_interval` in seconds. The last `max_events` events are kept. `output` names a file (.jsonl, .json, .csv)
    that gets every event as it happens and is complete at any moment. Raises ValueError for invalid arguments,
    RuntimeError for a device that is not present.
    """

    def __init__(
        self,
        device: Any = None,
        sampling_interval: float = 0.1,
        max_events: int = 10_000,
        enable_alerts: bool = True,
        enable_oom_flight_recorder: bool = False,
        oom_dump_dir: str = "oom_dumps",
        oom_buffer_size: int | None = None,
        oom_max_dumps: int = 5,
        oom_max_total_mb: int = 256,
        job_id: str | None = None,
        rank: int | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
        *,
        collector: DeviceMemoryCollector | None = None,
        output: Any = None,
        alert_min_interval: float | None = None,
        alert_hysteresis: float = DEFAULT_HYSTERESIS,
    ) -> None:
        if not 0 < sampling_interval < threading.TIMEOUT_MAX:
            raise ValueError("sampling_interval must be > 0")
        if max_events < 1:
            raise ValueError("max_events must be >= 1")
        identity = resolve_distributed_identity(
            job_id=job_id, rank=rank, local_rank=local_rank, world_size=world_size
        )
        collector = collector or build_device_memory_collector(device)
        super().__init__(collector, sampling_interval, max_events, identity, (alert_min_interval, alert_hysteresis))
        self.enable_alerts = enable_alerts
        self.alert_callbacks: list[AlertCallback] = []
        self._output = output
        self._recorder = OOMFlightRecorder(
            OOMFlightRecorderConfig(
                enabled=enable_oom_flight_recorder,
                dump_dir=str(oom_dump_dir),
                buffer_size=max_events if oom_buffer_size is None else oom_buffer_size,
                max_dumps=oom_max_dumps,
                max_total_mb=oom_max_total_mb,
            )
        )
        self._turn = threading.RLock()  # one sample at a time, in the order of their times
        self._thread = SteadyThread("gpumemprof-tracker", sampling_interval, self._tick)
        self._tracking = False
        self._missed_before = 0
        self._peaks: probe_counters.PeakWatch | None = None
        self._writer: Any = None
        self._undelivered: deque[TrackingEvent] = deque()
        ends_with_program(self)

    # -- tracking ------------------------------------------------------------------------------------------------

    @property
    def is_tracking(self) -> bool:
        return self._tracking

    def start_tracking(self) -> None:
        """Takes the first sample, the baseline, at once, then one every interval. Does nothing if it is tracking."""
        with self._my_turn():
            if self._tracking:
                return
            with self._lock:
                self._reset_figures()
                self._start_time, self._started, self._stopped = time.time(), time.monotonic(), 0.0
            self._open_output()
            self.collector.refresh()
            self._peaks = self.collector.peak_watch()
            result = self.collector.sample_with_diagnostics()
            self._last, self._missing = result.sample, result.errors or {}
            self._missed_before = self._thread.missed_ticks
            self._tracking = True
            self._recorder.watch_uncaught(self._tracker_metadata, self.backend)
            self._note("start", {"basis": self.collector.basis, "basis_reason": self.collector.basis_reason})
            self._sample()
            self._thread.start()
        self._deliver()

    def stop_tracking(self) -> dict[str, Any]:
        """Takes a last sample and ends. Returns the statistics, even if it was not tracking."""
        # Within a signal handler that interrupted a call of this thread, the sampler may be waiting for that very call.
        self._thread.stop(wait=not (_owned(self._lock) or _owned(self._turn)))
        with self._my_turn():
            if self._tracking:
                self._sample()
                self._note("stop", None)
                self._tracking = False
                with self._lock:
                    self._stopped = time.monotonic()
                if self._peaks is not None:
                    self._peaks.close()
                    self._peaks = None
                self._recorder.unwatch()
        self._deliver()
        return self.get_statistics()

    def __enter__(self) -> MemoryTracker:
        self.start_tracking()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self.handle_exception(error, context="with MemoryTracker")
        self.stop_tracking()

    def _tick(self) -> None:
        with self._my_turn():
            if self._tracking:
                self._sample()
        self._deliver()

    def _sample(self) -> None:
        """One sample and what follows from it: its events, its alerts. The turn is held."""
        result = self.collector.sample_with_diagnostics()
        if result.sample is None:
            with self._lock:
                self._sample_errors += 1
            if not self._degraded:
                self._degraded = True
                self._note("collector_degraded", {"error": result.core_error})
            return
        if self._degraded:
            self._degraded = False
            self._note("collector_recovered", None)
        now, clock = time.time(), time.monotonic()
        totals, high_water = self._counters()
        exact_peak, why_not = self._exact_peak()
        events: list[TrackingEvent] = []
        with self._lock:
            self._last, self._missing = result.sample, result.errors or {}
            change, interval_peak = self._tally.add(result.sample, totals, exact_peak, high_water, why_not)
            metadata = {} if interval_peak is None else {"interval_peak_bytes": interval_peak}
            events.append(self._event(now, "sample", change, metadata))
            if change:
                events.append(self._event(now, "allocation" if change > 0 else "deallocation", change, {}))
            if self._tally.samples == 1:
                self._announced_peak = self._tally.peak_bytes
            elif self._tally.peak_bytes > self._announced_peak * _PEAK_STEP:
                self._announced_peak = self._tally.peak_bytes
                events.append(self._event(now, "peak", 0, {"peak_bytes": self._tally.peak_bytes}))
            for phase in self._phases:
                phase.saw(result.sample.allocated_bytes, interval_peak)
            pressure = pressure_bytes(result.sample)
            if pressure is not None:
                self._series.append((clock, pressure))
                self._own_series.append((clock, own_bytes(result.sample)))
            if self.enable_alerts:
                for message in self._alerts.update(clock, result.sample, change, self.thresholds):
                    event = self._event(now, message.level, change, message.metadata)
                    event.context = message.text
                    events.append(event)
        self._keep(events)

    def _counters(self) -> tuple[AllocatorTotals | None, int | None]:
        try:
            return self.collector.totals(), self.collector.peak_so_far_bytes()
        except Exception:  # a driver's error, once the sample itself was well
            return None, None

    def _exact_peak(self) -> tuple[int | None, str | None]:
        try:
            return self._peaks.take() if self._peaks is not None else (None, None)
        except Exception as error:  # a driver's
            return None, f"{type(error).__name__} where the allocator's counters were read"

    def _note(self, event_type: str, metadata: Mapping[str, Any] | None, context: str | None = None) -> TrackingEvent:
        """An event between two samples, with the figures of the last one."""
        with self._lock:
            event = self._event(time.time(), event_type, 0, dict(metadata or {}))
            if context is not None:
                event.context = context
        self._keep([event])
        return event

    def _event(self, now: float, event_type: str, change: int, metadata: dict[str, Any]) -> TrackingEvent:
        last = self._last
        return TrackingEvent(
            timestamp=now,
            event_type=event_type,
            memory_allocated=last.allocated_bytes if last else None,
            memory_reserved=last.reserved_bytes if last else None,
            memory_change=change,
            device_id=self.collector.device_id,
            context=self._phases[-1].name if self._phases else None,
            metadata=metadata or None,
            active_memory=last.active_bytes if last else None,
            inactive_memory=last.inactive_bytes if last else None,
            device_used=last.used_bytes if last else None,
            device_free=last.free_bytes if last else None,
            device_total=last.total_bytes if last else None,
            backend=self.backend,
            session_id=self.session_id,
            **self.distributed_identity,
        )

    def _keep(self, events: list[TrackingEvent]) -> None:
        """Remembers events and writes them out; those that are alerts wait for `_in_turn` to deliver them."""
        with self._lock:
            for event in events:
                self._events_total += 1
                self.events.append(event)
                if self._recorder.config.enabled:
                    self._recorder.record_event(event.to_dict())
                if event.event_type in _ALERTS:
                    self._alert_log.append(event)
                    self._alert_count += 1
                    self._undelivered.append(event)
        if self._writer is not None:
            self._writer.write(self._as_telemetry(events))

    def _my_turn(self) -> AbstractContextManager[Any]:
        """To be held while samples and notes are made; `_deliver` comes after it.

        A signal handler of the program may call us in the middle of a call of the same thread, that holds `_lock`. Then
        whoever has the turn waits for that lock, and waiting for the turn would be for ever.
        """
        return nullcontext() if _owned(self._lock) else self._turn

    def _deliver(self) -> None:
        """The alerts go to the callbacks, with no lock held. Not from inside of a call that holds one."""
        if _owned(self._lock) or _owned(self._turn):
            return
        while True:
            with self._lock:
                if not self._undelivered:
                    return
                event, callbacks = self._undelivered.popleft(), list(self.alert_callbacks)
            for callback in callbacks:
                try:
                    callback(event)
                except Exception:
                    with self._lock:
                        self._callback_errors += 1

    def clear_events(self) -> None:
        """Deletes events, alerts and figures; while tracking, they start anew with the next sample."""
        with self._turn, self._lock:
            self.events.clear()
            self._reset_figures()
            self._started, self._start_time = time.monotonic(), time.time()

    # -- thresholds and callbacks --------------------------------------------------------------------------------

    def set_threshold(self, name: str, value: float) -> None:
        """Sets a threshold. Raises ValueError for a name that is not in `thresholds`, a negative number, a percentage
        above 100 and a share above 1, TypeError for what is no number.

        Above the critical percentage every alert is critical, whatever the warning's is."""
        if name not in DEFAULT_THRESHOLDS:
            raise ValueError(f"Unknown threshold: {name}")
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"{name} must be a number, not {value!r:.40}")
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0")
        if value > (most := MOST.get(name, value)):  # it would never be reached
            raise ValueError(f"{name} must be <= {most:g}, not {value:g}")
        with self._lock:
            self.thresholds[name] = float(value)

    def add_alert_callback(self, callback: AlertCallback) -> None:
        """Calls the function with the TrackingEvent of every alert, on the thread that took the sample."""
        with self._lock:
            self.alert_callbacks.append(callback)

    def remove_alert_callback(self, callback: AlertCallback) -> None:
        with self._lock:
            if callback in self.alert_callbacks:
                self.alert_callbacks.remove(callback)

    # -- phases --------------------------------------------------------------------------------------------------

    def enter_phase(self, name: str, metadata: Mapping[str, Any] | None = None) -> PhaseHandle:
        """Begins a named phase; `handle.exit()` ends it, in any order and on any thread."""
        phase = PhaseRecord(str(name), dict(metadata or {}))
        with self._my_turn():
            if self._tracking:
                self._sample()
            with self._lock:
                phase.begin(self._last.allocated_bytes if self._last else None)
                self._phases.append(phase)
            self._note("phase_enter", {"phase": phase.name, **phase.metadata})
        self._deliver()
        return PhaseHandle(self._exit_phase, phase)

    def _exit_phase(self, phase: PhaseRecord) -> None:
        with self._my_turn():
            if phase not in self._phases:
                return
            if self._tracking:
                self._sample()
            with self._lock:
                phase.end(self._last.allocated_bytes if self._last else None)
            self._note("phase_exit", phase.to_dict(), phase.name)
            with self._lock:
                self._phases.remove(phase)
                self._finished_phases.append(phase)
        self._deliver()

    @contextmanager
    def phase(self, name: str, metadata: Mapping[str, Any] | None = None) -> Iterator[PhaseHandle]:
        """`with tracker.phase("epoch 1"):`"""
        handle = self.enter_phase(name, metadata)
        try:
            yield handle
        finally:
            handle.exit()

    # -- out of memory -------------------------------------------------------------------------------------------

    @property
    def oom_buffer_size(self) -> int:
        return self._recorder.config.buffer_size

    def handle_exception(
        self, exc: BaseException, context: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> str | None:
        """Writes a bundle if the exception means that memory ran out and the flight recorder is on; returns its folder.

        Otherwise None, also for an exception that already has a bundle. Never raises.
        """
        verdict = classify_oom_exception(exc)
        if not verdict.is_oom or self._recorder.has_bundle_of(exc):
            return None
        with self._my_turn():
            self._note("error", {"error": type(exc).__name__, "reason": verdict.reason}, context or "out of memory")
        self._deliver()
        path = self._recorder.dump(
            reason=verdict.reason or "out of memory",
            exception=exc,
            context=context,
            backend=self.backend,
            metadata={**self._tracker_metadata(), **(metadata or {})},
        )
        self.last_oom_dump_path = path or self.last_oom_dump_path
        return path

    @contextmanager
    def capture_oom(self, context: str = "runtime", metadata: Mapping[str, Any] | None = None) -> Iterator[None]:
        """An out-of-memory exception inside the block writes a bundle; every exception propagates."""
        try:
            yield
        except BaseException as error:
            self.handle_exception(error, context, metadata)
            raise

    def record_cleanup(self, metadata: Mapping[str, Any]) -> None:
        """Adds a cleanup event with the bytes that the watchdog freed."""
        with self._my_turn():
            self._note("cleanup", metadata)
        self._deliver()

    def _open_output(self) -> None:
        if self._output is not None and self._writer is None:
            from .._telemetry.files import TelemetryWriter

            self._writer = TelemetryWriter(self._output)

    def _more_statistics(self) -> dict[str, Any]:
        writer = self._writer
        return {
            "late_samples": self._thread.missed_ticks - self._missed_before,
            "oom_flight_recorder_enabled": self._recorder.config.enabled,
            "output": None if writer is None else writer.path,
            "output_lost_events": None if writer is None else writer.lost_events,
            "output_error": None if writer is None else writer.error,
        }

    def _end_with_program(self) -> None:
        if self._tracking:
            self.stop_tracking()

    def _after_fork(self) -> None:
        # Whoever held these locks is not in the child.
        self._lock, self._turn = threading.RLock(), threading.RLock()
        self._tracking = False
        self._peaks = None


def _owned(lock: Any) -> bool:
    """Whether this thread holds the RLock."""
    return bool(lock._is_owned())  # what threading.Condition asks, too
