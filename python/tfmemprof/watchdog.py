"""MemoryWatchdog: gpumemprof's watchdog for TensorFlow's devices."""

from __future__ import annotations

from typing import Any

from gpumemprof._tracking.watchdog import MemoryWatchdog as _Watchdog

from .collector import TensorFlowCollector


class MemoryWatchdog(_Watchdog):
    """Cleans up above `cleanup_threshold_mb`, and aggressively above `max_memory_mb`: MiB of this process on the
    device, on the CPU also its resident memory.

    A cleanup runs the program's callbacks. On the CPU it also releases free heap pages, and an aggressive one collects
    Python's garbage. It never clears Keras's session, which a running training needs. TensorFlow keeps its GPU memory
    for the life of the process, so there only memory that the callbacks drop becomes available again, to TensorFlow.
    Cleanups of one kind are at least `min_cleanup_interval` seconds apart.
    """

    def __init__(
        self,
        max_memory_mb: float = 8000,
        cleanup_threshold_mb: float = 6000,
        check_interval: float = 5.0,
        device: Any = None,
        *,
        min_cleanup_interval: float = 30.0,
    ) -> None:
        if not check_interval > 0:
            raise ValueError("check_interval must be > 0")
        super().__init__(
            max_memory_mb=max_memory_mb, cleanup_threshold_mb=cleanup_threshold_mb, check_interval=check_interval,
            min_cleanup_interval=min_cleanup_interval, collector=TensorFlowCollector(device),
        )  # fmt: skip
