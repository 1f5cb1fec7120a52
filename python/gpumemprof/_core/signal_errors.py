"""What the program's own signal handlers raise while code of ours runs in its main thread: that is the program's, and no error
of ours to be dropped."""

from __future__ import annotations

import sys
from typing import Any


def of_the_program(error: BaseException) -> BaseException | None:
    """The error, without frames of ours; None for an error of ours. Ctrl-C is the program's, though it is raised in the
    middle of our code."""
    trace = error.__traceback__
    handlers = _handlers()
    while trace is not None and trace.tb_frame.f_code not in handlers:
        trace = trace.tb_next
    if trace is None and issubclass(type(error), Exception):
        return None
    error.__traceback__ = trace
    return error


def _handlers() -> list[Any]:
    """Their code. A handler in C has none, and raises nothing but KeyboardInterrupt."""
    signal = sys.modules.get("signal")
    if signal is None:
        return []
    handlers = [signal.getsignal(number) for number in range(1, signal.NSIG)]
    functions = [getattr(one, "__func__", one) for one in handlers if callable(one)]
    return [getattr(one, "__code__", None) or getattr(type(one).__call__, "__code__", None) for one in functions]
