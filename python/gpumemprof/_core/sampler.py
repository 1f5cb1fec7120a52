"""A thread that calls a function at a steady rate and keeps the results."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from .fork import renews_after_fork

T = TypeVar("T")


class Sampler(Generic[T]):
    """Keeps samples, at most `limit` of them, the latest; and takes one every `interval` seconds while it runs.

    The pace does not drift: a sample is due at start + n * interval, and one that comes too late is left out, not
    made up for. A forked child does not sample.
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
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = 0
        renews_after_fork(self)

    def _after_fork(self) -> None:
        self._lock, self._stop, self._thread = threading.Lock(), threading.Event(), None

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
        return self._thread is not None and self._thread.is_alive() and self._pid == os.getpid()

    def start(self, interval_s: float) -> None:
        """Nothing if it runs already."""
        if not interval_s > 0:
            raise ValueError(f"interval must be above 0 seconds, not {interval_s}")
        if self.is_running:
            return
        self._stop = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(
            target=self._run, args=(interval_s, self._stop), name="gpumemprof-monitor", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None and self._pid == os.getpid() and thread is not threading.current_thread():
            thread.join()

    def _run(self, interval_s: float, stop: threading.Event) -> None:
        due = time.monotonic()
        while True:
            try:
                self.keep(self._take())
            except Exception as error:  # the program's device may go away; it must not hear of it from this thread
                self.failure = f"{type(error).__name__}: {error}"
                return
            missed = int(max(0.0, time.monotonic() - due) / interval_s)
            due += (missed + 1) * interval_s
            if stop.wait(max(0.0, due - time.monotonic())):
                return
