"""Notices an exception that nobody caught, in the main thread, another or a process of multiprocessing, and asks the
flight recorders to look that the program itself has armed. What a recording arms is in _standing.py.

The hooks that were there before are called all the same. Nothing here raises into the program.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import weakref
from types import TracebackType
from typing import Any, Protocol

from .._core.process_errors import tell_of_processes


class _Watcher(Protocol):
    def _on_uncaught(self, error: BaseException, where: str) -> None: ...


_watchers: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()
_before: tuple[Any, Any] | None = None
_threads_own: Any = getattr(threading, "__excepthook__", None) or getattr(_thread, "_excepthook")  # of 3.9


def watch(watcher: _Watcher) -> None:
    """Has `_on_uncaught` called until `unwatch`, or until the watcher is gone."""
    global _before
    with _lock:
        _watchers.add(watcher)
        if _before is None:
            _before = (sys.excepthook, threading.excepthook)
            sys.excepthook, threading.excepthook = _in_main, _in_thread
    tell_of_processes(_tell)


def unwatch(watcher: _Watcher) -> None:
    """Puts the hooks of before back where nobody watches any more and nobody else has put theirs on top."""
    global _before
    with _lock:
        _watchers.discard(watcher)
        if _before is None or _watchers or sys.excepthook is not _in_main or threading.excepthook is not _in_thread:
            return
        sys.excepthook, threading.excepthook = _before
        _before = None


def _tell(error: BaseException | None, where: str) -> None:
    if not issubclass(type(error), Exception):  # Ctrl-C and sys.exit() have nothing to do with memory
        return
    for watcher in list(_watchers):
        try:
            watcher._on_uncaught(error, where)
        except Exception:
            continue  # the program is ending with an error of its own: ours must not be in the way


def _in_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _tell(error, "uncaught")
    before = _before[0] if _before is not None else sys.__excepthook__
    before(kind, error, trace)


def _in_thread(arguments: Any) -> None:
    name = arguments.thread.name if arguments.thread is not None else "of unknown name"
    _tell(arguments.exc_value, f"uncaught in thread {name}")
    before = _before[1] if _before is not None else _threads_own
    before(arguments)


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
