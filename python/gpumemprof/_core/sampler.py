"""A thread that calls a function at a steady rate and keeps the results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from .fork import renews_after_fork
from .threads import SteadyThread

T = TypeVar("T")


class Sampler(Generic[T]):
    """Keeps samples, at most `limit` of them, the latest; and takes one every `interval` seconds while it runs.

    Its pace is that of SteadyThread. A forked child does not sample.
    """

    def __init__(self, take: Callable[[], T], limit: int, size_of: Callable[[T], int]) -> None:
        if limit < 1:
            raise ValueError("the number of snapshots to keep must be >= 1")
        self._take, self._limit, self._size_of = take, limit, size_of
        self.kept: list[T] = []
        self.count = 0
        self.highest_bytes = 0
        self.failure: str | None = None
        self._lock = threading.Lock()
        self._thread: SteadyThread | None = None
        renews_after_fork(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def keep(self, sample: T) -> None:
        with self._lock:
            self.kept.append(sample)
            self.count += 1
            self.highest_bytes = max(self.highest_bytes, self._size_of(sample))
            if len(self.kept) > self._limit:
                # A tenth at once, since taking one from the front moves all others.
                del self.kept[: max(1, len(self.kept) - self._limit + self._limit // 10)]

    def clear(self) -> None:
        with self._lock:
            self.kept.clear()
            self.count = self.highest_bytes = 0

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_running

    def start(self, interval_s: float) -> None:
        """The first sample is taken at once. Nothing if it runs already."""
        thread = SteadyThread("gpumemprof-monitor", interval_s, self._sample)
        if self.is_running:
            return
        self._thread = thread
        thread.start()
        self._sample()

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.stop()

    def _sample(self) -> None:
        try:
            self.keep(self._take())
        except Exception as error:  # the program's device may go away; it must not hear of it from this thread
            self.failure = f"{type(error).__name__}: {error}"
            self.stop()
