"""The tracker's alerts: memory near the limit, jumps, fragmentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._counting.collectors import DeviceMemorySample
from .alarm import Alarm, Alert, Level

DEFAULT_THRESHOLDS: dict[str, float] = {
    "memory_warning_percent": 80.0,
    "memory_critical_percent": 95.0,
    "memory_leak_threshold": 100.0 * (1 << 20),  # bytes that appear from one sample to the next
    "fragmentation_threshold": 0.3,  # of reserved memory, in free pieces of blocks that are in use
}
MOST = {"memory_warning_percent": 100, "memory_critical_percent": 100, "fragmentation_threshold": 1}


@dataclass(frozen=True)
class Message:
    level: str
    text: str
    metadata: dict[str, Any]


class TrackerAlerts:
    """The three alarms over one device's samples. Not thread-safe: the tracker calls it under its lock."""

    def __init__(self, thresholds: dict[str, float], min_interval_s: float | None, hysteresis: float) -> None:
        self._min_interval_s = min_interval_s
        self._hysteresis = hysteresis
        self._built_from: dict[str, float] = {}
        self._kept_back = 0
        self._build(thresholds)

    @property
    def suppressed_total(self) -> int:
        return self._kept_back + sum(a.suppressed_total for a in (self._usage, self._jump, self._fragments))

    def update(
        self, time_s: float, sample: DeviceMemorySample, change_bytes: int, thresholds: dict[str, float]
    ) -> list[Message]:
        """The messages that this sample calls for. Thresholds that were changed since the last one count from now."""
        if thresholds != self._built_from:
            self._kept_back = self.suppressed_total
            self._build(thresholds)
        found: list[tuple[str, str, Alert | None]] = []
        ratio = utilization(sample)
        if ratio is not None:
            text = f"Memory usage at {100 * ratio:.1f} % of {mib(sample.total_bytes)}"
            found.append(("memory_usage", text, self._usage.update(time_s, ratio)))
        text = f"Large allocation detected: {mib(change_bytes)} since the previous sample"
        found.append(("large_allocation", text, self._jump.update(time_s, change_bytes)))
        # Free pieces of blocks that are in use cannot be given back or joined; cached whole blocks can, so they are
        # no fragments.
        if sample.reserved_bytes and sample.inactive_bytes is not None:
            share = sample.inactive_bytes / sample.reserved_bytes
            text = f"High fragmentation: {100 * share:.1f} % of reserved memory is in free pieces between blocks in use"
            found.append(("fragmentation", text, self._fragments.update(time_s, share)))
        return [
            Message(alert.level, text, {
                "alert": kind, "value": alert.value, "threshold": alert.threshold, "suppressed": alert.suppressed,
            })
            for kind, text, alert in found
            if alert is not None
        ]  # fmt: skip

    def _build(self, thresholds: dict[str, float]) -> None:
        self._built_from = dict(thresholds)
        critical = thresholds["memory_critical_percent"] / 100
        usage = [
            Level("warning", min(thresholds["memory_warning_percent"] / 100, critical)),
            Level("critical", critical),
        ]
        self._usage = Alarm(usage, self._hysteresis, self._min_interval_s)
        self._jump = Alarm([Level("warning", thresholds["memory_leak_threshold"])], 0, self._min_interval_s)
        limit = thresholds["fragmentation_threshold"]
        self._fragments = Alarm([Level("warning", limit)], self._hysteresis, self._min_interval_s)


def pressure_bytes(sample: DeviceMemorySample) -> int | None:
    """What counts against the limit: the highest of allocated, reserved and used of the device."""
    figures = (sample.allocated_bytes, sample.reserved_bytes, sample.used_bytes)
    return max((figure for figure in figures if figure is not None), default=None)


def own_bytes(sample: DeviceMemorySample) -> int:
    """What the tracked program itself has: the higher of allocated and reserved."""
    return max(sample.allocated_bytes or 0, sample.reserved_bytes or 0)


def utilization(sample: DeviceMemorySample) -> float | None:
    """pressure_bytes / total, None where either is not known."""
    pressure = pressure_bytes(sample)
    return None if pressure is None or not sample.total_bytes else pressure / sample.total_bytes


def mib(size_bytes: int | None) -> str:
    return "an unknown total" if size_bytes is None else f"{size_bytes / (1 << 20):.1f} MiB"
