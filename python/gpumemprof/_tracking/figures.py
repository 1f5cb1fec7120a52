"""The tracker's figures: kept in constant memory, whatever the number of samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._core.printed import Printed, format_size
from .._counting.collectors import AllocatorTotals, DeviceMemorySample


@dataclass
class Tally:
    """Counts allocations and the peak since tracking began, from the best source there is.

    With `totals` (the probe's, or the allocator's own counters) counts and bytes are exact. Without them a rise
    between two samples counts as one allocation and a fall as one deallocation, and `counts_basis` says so.
    """

    counts_basis: str = "samples"
    peak_basis: str = "samples"
    peak_basis_reason: str | None = None  # set for good by the first interval of which the peak was not told
    peak_bytes: int = 0
    samples: int = 0
    _start: AllocatorTotals | None = None
    _now: AllocatorTotals | None = None
    _polled: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    _last_bytes: int | None = None
    _last_high_water: int | None = None
    _mark_was_reset: bool = False

    def add(
        self,
        sample: DeviceMemorySample,
        totals: AllocatorTotals | None,
        exact_peak_bytes: int | None,
        high_water_bytes: int | None,
        why_not_exact: str | None = None,
    ) -> tuple[int, int | None]:
        """Takes a sample in; (change since the one before, 0 for the first; peak in between where it is known)."""
        allocated = sample.allocated_bytes or 0
        change = 0 if self._last_bytes is None else allocated - self._last_bytes
        self._last_bytes = allocated
        self._count(change, totals)
        peak = self._interval_peak(exact_peak_bytes, high_water_bytes, why_not_exact)
        self.samples += 1
        self.peak_bytes = max(self.peak_bytes, allocated, peak or 0)
        return change, peak

    def counts(self) -> tuple[int, int, int, int]:
        """(allocations, deallocations, bytes allocated, bytes deallocated) since tracking began."""
        if self._start is not None and self._now is not None:
            a, b = self._start, self._now
            return (
                b.alloc_count - a.alloc_count, b.free_count - a.free_count,
                b.alloc_bytes - a.alloc_bytes, b.free_bytes - a.free_bytes,
            )  # fmt: skip
        return (self._polled[0], self._polled[1], self._polled[2], self._polled[3])

    def _count(self, change: int, totals: AllocatorTotals | None) -> None:
        if totals is not None and (self._start is not None or self.samples == 0):
            self._start = self._start or totals
            self._now = totals
            self.counts_basis = "exact"
        elif change:
            self._polled[0 if change > 0 else 1] += 1
            self._polled[2 if change > 0 else 3] += abs(change)

    def _interval_peak(self, exact: int | None, high_water: int | None, why_not: str | None) -> int | None:
        before, self._last_high_water = self._last_high_water, high_water
        if not self.samples:
            return None  # before the first sample nothing was tracked
        if exact is not None:
            if self.peak_basis_reason is None:
                self.peak_basis = "exact"
            return exact
        if before is not None and high_water is not None and high_water < before:
            why_not, self._mark_was_reset = "the program reset the allocator's high-water mark", True
        if why_not is not None:
            self.peak_basis, self.peak_basis_reason = "samples", self.peak_basis_reason or why_not
        # A mark that rose was set in between, by exactly this peak; one that stayed tells nothing about the interval.
        if before is not None and high_water is not None and high_water > before:
            if high_water >= self.peak_bytes and not self._mark_was_reset:
                self.peak_basis = "high-water mark"
            return high_water
        return None


class TrackerStatistics(Printed):
    """What MemoryTracker.get_statistics gives."""

    def rows(self) -> list[tuple[str, str]]:
        """The figures that one looks at first; the others are in the dict."""
        forecast = self["forecast"]
        seconds = self["time_to_limit_seconds"]
        how = f" ({self['counts_basis']})"
        return [
            ("device", f"{self['device']}: {self['samples']} samples in {self['tracking_duration_seconds']:.2f} s"),
            ("peak", f"{format_size(self['peak_memory'])} ({self['peak_basis']})"),
            ("now", "" if self["current_memory_allocated"] is None else format_size(self["current_memory_allocated"])),
            ("allocated", f"{format_size(self['total_allocation_bytes'])} in {self['total_allocations']:,} allocations{how}"),
            ("freed", f"{format_size(self['total_deallocation_bytes'])} in {self['total_deallocations']:,} frees{how}"),
            ("limit in", f"unknown: {forecast['reason']}" if seconds is None else f"{seconds:.0f} s at this rate"),
            ("alerts", f"{self['alert_count']:,}" if self["alert_count"] else ""),
            ("dropped", f"{self['dropped_events']:,} events" if self["dropped_events"] else ""),
            ("figures", f"{self['basis']}: {self['basis_reason']}"),
        ]


def statistics_of(tally: Tally, duration_s: float) -> dict[str, Any]:
    """The documented keys that follow from a tally and the time it took."""
    allocations, deallocations, allocated, deallocated = tally.counts()
    return {
        "peak_memory": tally.peak_bytes,
        "peak_basis": tally.peak_basis,
        "peak_basis_reason": tally.peak_basis_reason,
        "total_allocations": allocations,
        "total_deallocations": deallocations,
        "total_allocation_bytes": allocated,
        "total_deallocation_bytes": deallocated,
        "counts_basis": tally.counts_basis,
        "samples": tally.samples,
        "average_allocation_size": allocated / allocations if allocations else 0.0,
        "average_deallocation_size": deallocated / deallocations if deallocations else 0.0,
        "tracking_duration_seconds": duration_s,
        "allocations_per_second": allocations / duration_s if duration_s > 0 else 0.0,
        "bytes_allocated_per_second": allocated / duration_s if duration_s > 0 else 0.0,
    }
