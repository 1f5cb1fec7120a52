"""Where the names are by which a program holds its objects: its modules and the frames that run. Nothing of the program
is called: no property, no `__getattr__`, no `__eq__`, no `__repr__`."""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from typing import Any, NamedTuple

from ... import _marks
from ..._core.memory_errors import ended_by

_LIBRARIES = tuple(
    f"{os.sep}{part}{os.sep}" for part in ("site-packages", "dist-packages", f"python{sys.version_info[0]}.{sys.version_info[1]}")
)
_OURS = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
_OUR_PACKAGES = ("gpumemprof", "tfmemprof", "_gpumemprof_recorded")
_trace_of, _cause_of, _context_of = (BaseException.__dict__[f"__{name}__"].__get__ for name in ("traceback", "cause", "context"))
_MOST_ERRORS = 16  # a chain may lead back to itself
_CO_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: a function's frame, whose variables are in no namespace
# inspect.CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR: it has variables while it does not run.
_CO_SUSPENDED = 0x20 | 0x80 | 0x100 | 0x200


class Function(NamedTuple):
    """One of a library's that runs on this thread and keeps its variables until it returns."""

    name: str
    file: str


class Root(NamedTuple):
    """One name. `place`: "train (train.py)", "<module> (train.py)". `function`: of which it is a variable; None: of none such."""

    name: str
    place: str
    function: Function | None


class Roots:
    """Names, side by side: what each stands for, and where it is."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self.names: list[str] = []
        self.places: list[str] = []
        self.functions: list[Function | None] = []

    def add(self, named: list[tuple[str, object]], place: str, function: Function | None = None) -> None:
        self.names += [name for name, _ in named]
        self.values += [value for _, value in named]
        self.places += [place] * len(named)
        self.functions += [function] * len(named)

    def __getitem__(self, at: int) -> Root:
        return Root(self.names[at], self.places[at], self.functions[at])


def is_own(file: object) -> bool:
    """True for the program's own files, as opposed to installed ones, Python's and ours."""
    if not isinstance(file, str) or not file or file.startswith("<frozen"):
        return False
    return not file.startswith(_OURS) and not any(part in file for part in _LIBRARIES)


def _script() -> str | None:
    """The file of the main module, whose `__file__` Python removes when its code has run; None in a notebook."""
    words = sys.argv
    script = words[0] if type(words) is list and words and type(words[0]) is str else ""
    return script if script.endswith(".py") and is_own(script) else None


class Module(NamedTuple):
    space: dict[str, object]
    file: str
    is_own: bool


def modules() -> list[Module]:
    """Every module that is loaded."""
    found = []
    for name, module in list(sys.modules.items()):
        if type(module) is not type(sys) or name.partition(".")[0] in _OUR_PACKAGES:
            continue
        space = object.__getattribute__(module, "__dict__")
        file = dict.get(space, "__file__")
        if file is None and name == "__main__":
            file = _script()
        own = is_own(file) or (name == "__main__" and file is None)
        found.append(Module(space, file if isinstance(file, str) else name, own))
    return found


def add_modules(roots: Roots, all_modules: list[Module], own: bool) -> None:
    """The names of the program's own modules, or those of all others."""
    for space, file, is_of_program in all_modules:
        if is_of_program == own:
            # Names and values at once: another thread may add one in between.
            named = [one for one in list(space.items()) if type(one[0]) is str]
            roots.add(named, f"<module> ({os.path.basename(file)})")


def _locals(frame: Any) -> list[tuple[str, object]]:
    """The variables of a frame that runs, but for the `.0` of a comprehension, which is no name of the program's. Never
    `frame.f_locals`: python/native/marks/frames.h says why."""
    if not frame.f_code.co_flags & _CO_OPTIMIZED:
        return []  # a module's or a class's: names of a namespace that is used anyway
    found: list[tuple[str, object]] = _marks.variables(frame)
    return [one for one in found if not one[0].startswith(".")]


def add_frames(roots: Roots, own: bool, at_end: bool) -> None:
    """The variables of the program's own functions that run, on every thread, or those of all others. `at_end`: also of
    those that the exception left which ended the program."""
    here = get_ident()
    frames: list[Any] = list(sys._current_frames().items())
    while frames:  # emptied as it goes: one of them is our own, and a frame must not hold itself
        thread, frame = frames.pop()
        while frame is not None:
            _add_frame(roots, frame, own, returns=thread == here and not own)
            frame = frame.f_back
    for left in _frames_left() if at_end else []:
        _add_frame(roots, left, own, returns=False)


def _add_frame(roots: Roots, frame: Any, own: bool, returns: bool) -> None:
    code = frame.f_code
    file = code.co_filename
    if file.startswith(_OURS) or is_own(file) != own:
        return
    place = f"{code.co_name} ({os.path.basename(file)})"
    named = _locals(frame)
    if not returns or code.co_flags & _CO_SUSPENDED:
        roots.add(named, place)
        return
    closed = {*code.co_cellvars, *code.co_freevars}  # which other functions may keep
    roots.add([one for one in named if one[0] in closed], place)
    roots.add([one for one in named if one[0] not in closed], place, Function(code.co_name, file))


def _frames_left() -> list[Any]:
    """By that exception and those that it was raised from."""
    error = ended_by()
    frames: list[Any] = []
    for _ in range(_MOST_ERRORS):
        if error is None:
            break
        trace = _trace_of(error)
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        cause = _cause_of(error)
        error = cause if cause is not None else _context_of(error)
    return frames
