"""The profiler shared by module-level functions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .._counting.devices import resolve_device
from .profiler import GPUMemoryProfiler

P = TypeVar("P", bound=GPUMemoryProfiler)


class SharedProfilers(Generic[P]):
    """A shared profiler, made at the first call, and one more for each other device that is named.

    `make` makes a profiler of a device, `resolve` says which device a word means.
    """

    def __init__(self, make: Callable[[Any], P], resolve: Callable[[Any], Any]) -> None:
        self._make, self._resolve = make, resolve
        self._lock = threading.Lock()
        self._shared: P | None = None
        self._of_device: dict[str, P] = {}
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # another thread may have held it

    def get(self, device: Any = None) -> P:
        """The shared one; for a device that is named and is not its own, one for that device."""
        profiler = self._shared
        if profiler is not None and device is None:
            return profiler
        where = self._resolve(device)
        with self._lock:
            if self._shared is None:
                self._shared = self._make(where)
            if device is None or self._shared._device == where:
                return self._shared
            shared = self._of_device.get(str(where))
            if shared is None:
                shared = self._of_device[str(where)] = self._make(where)
            return shared

    def set(self, profiler: P | None) -> None:
        """Makes `profiler` the shared one. None forgets all."""
        with self._lock:
            self._shared = profiler
            if profiler is None:
                self._of_device.clear()

    def existing(self) -> P | None:
        """The shared one where there is one."""
        return self._shared


_profilers = SharedProfilers(GPUMemoryProfiler, resolve_device)


def get_global_profiler(device: Any = None) -> GPUMemoryProfiler:
    """The shared profiler, created at the first call; for a different named device, the shared one of that device."""
    return _profilers.get(device)


def set_global_profiler(profiler: GPUMemoryProfiler | None) -> None:
    """Makes `profiler` the shared one. None removes all shared ones."""
    _profilers.set(profiler)


def existing_profiler() -> GPUMemoryProfiler | None:
    """The shared profiler where there is one."""
    return _profilers.existing()
