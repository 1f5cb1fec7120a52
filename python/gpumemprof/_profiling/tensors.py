"""Tracks single tensors by name and, on request, logs every tensor that is created and freed."""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core.fork import renews_after_fork

# Messages go here at level INFO: `logging.basicConfig(level=logging.INFO)` shows them.
LOGGER = logging.getLogger("gpumemprof.tensors")
MAX_TRACKED = 100_000


def in_mib(size_bytes: int) -> str:
    """"3.81 MiB": mebibytes, of 1,048,576 bytes."""
    return f"{size_bytes / 2**20:.2f} MiB"


@dataclass
class TrackedTensor:
    """A tracked tensor: bytes of its storage, and seconds since 1970.

    `freed_at` is None while its memory is held, by this tensor or a view of it. `can_be_followed` is False if the
    object cannot be watched; then the time of its free stays unknown.
    """

    name: str
    size_bytes: int
    device: str
    dtype: str
    shape: tuple[int, ...]
    created_at: float
    freed_at: float | None = None
    can_be_followed: bool = True

    @property
    def is_alive(self) -> bool | None:
        """Whether its memory is still held; None if unknown."""
        return self.freed_at is None if self.can_be_followed else None


def _storage_of(tensor: Any) -> tuple[Any, int]:
    """What holds a tensor's memory, which views of it share, and its bytes."""
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        return storage, int(storage.nbytes())
    nbytes = getattr(tensor, "nbytes", None)
    if nbytes is None:
        nbytes = _bytes_of_shape(tensor)
    if nbytes is None:
        raise TypeError(f"cannot track a {type(tensor).__name__}: it has no size in bytes")
    return tensor, int(nbytes)


def _bytes_of_shape(tensor: Any) -> int | None:
    """Of TensorFlow's tensors and variables, which do not all say their bytes; None where the shape is not known."""
    element_bytes, shape = getattr(getattr(tensor, "dtype", None), "size", None), getattr(tensor, "shape", None)
    try:
        return None if element_bytes is None or shape is None else int(element_bytes) * math.prod(map(int, shape))
    except (TypeError, ValueError):  # a dimension or the rank is unknown
        return None


class TensorTracker:
    """Tracks tensors without keeping them alive; thread-safe."""

    def __init__(self, live: bool = False) -> None:
        self.tracked: list[TrackedTensor] = []
        self._lock = threading.RLock()  # a tensor may die while another is added
        renews_after_fork(self)
        self._live: Any = None
        # Watching every tensor slows each operation down: even where asked for it waits until somebody would see it.
        if live and LOGGER.isEnabledFor(logging.INFO) and "torch" in sys.modules:
            self.start_live()

    def _after_fork(self) -> None:
        self._lock = threading.RLock()

    def track_tensor(self, tensor: Any, name: str = "tensor") -> TrackedTensor:
        """Tracks one tensor (PyTorch's, TensorFlow's, NumPy's) until its memory is freed, and logs that.

        Raises TypeError for an object without a size in bytes. Beyond MAX_TRACKED, the oldest freed ones are dropped.
        """
        storage, size_bytes = _storage_of(tensor)
        entry = TrackedTensor(
            name=name,
            size_bytes=size_bytes,
            device=str(getattr(tensor, "device", "cpu")),
            dtype=str(getattr(tensor, "dtype", "unknown")),
            shape=tuple(int(n) for n in getattr(tensor, "shape", ())),
            created_at=time.time(),
        )
        with self._lock:
            if len(self.tracked) >= MAX_TRACKED:
                self.tracked[:] = [t for t in self.tracked if t.freed_at is None][-MAX_TRACKED + 1 :]
            self.tracked.append(entry)
        entry.can_be_followed = _when_gone(storage, _Goodbye(entry, f" ({name})"))
        LOGGER.info("Tensor tracked: %s (%s)", in_mib(size_bytes), name)
        return entry

    def alive(self) -> list[TrackedTensor]:
        """The tensors whose memory is known to be held."""
        with self._lock:
            return [t for t in self.tracked if t.freed_at is None and t.can_be_followed]

    def alive_bytes(self) -> int:
        """Their bytes together. Two tracked tensors that share memory count twice."""
        return sum(t.size_bytes for t in self.alive())

    def start_live(self) -> None:
        """Logs "Tensor created: 3.81 MiB" for every tensor of this thread from now on, and when it is freed.

        Every PyTorch operation then passes through Python, which costs several microseconds each.
        """
        if self._live is None:
            from .new_tensors import LiveTensors

            self._live = LiveTensors(self._created)
            self._live.__enter__()

    def stop_live(self) -> None:
        """Ends start_live. Must be called on the same thread."""
        live, self._live = self._live, None
        if live is not None:
            live.__exit__(None, None, None)

    def _created(self, tensor: Any, storage: Any, when_gone: Callable[[], None]) -> None:
        size_bytes = int(storage.nbytes())
        what = f" ({str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}, {tensor.device})"
        LOGGER.info("Tensor created: %s%s", in_mib(size_bytes), what)

        def gone() -> None:
            when_gone()
            LOGGER.info("Tensor freed: %s%s", in_mib(size_bytes), what)

        _when_gone(storage, gone)


class _Goodbye:
    """Notes that a tensor is gone. Holds the entry, never the tensor."""

    def __init__(self, entry: TrackedTensor, what: str) -> None:
        self._entry, self._what = entry, what

    def __call__(self) -> None:
        self._entry.freed_at = time.time()
        LOGGER.info("Tensor freed: %s%s", in_mib(self._entry.size_bytes), self._what)


def _when_gone(storage: Any, call: Callable[[], None]) -> bool:
    try:
        # Not at exit: then everything goes, and nobody wants to hear of it.
        weakref.finalize(storage, call).atexit = False
    except TypeError:
        return False
    return True
