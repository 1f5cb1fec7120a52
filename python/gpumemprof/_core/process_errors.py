"""Notices how a process of multiprocessing ends.

Such a process catches everything, prints it and ends with 1: no hook of Python's sees it, and a forked one calls no
function of atexit. But up to Python 3.12 it runs the finalizers while the exception is still on its way, so nothing has to
be replaced. From 3.13 on it does not; there the process object gets a `run` around its own as it begins, which takes itself
out of tracebacks, and a process that is armed only by what it runs goes without. Classes with their own `run` are served.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in typing, whose import alone takes 10 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_listeners: list[Callable[[BaseException, str], None]] = []
_ends: list[Callable[[], None]] = []
_told_util = False  # whether multiprocessing.util calls `_process_begins`; a forked child has what its parent had
_finalized_pid = 0


def tell_of_processes(call: Callable[[BaseException, str], None]) -> None:
    """Has `call(error, where)` called, which raises nothing, in processes that begin from now on, and in this one.
    multiprocessing is not imported: who uses it will have done so."""
    if not _listeners:
        os.register_at_fork(after_in_child=_after_fork)
    if call not in _listeners:
        _listeners.append(call)
    _reach()


def at_end_of_processes(call: Callable[[], None]) -> None:
    """Has `call()` called, which raises nothing, when a process of multiprocessing ends that begins from now on: with what
    it runs still there, and after tell_of_processes."""
    if call not in _ends:
        _ends.append(call)


def _reach(may_have_begun: bool = True) -> None:
    global _told_util
    try:
        spawned = "--multiprocessing-fork" in (getattr(sys, "orig_argv", ()) or getattr(sys, "argv", ()))
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
    if getattr(begin, "_watched_by", None) == __name__:
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
            _process_ends(handled)

        self.__dict__["run"] = run
        return begin(self, *args, **kwargs)

    _bootstrap._watched_by = __name__  # type: ignore[attr-defined]
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
    if type(error) is SystemExit and error.code and error.__context__ is not None:
        # PyTorch's spawn() reports an exception to the parent, and then leaves so.
        error, how = error.__context__, "ended"
    if error is not None and id(error) != handled_id:
        process: Any = sys.modules["multiprocessing.process"]
        for tell in _listeners:
            tell(error, f"{how} process {process.BaseProcess.name.__get__(process.current_process())}")
    for end in _ends:
        end()


def _after_fork() -> None:
    _reach(may_have_begun=False)  # multiprocessing says so itself, once it has cleared its finalizers
