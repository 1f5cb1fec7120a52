"""Notices an exception that nobody caught, in the main thread, another or a process of multiprocessing, and asks the
flight recorders to look.

The hooks that were there before are called all the same. Nothing here raises into the program.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import TracebackType
from typing import Any, Protocol


class _Watcher(Protocol):
    def _on_uncaught(self, error: BaseException, where: str) -> None: ...


# Of a recording that began with `gpumemprof.attach(folder)`; `gpumemprof run` says it in the environment.
attached_folder: str | None = None

_watchers: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()
_before: tuple[Any, Any] | None = None
_told_util = False  # whether multiprocessing.util calls `_process_begins`; a forked child has what its parent had
_finalized_pid = 0


def recording_folder() -> str | None:
    """Where this process is recorded, None where it is not."""
    return attached_folder or os.environ.get("GPUMEMPROF_DIR") or None


def watch(watcher: _Watcher) -> None:
    """Has `_on_uncaught` called until `unwatch`, or until the watcher is gone."""
    global _before
    with _lock:
        _watchers.add(watcher)
        if _before is None:
            _before = (sys.excepthook, threading.excepthook)
            sys.excepthook, threading.excepthook = _in_main, _in_thread
    _reach_processes()


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
    if error is None:
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
    before = _before[1] if _before is not None else threading.__excepthook__
    before(arguments)


# -- multiprocessing ---------------------------------------------------------------------------------------------------
#
# A process of multiprocessing catches everything, prints it and ends with 1: no hook of Python's sees it. But up to
# Python 3.12 it runs the finalizers while the exception is still on its way, so nothing has to be replaced. From 3.13
# on it does not; there the process object gets a `run` around its own as it begins, which takes itself out of
# tracebacks, and a process that is armed only by what it runs goes without. Classes with their own `run` are served.


def _reach_processes(may_have_begun: bool = True) -> None:
    """Has multiprocessing tell of the processes that begin. It is not imported: who uses it will have done so."""
    global _told_util
    try:
        spawned = "--multiprocessing-fork" in sys.orig_argv
        if spawned:
            import multiprocessing.util  # noqa: F401 - this interpreter was started for a process, and does so next
        util: Any = sys.modules.get("multiprocessing.util")
        if not hasattr(util, "Finalize"):  # not imported, or half of it
            return
        if sys.version_info >= (3, 13):
            _wrap_bootstrap(sys.modules["multiprocessing.process"].BaseProcess)
            return
        if not _told_util:
            util.register_after_fork(_hold, _process_begins)
            _told_util = True
        # A spawned process says nothing when it begins; another may be armed by what it runs, and has begun.
        has_begun = spawned or sys.modules["multiprocessing.process"].parent_process() is not None
        if may_have_begun and has_begun and _finalized_pid != os.getpid():
            _finalize(handled=None)
    except Exception:
        return  # multiprocessing as we do not know it: its processes go without


def _wrap_bootstrap(base: Any) -> None:
    """Has `run` of each process that begins from now on watched."""
    begin = base._bootstrap
    if getattr(begin, "_is_watched", False):
        return

    def _bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        own_run, handled = self.run, id(sys.exc_info()[1])

        def run() -> None:
            self.__dict__.pop("run", None)  # a process object may be pickled for a process of its own
            try:
                own_run()
            except BaseException as error:
                _process_ends(handled)
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise

        self.__dict__["run"] = run
        return begin(self, *args, **kwargs)

    _bootstrap._is_watched = True  # type: ignore[attr-defined]
    base._bootstrap = _bootstrap


class _Hold:
    """What multiprocessing drops its entry with: here never."""


_hold = _Hold()


def _process_begins(_: Any) -> None:
    _finalize(sys.exc_info()[1])


def _finalize(handled: BaseException | None) -> None:
    """`handled`: a process that is forked where an exception is being handled has that one about all its life."""
    global _finalized_pid
    _finalized_pid = os.getpid()
    util: Any = sys.modules["multiprocessing.util"]
    # By its id: to hold the exception would hold all that its frames do. First of all finalizers.
    util.Finalize(None, _process_ends, args=(id(handled),), exitpriority=1 << 30)


def _process_ends(handled_id: int) -> None:
    error, how = sys.exc_info()[1], "uncaught in"
    if isinstance(error, SystemExit) and error.code and error.__context__ is not None:
        # PyTorch's spawn() reports an exception to the parent, and then leaves so.
        error, how = error.__context__, "ended"
    if id(error) != handled_id:
        process: Any = sys.modules["multiprocessing.process"]
        _tell(error, f"{how} process {process.current_process().name}")


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    if _before is not None:
        _reach_processes(may_have_begun=False)  # multiprocessing says so itself, once it has cleared its finalizers


os.register_at_fork(after_in_child=_after_fork)
