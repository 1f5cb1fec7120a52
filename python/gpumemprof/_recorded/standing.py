"""Arms, in a recorded process, what notes an uncaught out-of-memory error, TensorFlow's graphs, Keras' layers and PyTorch's
modules."""

from __future__ import annotations

import atexit
import os
import time

from .._core import recording_folder
from .._core.memory_errors import ended_by, note_printed, oom_reason
from .._core.process_errors import at_end_of_processes
from .._core.when_imported import before_import, when_imported

# Whether a process goes on to keep what it allocates is seen by two numbers that the probe counts anyway.
_FIRST_SPAN_EVENTS, _LEAST_SPAN_EVENTS = 64, 1024
_LEAST_BLOCKS, _SPANS = 16, 2
_LEAST_SPAN_EVENTS_AT_END, _LEAST_BLOCKS_AT_END = 256, 4  # of a span that ended; since its begin
_LEAST_S_BEFORE_LOOK = 5.0  # of them a hundredth is the shortest look that tells something

TYPE_CHECKING = False  # as in typing, whose import alone takes 10 ms
if TYPE_CHECKING:
    from typing import Any


class Growth:
    """Whether the number of blocks goes on to grow: over two spans of events, the second twice as long.
    While a model or its data is made little is freed, which is no growth; what one step makes and drops is seldom there
    at the end of both."""

    def __init__(self) -> None:
        self.events = _FIRST_SPAN_EVENTS  # of the span that runs
        self._spans = 0
        self._last = [0, 0]  # blocks of the two spans before it

    def add_span(self, blocks: int) -> None:
        """`blocks`: made less freed in the span that ended."""
        grows = self.events >= _LEAST_SPAN_EVENTS and _LEAST_BLOCKS <= blocks < self.events // 4
        self._spans = self._spans + 1 if grows else 0
        self._last = [self._last[1], blocks]
        self.events *= 2

    def end(self, blocks: int) -> None:
        """The program ends, and may have been too short for such spans: a few blocks more than where the last one began,
        and twice as many more than where the one before began, are enough then. A span may have begun within a step,
        which holds more than its end; gradients that come and go may make it less. `blocks`: of the span that runs."""
        before, last = self._last
        if self.events // 2 < _LEAST_SPAN_EVENTS_AT_END or before + last + blocks >= self.events // 4:
            return
        if last + blocks >= _LEAST_BLOCKS_AT_END and before + last + blocks >= 2 * _LEAST_BLOCKS_AT_END:
            self._spans = _SPANS

    def is_seen(self) -> bool:
        return self._spans >= _SPANS


def _on_uncaught(error: BaseException, where: str) -> None:
    """The program is ending with an error of its own: what fails here stays here."""
    try:
        folder = recording_folder.recording_folder()
        if oom_reason(error) is not None:
            from .._oom.recorder import standing_recorder

            standing_recorder().look_at(error, where)
        elif folder is not None and issubclass(type(error), Exception):
            from .uncaught import note

            note(error, folder)
    except Exception:
        pass


def _in_main_or_thread(error: BaseException, thread: Any) -> None:
    """`thread`: None for the main one."""
    where = "uncaught"
    if thread is None:
        note_printed(error)
    else:
        if oom_reason(error) is None:  # it ends its thread alone
            return
        from threading import Thread

        name = vars(Thread)["name"].__get__(thread) if issubclass(type(thread), Thread) else "of unknown name"
        where = f"uncaught in thread {name}"
    _on_uncaught(error, where)


def _note_uncaught() -> None:
    """Without the C++ module there is no way to do it unseen, and nothing is noted."""
    try:
        from .. import _marks
    except ImportError:
        return
    if _marks.watch_uncaught(_in_main_or_thread):
        from .._core.process_errors import tell_of_processes

        tell_of_processes(_on_uncaught)


