"""Reports when a line of certain functions begins and ends: by sys.monitoring from Python 3.12 on, otherwise by
sys.settrace.

A line that suspends its function, `data = await load()`, has one span for each part that runs.
"""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import Any, Protocol


class Listener(Protocol):
    """Gets the spans of every line that ended, or was suspended; `hits` is 0 for the rest of one that was resumed."""

    def sources(self) -> list[Any]: ...
    def record(self, code: CodeType, line: int, sources: list[Any], spans: list[Any], hits: int) -> None: ...


# sys.monitoring of 3.12 announces a line again in the middle of it, where a branch ends: `f(a() or b())`.
_BRANCHES_ARE_LINES = sys.version_info[:2] == (3, 12)
# sys.settrace of 3.9 announces it again where an exception leaves the block of a `with` that is on it.
_EXCEPTIONS_ARE_LINES = sys.version_info < (3, 10)


class _Run:
    """One run of a function: the line that it is at.

    A line that is announced twice in a row is a loop on one line, which jumps back, unless it is announced at a higher
    offset than before: then it goes on, and is no new hit. Offsets are in bytes of the bytecode, and taken on 3.12
    alone; elsewhere they are 0, and -1 for what goes on after an exception was thrown in, which is announced again.
    """

    __slots__ = ("code", "line", "hits", "offset", "sources", "spans")

    def __init__(self, code: CodeType, sources: list[Any]) -> None:
        self.code, self.sources = code, sources
        self.line = self.hits = self.offset = 0
        self.spans: list[Any] = []

    def begin(self, line: int, hits: int) -> None:
        self.line, self.hits = line, hits
        self.spans = [source.begin() for source in self.sources]

    def end(self, listener: Listener) -> None:
        if self.spans:
            spans, self.spans = self.spans, []
            listener.record(self.code, self.line, self.sources, spans, self.hits)


class LineTracer:
    """Follows the functions that were added, on every thread.

    With sys.settrace only threads that were started later, or that call `add`, are followed, and every call of any
    function in them is used, from `add` to `remove`: whether a call is one of ours can only be seen there, since
    the functions stay the ones they are. A debugger or a coverage tool that uses it too goes on, since what was there
    before is called as well.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._codes: set[CodeType] = set()
        self._local = threading.local()
        self._tool: int | None = None
        self._before: Any = None

    def add(self, code: CodeType) -> None:
        self._codes.add(code)
        if sys.version_info >= (3, 12):
            self._add_monitoring(code)
        elif sys.gettrace() != self._trace:
            self._before = sys.gettrace()
            sys.settrace(self._trace)
            threading.settrace(self._trace)

    def remove(self) -> None:
        self._codes.clear()
        if sys.version_info >= (3, 12):
            if self._tool is not None:
                sys.monitoring.free_tool_id(self._tool)
                self._tool = None
        elif sys.gettrace() == self._trace:
            sys.settrace(self._before)
            threading.settrace(self._before)

    def _runs(self) -> list[_Run]:
        """The runs of this thread, outermost first."""
        runs: list[_Run] | None = getattr(self._local, "runs", None)
        if runs is None:
            runs = self._local.runs = []
        return runs

    def _enter(self, code: CodeType) -> None:
        self._runs().append(_Run(code, self._listener.sources()))

    def _reenter(self, frame: FrameType, thrown: bool = False) -> None:
        """A generator or coroutine runs on, in the middle of a line that has been counted."""
        self._enter(frame.f_code)
        line: int | None = frame.f_lineno  # none in code that has no line
        if line is not None:
            run = self._runs()[-1]
            run.begin(line, 0)
            run.offset = -1 if thrown else frame.f_lasti if _BRANCHES_ARE_LINES else 0

    def _line(self, code: CodeType, line: int, offset: int = 0) -> None:
        runs = self._runs()
        if runs and runs[-1].code is code:
            run = runs[-1]
            goes_on = run.line == line and offset > run.offset
            run.offset = offset
            run.end(self._listener)
            run.begin(line, 0 if goes_on else 1)

    def _leave(self, code: CodeType) -> None:
        runs = self._runs()
        if runs and runs[-1].code is code:
            runs.pop().end(self._listener)

    # -- sys.settrace --------------------------------------------------------------------------------------------------

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        # Called for each new frame; what it gives is called for that frame's lines.
        other = self._before(frame, event, argument) if self._before is not None else None
        if frame.f_code not in self._codes:
            return other
        if frame.f_trace is None:
            self._enter(frame.f_code)
        else:  # set at the first call; what was there before may have set it, too, but then the frame has run as well
            self._reenter(frame)

        def local(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal other
            if event == "line":
                self._line(frame.f_code, frame.f_lineno)
            elif event == "return":
                self._leave(frame.f_code)
            elif event == "exception" and _EXCEPTIONS_ARE_LINES and argument[0] is not StopIteration:
                for run in self._runs()[-1:]:
                    run.offset = -1
            if other is not None:
                other = other(frame, event, argument)
            return local

        return local

    # -- sys.monitoring ------------------------------------------------------------------------------------------------

    if sys.version_info >= (3, 12):

        def _add_monitoring(self, code: CodeType) -> None:
            monitoring, events = sys.monitoring, sys.monitoring.events
            if self._tool is None:
                self._tool = next((t for t in (4, 3, 5, 2) if monitoring.get_tool(t) is None), None)
                if self._tool is None:
                    raise RuntimeError("all tool numbers of sys.monitoring are taken")
                monitoring.use_tool_id(self._tool, "gpumemprof.lines")
                register = monitoring.register_callback
                # Each sys._getframe() is an event for the program's audit hooks, so it is asked where it must be.
                register(self._tool, events.LINE, self._line if not _BRANCHES_ARE_LINES else
                         lambda code, line: self._line(code, line, sys._getframe(1).f_lasti))  # fmt: skip
                register(self._tool, events.PY_START, lambda code, *_: self._enter(code))
                register(self._tool, events.PY_RESUME, lambda *_: self._reenter(sys._getframe(1)))
                for event in (events.PY_RETURN, events.PY_YIELD):
                    register(self._tool, event, lambda code, *_: self._leave(code))
                # These two are of all code or none.
                for event in (events.PY_UNWIND, events.PY_THROW):
                    register(self._tool, event, self._thrown(event == events.PY_THROW))
                monitoring.set_events(self._tool, events.PY_UNWIND | events.PY_THROW)
            local = events.LINE | events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD
            monitoring.set_local_events(self._tool, code, local)

        def _thrown(self, into: bool) -> Any:
            def called(code: CodeType, *_: Any) -> None:
                if code in self._codes and into:
                    self._reenter(sys._getframe(1), thrown=True)
                elif code in self._codes:
                    self._leave(code)

            return called
