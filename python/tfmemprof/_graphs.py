"""Which lines of code made the operations of TensorFlow's graphs, written beside a recording when the process ends.

Threads that execute a graph have no Python frames: their allocations carry the operation's name alone. TensorFlow keeps
where each operation was made, so the name leads to the line. Graphs are noted as they are made, weakly, and asked at the
end. A graph that is gone by then, or a process that is killed, leaves no lines; the names are in the recording anyway.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
import weakref
from typing import Any

_MODULE = "tensorflow.python.framework.func_graph"
_SCHEMA = "gpumemprof.operations/1"
MAX_SECONDS = 3.0  # at the program's end, for all graphs together
MAX_OPERATIONS = 200_000

_graphs: weakref.WeakSet[Any] = weakref.WeakSet()
_made = 0  # graphs, also those that are gone
_folder: str | None = None


def arm(folder: str) -> None:
    """Notes every graph from now on, and writes what is known of them into `folder` when the process ends."""
    global _folder
    if _folder is None:
        atexit.register(_write_at_exit)
        module = sys.modules.get(_MODULE)
        if module is not None:
            _wrap(module)
        else:
            sys.meta_path.insert(0, _Finder())
    _folder = folder


class _Finder:
    """Is asked for every import until the one module comes, then takes itself away."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != _MODULE:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _wrap_when_executed(spec)
                return spec
        return None


def _wrap_when_executed(spec: Any) -> None:
    loader = spec.loader
    try:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module  # the loader is as it was
            execute(module)
            _wrap(module)

        loader.exec_module = exec_module
    except Exception:  # a loader that allows no such thing: no lines, and nothing else changes
        pass


def _wrap(module: Any) -> None:
    graph = getattr(module, "FuncGraph", None)
    if graph is None or hasattr(graph.__init__, "_gpumemprof"):
        return
    original = graph.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        global _made
        original(self, *args, **kwargs)
        try:
            _graphs.add(self)
            _made += 1
        except Exception:
            pass

    __init__._gpumemprof = True  # type: ignore[attr-defined]
    graph.__init__ = __init__


class Collected:
    """Names of operations and the frames in which they were made, each frame and stack once."""

    def __init__(self) -> None:
        self.frames: dict[tuple[str, int, str], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self.operations: dict[str, int | None] = {}  # None: made in several places
        self.left_out = 0

    def add(self, name: str, frames: list[tuple[str, int, str]]) -> None:
        """`frames`: file, line and function, the outermost first."""
        ids = tuple(self.frames.setdefault(frame, len(self.frames)) for frame in frames)
        stack = self.stacks.setdefault(ids, len(self.stacks))
        if self.operations.setdefault(name, stack) != stack:
            self.operations[name] = None

    def as_json(self) -> dict[str, Any]:
        return {
            "frames": [list(frame) for frame in self.frames],
            "stacks": [list(stack) for stack in self.stacks],
            "operations": self.operations,
            "left_out": {"operations": self.left_out, "graphs": max(0, _made - len(_graphs))},
        }


def collect(max_seconds: float = MAX_SECONDS) -> Collected:
    """What the graphs that are alive say. Operations for which there was no time are counted in `left_out`."""
    collected = Collected()
    end = time.monotonic() + max_seconds
    for graph in list(_graphs):
        for operation in graph.get_operations():
            if time.monotonic() > end or len(collected.operations) >= MAX_OPERATIONS:
                collected.left_out += 1
                continue
            frames = [(f.filename, f.lineno, f.name) for f in operation.traceback.get_user_frames()]
            collected.add(operation.name, frames)
    return collected


def _identity() -> tuple[str, int, int]:
    """Host, PID and start in clock ticks: what names a process in a recording."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    host = "".join("_" if c == "/" or c <= " " else c for c in os.uname().nodename or "unknown")  # as the probe has it
    return host, os.getpid(), int(fields[19])


def write(folder: str) -> str | None:
    """Writes operations.PID.START.json into `folder`; its path, None where there is nothing to write."""
    import json

    if not _made:
        return None
    host, pid, start = _identity()
    document = {"schema": _SCHEMA, "host": host, "pid": pid, "start_ticks": start, **collect().as_json()}
    path = os.path.join(folder, f"operations.{pid}.{start}.json")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
        json.dump(document, file, separators=(",", ":"))
    return path


def _write_at_exit() -> None:
    try:
        if _folder is not None:
            write(_folder)
    except BaseException:  # nothing of ours may be seen at the program's end
        pass
