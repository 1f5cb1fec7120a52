"""Whether tensors or their graphs are being taken apart right now, on any thread.

A look reads through PyTorch's pointers. While a backward pass runs, on another thread without Python's lock, or while an
object dies and Python code hears of it, such a pointer may lead to a tensor that is being freed: reading it ends the
process. Until then the look waits.
"""

from __future__ import annotations

import os
import sys
from typing import Any
from weakref import ReferenceType

from ... import _marks

_ENGINE = ("backward", "grad", "_engine_run_backward")  # what calls it, in one of these files
_ENGINE_FILES = tuple(os.path.join("torch", "autograd", name) for name in ("__init__.py", "graph.py"))
_CO_VARARGS = 4  # inspect.CO_VARARGS


def is_unsafe() -> bool:
    """Calls no code of the program."""
    frames: list[Any] = list(sys._current_frames().values())
    frame = None
    try:
        while frames:
            frame = frames.pop()
            while frame is not None:
                if _runs_backward(frame.f_code) or _hears_of_a_death(frame):
                    return True
                frame = frame.f_back
        return False
    finally:
        frames.clear()  # one of them is our own, and a frame must not hold itself
        frame = None


def _runs_backward(code: Any) -> bool:
    return code.co_name in _ENGINE and code.co_filename.endswith(_ENGINE_FILES)


def _hears_of_a_death(frame: Any) -> bool:
    """A finalizer, or what a weak reference calls: that gets the reference, whose object is gone."""
    code = frame.f_code
    if code.co_name == "__del__":
        return True
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _CO_VARARGS)
    if count == 0:
        return False
    for _, value in _marks.variables(frame)[:count]:
        if _is_dead(value) or (type(value) is tuple and any(_is_dead(one) for one in value)):
            return True
    return False


def _is_dead(value: object) -> bool:
    return issubclass(type(value), ReferenceType) and ReferenceType.__call__(value) is None  # type: ignore[arg-type]
