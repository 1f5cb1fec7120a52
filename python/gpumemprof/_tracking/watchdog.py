"""MemoryWatchdog: frees memory before it runs out.

It checks and cleans up on its own thread, so a cleanup never delays a tracker's samples. A cleanup calls
`torch.cuda.empty_cache()` on a GPU, `malloc_trim` of the C library on the CPU, then the program's callbacks. An
aggressive one first collects Python's garbage.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.fork import renews_after_fork
from .._core.threads import SteadyThread
from .._core.torch import loaded_torch
from .._counting.collectors import DeviceMemoryCollector, DeviceMemorySample, build_device_memory_collector
from .._counting.host_source import resident_bytes
from .alerts import utilization

if TYPE_CHECKING:
    from .tracker import MemoryTracker

MIB = 1 << 20


class MemoryWatchdog:
    """Cleans up above `cleanup_threshold`, and aggressively above `aggressive_cleanup_threshold`.

    With a tracker, thresholds are shares of the device's total, compared with max(allocated, reserved, used); it
    watches while the tracker tracks, from now on. With `max_memory_mb` and `cleanup_threshold_mb` (MiB of this process:
    max(allocated, reserved), on the CPU also its resident memory, which has more than tensors in it), cleanup begins at
    the lower and aggressive cleanup at the higher one; `start()` begins watching. Cleanups of one kind are at least
    `min_cleanup_interval` seconds apart, except for `force_cleanup`. Raises ValueError for invalid thresholds.
    """

    def __init__(
        self,
        tracker: MemoryTracker | None = None,
        auto_cleanup: bool = True,
        cleanup_threshold: float = 0.9,
        aggressive_cleanup_threshold: float = 0.95,
        *,
        max_memory_mb: float | None = None,
        cleanup_threshold_mb: float | None = None,
        check_interval: float | None = None,
        min_cleanup_interval: float = 30.0,
        device: Any = None,
        collector: DeviceMemoryCollector | None = None,
    ) -> None:
        if (max_memory_mb is None) != (cleanup_threshold_mb is None):
            # One of the two is enough: the other follows as the share that the ratios say.
            ratio = cleanup_threshold / aggressive_cleanup_threshold
            max_memory_mb = max_memory_mb if max_memory_mb is not None else (cleanup_threshold_mb or 0) / ratio
            cleanup_threshold_mb = cleanup_threshold_mb if cleanup_threshold_mb is not None else max_memory_mb * ratio
        self._limits_bytes: tuple[float, float] | None = None
        if max_memory_mb is not None and cleanup_threshold_mb is not None:
            if not 0 < cleanup_threshold_mb <= max_memory_mb:
                raise ValueError("cleanup_threshold_mb must be > 0 and at most max_memory_mb")
            self._limits_bytes = (cleanup_threshold_mb * MIB, max_memory_mb * MIB)
        elif not 0 < cleanup_threshold <= aggressive_cleanup_threshold:
            raise ValueError("cleanup_threshold must be > 0 and at most aggressive_cleanup_threshold")
        if min_cleanup_interval < 0:
            raise ValueError("min_cleanup_interval must be >= 0")
        self.auto_cleanup = auto_cleanup
        self.cleanup_threshold = cleanup_threshold
        self.aggressive_cleanup_threshold = aggressive_cleanup_threshold
        self.max_memory_mb = max_memory_mb
        self.cleanup_threshold_mb = cleanup_threshold_mb
        self.min_cleanup_interval = min_cleanup_interval
        self._tracker = weakref.ref(tracker) if tracker is not None else None
        self._collector: DeviceMemoryCollector = (
            tracker.collector if tracker is not None else collector or build_device_memory_collector(device)
        )
        interval = check_interval or (tracker.sampling_interval if tracker is not None else 0.5)
        self._thread = SteadyThread("gpumemprof-watchdog", interval, self._check)
        self._callbacks: list[Callable[[], Any]] = []
        self._lock = threading.RLock()
        renews_after_fork(self)
        self._last_start: dict[bool, float] = {}
        self._figures: dict[str, Any] = {
            "cleanup_count": 0, "aggressive_cleanup_count": 0, "last_cleanup_time": None, "last_freed_bytes": None,
            "total_freed_bytes": 0, "callback_errors": 0, "last_error": None,
        }  # fmt: skip
        if tracker is not None and auto_cleanup:
            self.start()

    def _after_fork(self) -> None:
        self._lock = threading.RLock()

    @property
    def is_running(self) -> bool:
        return self._thread.is_running

    def start(self) -> None:
        """Begins watching. Idempotent."""
        self._thread.start()

    def stop(self) -> None:
        """Ends watching, after any running cleanup. Idempotent."""
        self._thread.stop()

    def __enter__(self) -> MemoryWatchdog:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def add_cleanup_callback(self, callback: Callable[[], Any]) -> None:
        """Calls the function without arguments at every cleanup, on the watchdog's thread; its exceptions are counted.
        """
        with self._lock:
            self._callbacks.append(callback)

    def remove_cleanup_callback(self, callback: Callable[[], Any]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def force_cleanup(self, aggressive: bool = False) -> int | None:
        """Cleans up now, on this thread. Returns the freed bytes; None if the device cannot be read."""
        return self._clean_up(aggressive)

    def get_cleanup_stats(self) -> dict[str, Any]:
        """Counts, times (s since 1970) and bytes.

        Freed bytes are the process's memory before less after each cleanup, at least 0, including what other threads
        allocate meanwhile. On the CPU, if tensors are counted, it is the larger decrease of their bytes and of resident
        memory, which malloc_trim reduces.
        """
        with self._lock:
            return {
                **self._figures,
                "auto_cleanup_enabled": self.auto_cleanup,
                "cleanup_threshold": self.cleanup_threshold,
                "aggressive_cleanup_threshold": self.aggressive_cleanup_threshold,
                "max_memory_mb": self.max_memory_mb,
                "cleanup_threshold_mb": self.cleanup_threshold_mb,
                "missed_checks": self._thread.missed_ticks,
            }

    def _check(self) -> None:
        tracker = self._tracker() if self._tracker is not None else None
        if not self.auto_cleanup or (self._tracker is not None and (tracker is None or not tracker.is_tracking)):
            return
        sample = self._collector.sample_with_diagnostics().sample
        aggressive = self._wanted(sample) if sample is not None else None
        if aggressive is None:
            return
        now = time.monotonic()
        # An aggressive cleanup does what a plain one does, so a plain one waits for both; it itself for its kind only.
        kinds = (True,) if aggressive else (True, False)
        if all(now - self._last_start.get(kind, -float("inf")) >= self.min_cleanup_interval for kind in kinds):
            self._last_start[aggressive] = now
            self._clean_up(aggressive)

    def _wanted(self, sample: DeviceMemorySample) -> bool | None:
        """Whether an aggressive cleanup is due, or a plain one; None: neither."""
        value: float | None
        if self._limits_bytes is not None:
            value, (low, high) = max(self._held(sample), default=None), self._limits_bytes
        else:
            value, low, high = utilization(sample), self.cleanup_threshold, self.aggressive_cleanup_threshold
        return None if value is None or value < low else value >= high

    def _clean_up(self, aggressive: bool) -> int | None:
        before = self._held_now()
        with self._lock:
            callbacks = list(self._callbacks)
        errors: list[str] = []
        for action in [*_own_actions(self._collector.name(), aggressive), *callbacks]:
            try:
                action()
            except Exception as error:  # somebody's callback, or a driver
                errors.append(f"{type(error).__name__}: {error}")
        after = self._held_now()
        # Of the bytes held and, where that is something else, resident memory: the one of which more went.
        pairs = list(zip(before, after))
        before_bytes, after_bytes = max(pairs, key=lambda pair: pair[0] - pair[1], default=(None, None))
        freed = max(0, before_bytes - after_bytes) if before_bytes is not None and after_bytes is not None else None
        with self._lock:
            figures = self._figures
            figures["cleanup_count"] += 1
            figures["aggressive_cleanup_count"] += aggressive
            figures["last_cleanup_time"] = time.time()
            figures["last_freed_bytes"] = freed
            figures["total_freed_bytes"] += freed or 0
            figures["callback_errors"] += len(errors)
            figures["last_error"] = errors[-1] if errors else figures["last_error"]
        tracker = self._tracker() if self._tracker is not None else None
        if tracker is not None:
            tracker.record_cleanup({
                "aggressive": aggressive, "before_bytes": before_bytes, "after_bytes": after_bytes,
                "freed_bytes": freed,
            })  # fmt: skip
        return freed

    def _held_now(self) -> list[int]:
        sample = self._collector.sample_with_diagnostics().sample
        return self._held(sample) if sample is not None else []

    def _held(self, sample: DeviceMemorySample) -> list[int]:
        held = _held_bytes(sample)
        if held is None:
            return []
        # Bytes of tensors leave out what is no tensor, and stay as they are when free pages go.
        counted = self._collector.name() == "cpu" and self._collector.basis == "exact"
        return [held, resident_bytes()[0]] if counted else [held]


def _held_bytes(sample: DeviceMemorySample) -> int | None:
    """What this process holds: what others use of the device, no cleanup of ours can free."""
    figures = (sample.allocated_bytes, sample.reserved_bytes)
    return max((figure for figure in figures if figure is not None), default=None)


def _own_actions(backend: str, aggressive: bool) -> list[Callable[[], Any]]:
    actions: list[Callable[[], Any]] = [gc.collect] if aggressive else []
    torch = loaded_torch()
    if backend in ("cuda", "rocm") and torch is not None and torch.cuda.is_initialized():
        actions.append(torch.cuda.empty_cache)
    elif backend == "mps" and torch is not None:
        actions.append(torch.mps.empty_cache)
    elif backend == "cpu":
        actions.append(_trim_heap)
    return actions


def _trim_heap() -> None:
    """Gives free pages of the C library's heap back to the system (glibc only; elsewhere there is nothing to do)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
