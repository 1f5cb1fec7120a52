"""The source of a tracker's samples of TensorFlow's devices."""

from __future__ import annotations

from typing import Any

from gpumemprof._counting import counters, probe_counters
from gpumemprof._counting.accelerators import device_memory
from gpumemprof._counting.collectors import AllocatorTotals, DeviceMemoryCollector, DeviceMemorySample
from gpumemprof._counting.host_memory import HostMemory
from gpumemprof._counting.host_source import resident_bytes

from ._source import TensorFlowCounters, TensorFlowSource
from .devices import resolve_device

_NO_TOTAL = "TensorFlow does not report a device's total, use or free memory"


class TensorFlowCollector(DeviceMemoryCollector):
    """One of TensorFlow's devices: the probe's counters, otherwise get_memory_info, otherwise resident memory.

    Totals of the CPU are the machine's or the control group's; those of a GPU its driver's, because TensorFlow does not
    report them. None with the reason if unknown. Initializes and synchronizes no device.
    """

    def __init__(self, device: Any = None) -> None:
        self.tf_device = resolve_device(device)
        self.device_id = self.tf_device.index
        self._host = HostMemory()
        self._counters = TensorFlowCounters(self.tf_device)
        self.refresh()

    def refresh(self) -> None:
        exact, why_not = counters.exact_available(attach=False)
        self._source_of_figures = TensorFlowSource(self.tf_device, exact, why_not)

    @property
    def basis(self) -> str:  # type: ignore[override]
        return self._source_of_figures.basis

    @property
    def basis_reason(self) -> str:  # type: ignore[override]
        return self._source_of_figures.basis_reason

    def name(self) -> str:
        return "cpu" if self.tf_device.is_cpu else "gpu"

    def telemetry_name(self) -> str:
        return "tfmemprof.memory_tracker"

    def is_available(self) -> bool:
        return True

    def _read(self, missing: dict[str, str]) -> DeviceMemorySample:
        allocated = self.allocated_now()
        missing["reserved_bytes"] = "TensorFlow does not report reserved memory"
        missing.update(dict.fromkeys(("active_bytes", "inactive_bytes"), "TensorFlow does not report free blocks"))
        names = ("used_bytes", "free_bytes", "total_bytes")
        host = self._host.read() if self.tf_device.is_cpu else None
        driver = None if self.tf_device.is_cpu else device_memory(max(self.device_id, 0))
        if driver is not None and driver["accelerator"] is not None:
            missing.update({name: driver["unknown"][name] for name in names if driver[name] is None})
            used, free, total = (driver[name] for name in names)
            return DeviceMemorySample(allocated, None, used, free, total, None, None, self.device_id)
        if host is None:
            why = "there is no /proc/meminfo" if driver is None else f"{_NO_TOTAL}, and {driver['why_not']}"
            missing.update(dict.fromkeys(names, why))
            return DeviceMemorySample(allocated, None, None, None, None, None, None, self.device_id)
        return DeviceMemorySample(
            allocated, None, host.used_bytes, host.free_bytes, host.total_bytes, None, None, self.device_id
        )

    def allocated_now(self) -> int | None:
        if self._source_of_figures.kind == "host":
            return resident_bytes()[0]
        return self._source_of_figures.read().allocated_bytes

    def totals(self) -> AllocatorTotals | None:
        if self._source_of_figures.kind != "exact":
            return None
        counts = probe_counters.read_counters(self.tf_device.code, max(self.device_id, 0))
        if counts is None:
            return AllocatorTotals(0, 0, 0, 0)
        return AllocatorTotals(counts.alloc_count, counts.free_count, counts.alloc_bytes, counts.free_bytes)

    def peak_watch(self) -> probe_counters.PeakWatch | None:
        if self._source_of_figures.kind != "exact":
            return None
        return _PeakWatch(self)

    def peak_so_far_bytes(self) -> int | None:
        kind = self._source_of_figures.kind
        if kind == "host":
            return resident_bytes()[1] or None
        return self._counters.stats().max_allocated if kind == "framework" else None

    def _source(self) -> str:
        return {"exact": "gpumemprof probe", "framework": "tf.config.experimental.get_memory_info", "host": "/proc"}[
            self._source_of_figures.kind
        ]


class _PeakWatch(probe_counters.PeakWatch):
    """Begun while it is not known yet whether the probe sees TensorFlow's events; tells nothing if it does not."""

    def __init__(self, collector: TensorFlowCollector) -> None:
        self._collector = collector
        super().__init__(collector.tf_device.code, lambda: max(collector.device_id, 0), collector.allocated_now)

    def take(self) -> tuple[int | None, str | None]:
        taken = super().take()
        if self._collector.basis == "exact":
            return taken
        return None, f"the probe sees no event of TensorFlow: {self._collector.basis_reason}"
