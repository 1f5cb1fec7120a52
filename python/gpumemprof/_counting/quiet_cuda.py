"""Calls into CUDA that must not disturb the program."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .devices import CurrentGpu, Device, index_of

_RELAXED = ctypes.c_int(2)  # cudaStreamCaptureModeRelaxed
_exchange_lock = threading.Lock()
_exchange: Any = None
_searched = False


def cuda_device(torch: Any, device: Any) -> Device:
    """The device to ask. Without an index the one that the program uses, once it has brought CUDA up."""
    index = index_of(device)
    if index is None:
        return CurrentGpu()
    count = int(torch.cuda.device_count())
    if index >= count:
        raise ValueError(f"Device cuda:{index} is not available: there are {count}")
    return Device("cuda", index)


def has_context(torch: Any, index: int, reserved_bytes: int) -> bool:
    """Whether this process has a context on an initialised CUDA's device already, so that asking makes none."""
    if reserved_bytes:
        return True
    ask = getattr(getattr(torch, "_C", None), "_cuda_hasPrimaryContext", None)
    return bool(ask(index)) if ask is not None else index == int(torch.cuda.current_device())


@contextmanager
def relaxed_capture() -> Iterator[None]:
    """A call of this thread inside must not break a CUDA graph that another thread is capturing right now.

    A call that the driver thinks unsafe ends a global-mode capture, whoever makes it, unless its thread is in relaxed
    mode. Where the runtime library cannot be found the call is made as it is.
    """
    exchange = _find_exchange()
    if exchange is None:
        yield
        return
    mode = ctypes.c_int(_RELAXED.value)
    changed = exchange(ctypes.byref(mode)) == 0
    try:
        yield
    finally:
        if changed:
            exchange(ctypes.byref(mode))  # it holds what was there before


def _find_exchange() -> Any:
    global _exchange, _searched
    with _exchange_lock:
        if not _searched:
            _searched = True
            for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"):
                try:
                    # Only a library that the process has loaded already: RTLD_NOLOAD.
                    library = ctypes.CDLL(name, mode=getattr(os, "RTLD_NOLOAD", 4) | os.RTLD_LAZY)
                    _exchange = library.cudaThreadExchangeStreamCaptureMode
                    break
                except (OSError, AttributeError):
                    continue
        return _exchange
