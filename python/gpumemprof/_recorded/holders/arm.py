"""Has the recorded process say now and then who holds its tensors: after 64 of its allocations and frees, after twice as
many, and so on, and when it ends. What variables of functions hold is gone by the end; whatever the length of the run,
the last look comes after half of it. Without `gpumemprof run --explain-leaks` it looks only where all looks together
take no more than 1 % of the time since it began, and each no more than 0.3 s; of a program whose blocks go on to grow
they may take 0.3 s in all, however short it is, and the last look at one that an exception ended may in any case."""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from ..._core.memory_errors import ended_by
from ..._core.process_errors import at_end_of_processes
from ..attribution import marks

# Now, as it compiles code: done at the program's end CPython would forget that Ctrl-C ended it.
from ..._core.process_start import start_ticks
from ..._core.signal_errors import of_the_program

if TYPE_CHECKING:
    from ..standing import Growth

_MOST_S = 2.0
# Of looks that nobody asked for.
_MOST_CHEAP_S, _LEAST_CHEAP_S, _CHEAP_SHARE = 0.3, 0.05, 0.01


class _Looking:
    def __init__(self, folder: str, marks: Any, cheap_since_s: float | None, growth: Growth) -> None:
        self.folder, self.marks = folder, marks
        self.cheap_since_s, self.spent_s = cheap_since_s, 0.0
        self.least_cheap_s = _LEAST_CHEAP_S
        self.growth = growth
        self.in_vain = 0  # times in turn that it was no moment for a look
        self.look: Any = None  # what takes one
        self.is_unsafe: Any = lambda: False
        self.looks: list[dict[str, Any]] = []
        self.process = os.getpid()
        self.has_ended = False

    def begin(self) -> BaseException | None:
        """As _called."""
        self.load()
        atexit.register(self.at_exit)
        at_end_of_processes(self.at_exit)
        os.register_at_fork(after_in_child=self._begin_in_child)
        if self.growth.is_seen():
            return self._look_when_safe()
        self._ask()
        return None

    def _begin_in_child(self) -> None:
        self.growth, self.looks, self.process = type(self.growth)(), [], os.getpid()
        self.has_ended = False
        if self.cheap_since_s is not None:
            self.cheap_since_s, self.spent_s = time.monotonic(), 0.0
            self.least_cheap_s = _LEAST_CHEAP_S
        self._ask()

    def load(self) -> None:
        """What a look needs."""
        from .look import look
        from .moment import is_unsafe

        self.look, self.is_unsafe = look, is_unsafe

    def _may_take_s(self) -> float:
        if self.cheap_since_s is None:
            return _MOST_S
        if self.has_ended and ended_by() is not None:
            return _MOST_CHEAP_S
        share_s = _CHEAP_SHARE * (time.monotonic() - self.cheap_since_s)
        left = max(share_s, _MOST_CHEAP_S if self.growth.is_seen() else 0.0) - self.spent_s
        return min(left, _MOST_CHEAP_S) if left >= self.least_cheap_s else 0.0

    def _ask(self) -> None:
        self.in_vain = 0
        self.marks.look_after(self.growth.events, self._called)

    def _called(self) -> BaseException | None:
        """What the program's own signal handler raised while we looked: it comes again where the program goes on."""
        self.growth.add_span(self.marks.blocks())
        return self._look_when_safe()

    def _look_when_safe(self) -> BaseException | None:
        then = self._ask
        try:
            if self._may_take_s() and self.is_unsafe():
                then = self._ask_soon
                return None
            self._look_once()
        except BaseException as error:
            return of_the_program(error)
        finally:
            then()
        return None

    def _ask_soon(self) -> None:
        """After one event, then two, then three: a fixed number would meet each backward pass of steps of some lengths."""
        self.in_vain += 1
        self.marks.look_after(self.in_vain, self._look_when_safe)

    def at_exit(self) -> None:
        if self.has_ended:
            return
        self.has_ended = True  # a process of multiprocessing that is no fork calls atexit's functions, too
        try:
            self.growth.end(self.marks.blocks())
            if not self.is_unsafe():
                self._look_once()
        except BaseException:  # the program has ended, and prints what is raised here
            pass

    def _look_once(self) -> None:
        may_take_s = self._may_take_s()
        if may_take_s == 0:
            return
        collects, began_s = gc.isenabled(), time.thread_time()
        gc.disable()  # else our own objects would have the program's garbage collected earlier
        try:
            taken = self.look(may_take_s, self.cheap_since_s is None, self.has_ended)
            self.looks.append({**taken, "gc_enabled": collects})
            # A look may fall into the end of the program, when all is gone: the one that saw most is kept, too.
            most = max(self.looks, key=lambda one: len(one["storages"]))
            self.looks = [one for one in self.looks if one is most or any(one is late for late in self.looks[-2:])]
            self._write()
        finally:
            took_s = time.thread_time() - began_s
            self.spent_s += took_s
            if took_s > may_take_s:  # it was cut short, and so would be the next one with no more time
                self.least_cheap_s = min(2 * may_take_s, _MOST_CHEAP_S)
            if collects:
                gc.enable()

    def _write(self) -> None:
        ticks = start_ticks()
        path = os.path.join(self.folder, f"holders.{self.process}.{ticks}.json")
        text = json.dumps(
            {
                "schema": "gpumemprof.holders/1",
                "pid": self.process,
                "start_ticks": ticks,
                "worker": _is_worker(),
                "looks": self.looks,
            }
        )
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(path + ".new", path)
        except OSError:
            os.unlink(path + ".new")


def _is_worker() -> bool:
    """Whether multiprocessing started this process; without it there is no such process."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None


_looking: _Looking | None = None


def arm(folder: str, cheap_since_s: float | None, growth: Growth) -> BaseException | None:
    """Once a process. Does nothing where the probe is not in it. `cheap_since_s`: looks may take a hundredth of the time
    since then (time.monotonic()); None: they were asked for, and may take what they take. `growth`: what is known of it. Gives
    what a handler of the program's raised meanwhile."""
    global _looking
    found = marks()
    if _looking is None and found is not None:
        _looking = _Looking(folder, found, cheap_since_s, growth)
        return _looking.begin()
    return None


def look_at_exit(folder: str, cheap_since_s: float, growth: Growth) -> None:
    """One look of a program that ends, where arm() was not called."""
    found = marks()
    if _looking is None and found is not None:
        looking = _Looking(folder, found, cheap_since_s, growth)
        looking.load()
        looking.at_exit()
