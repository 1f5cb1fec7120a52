"""Threads that tick at a steady pace and end with the program."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from .fork import RenewedAfterFork, renews_after_fork


class _Endable(RenewedAfterFork, Protocol):
    def _end_with_program(self) -> None: ...


_live: weakref.WeakSet[Any] = weakref.WeakSet()


def ends_with_program(item: _Endable) -> None:
    """Has the item's `_end_with_program` called before the interpreter is taken down, and `_after_fork` in children."""
    _live.add(item)
    renews_after_fork(item)


def _end_all() -> None:
    for item in list(_live):
        item._end_with_program()


atexit.register(_end_all)


class SteadyThread:
    """Calls `tick` every `interval_s`, on a schedule that does not drift: the n-th call is due at start + n·interval.

    Where a call comes a whole interval late, or more, the ones that were missed are counted in `missed_ticks` and
    left out, never made up for in a bunch. The object behind a bound `tick` is not kept alive: the thread ends when
    it is gone. A tick that raises is counted in `failed_ticks`. In a forked child nothing runs.
    """

    def __init__(self, name: str, interval_s: float, tick: Callable[[], None]) -> None:
        if not 0 < interval_s < threading.TIMEOUT_MAX:
            raise ValueError(f"the interval must be above 0 seconds, not {interval_s!r:.40}")
        self.interval_s = interval_s
        self.missed_ticks = 0
        self.failed_ticks = 0
        self._name = name
        self._stop = threading.Event()
        # When the object is gone the wait ends at once, not with the interval.
        self._tick = weakref.WeakMethod(tick, self._forgotten()) if hasattr(tick, "__self__") else lambda: tick
        self._thread: threading.Thread | None = None
        ends_with_program(self)

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Starts ticking, the first time after one interval. Does nothing if it runs already."""
        if self.is_running:
            return
        self._stop = threading.Event()
        # A daemon: a program that never stops its tracker must end all the same.
        self._thread = threading.Thread(target=self._run, args=(self._stop,), name=self._name, daemon=True)
        self._thread.start()

    def stop(self, wait: bool = True, timeout_s: float = 10.0) -> None:
        """Ends it, and waits for a tick that is under way (not where that tick itself calls this)."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _forgotten(self) -> Callable[[Any], None]:
        mine = weakref.ref(self)

        def end(_: Any) -> None:
            thread = mine()
            if thread is not None:
                thread._stop.set()

        return end

    def _run(self, stop: threading.Event) -> None:
        start, count = time.monotonic(), 1
        while not stop.wait(max(0.0, start + count * self.interval_s - time.monotonic())):
            tick = self._tick()
            if tick is None:
                return
            try:
                tick()
            except Exception:
                self.failed_ticks += 1
            del tick  # while we wait, only others keep it alive
            due = int((time.monotonic() - start) / self.interval_s)
            self.missed_ticks += max(0, due - count)
            count = max(count, due) + 1

    def _end_with_program(self) -> None:
        self.stop(timeout_s=2.0)  # a thread that hangs in a driver does not keep the program

    def _after_fork(self) -> None:
        self._thread, self._stop = None, threading.Event()
