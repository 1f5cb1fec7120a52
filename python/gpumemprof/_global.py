"""The profiler that module-level functions share."""

from __future__ import annotations

import os
import threading
from typing import Any

from .devices import resolve_device
from .profiler import GPUMemoryProfiler

_lock = threading.Lock()
_global: GPUMemoryProfiler | None = None
_of_device: dict[str, GPUMemoryProfiler] = {}


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it


os.register_at_fork(after_in_child=_after_fork)


def get_global_profiler(device: Any = None) -> GPUMemoryProfiler:
    """The shared profiler, made at the first call; for a device that is named and is not its own, one for that
    device.
    """
    global _global
    profiler = _global
    if profiler is not None and device is None:
        return profiler
    where = resolve_device(device)
    with _lock:
        if _global is None:
            _global = GPUMemoryProfiler(where)
        if device is None or _global._device == where:
            return _global
        shared = _of_device.get(str(where))
        if shared is None:
            shared = _of_device[str(where)] = GPUMemoryProfiler(where)
        return shared


def set_global_profiler(profiler: GPUMemoryProfiler | None) -> None:
    """Makes `profiler` the shared one. None forgets all shared ones."""
    global _global
    with _lock:
        _global = profiler
        if profiler is None:
            _of_device.clear()


def existing_profiler() -> GPUMemoryProfiler | None:
    """The shared profiler where there is one."""
    return _global
