"""Memory figures while a program runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._counting import counters
from .batch_size import free_memory

_GIB = 1024**3


class MemoryMonitor:
    """Monitors memory with the package's best source of figures, on the CPU too. A context's peak is that of the
    context, not the highest since the process began.

    All figures are in GiB; `basis` names their source.
    """

    def __init__(self, device: Any = None) -> None:
        self._source = counters.source_for(device)
        self.reset_stats()

    @property
    def basis(self) -> str:
        return self._source.basis

    def reset_stats(self) -> None:
        self.peak_memory = 0.0
        self.memory_history: list[float] = []

    def get_memory_info(self) -> dict[str, float]:
        """`allocated`, `reserved`, `max_allocated` and `free`: what is left on the device, whoever uses the rest."""
        reading = self._source.read()
        return {
            "allocated": reading.allocated_bytes / _GIB,
            "reserved": reading.reserved_bytes / _GIB,
            "max_allocated": reading.max_allocated_bytes / _GIB,
            "free": self._free_bytes() / _GIB,
        }

    def update_peak_memory(self) -> None:
        """Notes the memory of this moment."""
        now = self._source.read().allocated_bytes / _GIB
        self.peak_memory = max(self.peak_memory, now)
        self.memory_history.append(now)

    @contextmanager
    def monitor_context(self, operation_name: str = "") -> Iterator[None]:
        """Prints a report of the block, also if it ends with an exception."""
        span = self._source.begin()
        start_s = time.perf_counter()
        try:
            yield
        finally:
            figures = counters.figures_of(self._source, span.end())
            before, after = figures.before.allocated_bytes, figures.after.allocated_bytes
            self.peak_memory = max(self.peak_memory, figures.peak_bytes / _GIB)
            print(f"\n=== Memory Report: {operation_name} ===")
            print(f"Duration: {time.perf_counter() - start_s:.2f}s")
            print(f"Initial memory: {before / _GIB:.2f} GB")
            print(f"Final memory: {after / _GIB:.2f} GB")
            print(f"Peak memory: {'' if figures.peak_is_exact else 'at least '}{figures.peak_bytes / _GIB:.2f} GB")
            print(f"Memory change: {(after - before) / _GIB:.2f} GB")

    def print_summary(self) -> None:
        info = self.get_memory_info()
        print("\n=== Memory Summary ===")
        print(f"Current allocated: {info['allocated']:.2f} GB")
        print(f"Current reserved: {info['reserved']:.2f} GB")
        print(f"Peak allocated: {info['max_allocated']:.2f} GB")
        print(f"Free memory: {info['free']:.2f} GB")

    def _free_bytes(self) -> int:
        device = self._source.device
        if not device.is_cpu:
            from .._core.torch import require_torch

            return int(require_torch("GPU figures").cuda.mem_get_info(device.index)[0])
        from .._counting.host_memory import HostMemory

        host = HostMemory().read()
        return 0 if host is None else host.free_bytes


def auto_cleanup(monitor: MemoryMonitor, threshold: float = 0.8) -> bool:
    """Frees memory if more than `threshold` of used + free memory is used; returns whether it did.

    Garbage is collected before the allocator releases memory; in the other order the garbage's memory is not released.
    """
    info = monitor.get_memory_info()
    if info["reserved"] <= threshold * (info["reserved"] + info["free"]):
        return False
    free_memory()
    return True