def note_graphs(folder: str | None) -> None:
    """Has the lines of code that made TensorFlow's operations written into `folder` when the process ends."""
    if folder is not None:

        def begin(module: object) -> None:
            from . import tf_graphs

            tf_graphs.arm(folder)

        before_import("tensorflow.python", begin)  # for many a program asks whether TensorFlow is there


def note_layers(folder: str | None) -> None:
    """Has the names of Keras' layers recorded with what is allocated in them."""
    if folder is not None:

        def begin(module: object) -> None:
            from .keras import arm as name_layers

            name_layers()

        before_import("keras.src", begin)


def note_modules(folder: str | None) -> None:
    """Has the names of PyTorch's modules, parameters and optimizer state recorded, and where steps end."""
    if folder is not None and not os.environ.get("GPUMEMPROF_NO_ATTRIBUTION"):
        from .attribution import arm as name_modules

        name_modules()


def explain_leaks(folder: str | None) -> None:
    """Has the process say who holds its tensors: where it costs next to nothing, or as `gpumemprof run --explain-leaks`
    (1) and `--no-explain-leaks` (0) ask for it."""
    wish = os.environ.get("GPUMEMPROF_EXPLAIN_LEAKS")
    if folder is None or wish == "0":
        return

    def begin(module: object) -> None:
        if wish == "1":
            _look_for_holders(folder, None, Growth())
        else:
            _look_when_it_is_cheap(folder)

    when_imported("torch.optim", begin)


def _look_for_holders(folder: str, cheap_since_s: float | None, growth: Growth) -> BaseException | None:
    from .holders.arm import arm as look_for_holders

    return look_for_holders(folder, cheap_since_s, growth)


class _CheapLooks:
    """Where a look would be more than a hundredth of the time, nothing grows and memory does not run out, what it needs is
    never loaded."""

    def __init__(self, folder: str, marks: Any) -> None:
        self.folder, self.marks = folder, marks
        self.is_handed_on = False  # or has ended

    def begin(self) -> None:
        self.began_s, self.growth = time.monotonic(), Growth()
        self.marks.look_after(self.growth.events, self.called)

    def begin_in_child(self) -> None:
        if not self.is_handed_on:
            self.begin()

    def called(self) -> BaseException | None:
        self.growth.add_span(self.marks.blocks())
        if self.growth.is_seen() or time.monotonic() - self.began_s >= _LEAST_S_BEFORE_LOOK:
            self.is_handed_on = True
            return _look_for_holders(self.folder, self.began_s, self.growth)
        self.marks.look_after(self.growth.events, self.called)
        return None

    def at_exit(self) -> None:
        if self.is_handed_on:
            return
        self.is_handed_on = True  # a process of multiprocessing that is no fork calls atexit's functions, too
        try:
            self.growth.end(self.marks.blocks())
            if self.growth.is_seen() or oom_reason(ended_by()) is not None:
                from .holders.arm import look_at_exit

                look_at_exit(self.folder, self.began_s, self.growth)
        except BaseException:  # the program has ended, and prints what is raised here
            pass


def _look_when_it_is_cheap(folder: str) -> None:
    from .attribution import marks

    found = marks()
    if found is None:
        return
    looks = _CheapLooks(folder, found)
    looks.begin()
    atexit.register(looks.at_exit)
    at_end_of_processes(looks.at_exit)
    os.register_at_fork(after_in_child=looks.begin_in_child)


def arm(folder: str | None = None, *, attribution: bool = True) -> None:
    """Has an uncaught out-of-memory exception leave a bundle. `folder`: where the process has begun to be recorded."""
    if folder is not None and not os.environ.get("GPUMEMPROF_DIR"):  # under `run` it is the one of `run`
        recording_folder.attached = folder
    _note_uncaught()
    recorded = recording_folder.recording_folder()
    note_graphs(recorded)
    note_layers(recorded)
    if attribution:
        note_modules(recorded)
    explain_leaks(recorded)
