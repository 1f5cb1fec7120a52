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

from .._core.memory_errors import message_of
from .._core.process_start import start_ticks
from .._core.when_imported import drop, when_imported
from . import graph_scopes, tf_variables
from .tf_clusters import Clusters

_MODULE = "tensorflow.python.framework.func_graph"
_SCHEMA = "gpumemprof.operations/1"
MAX_SECONDS = 3.0  # at the program's end, for all graphs together
MAX_OPERATIONS = 200_000
MAX_ERROR = 300  # letters of one

_graphs: weakref.WeakSet[Any] = weakref.WeakSet()
_made = 0  # graphs, also those that are gone
_folder: str | None = None


def arm(folder: str) -> None:
    """Notes every graph from now on, and writes what is known of them into `folder` when the process ends."""
    global _folder
    if _folder is None:
        atexit.register(_write_at_exit)
        when_imported(_MODULE, _wrap)
    _folder = folder


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
        except Exception as error:
            drop(error)

    __init__._gpumemprof = True  # type: ignore[attr-defined]
    graph.__init__ = __init__


class Collected:
    """Names of operations and the frames in which they were made, each frame and stack once."""

    def __init__(self) -> None:
        self.frames: dict[tuple[str, int, str], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self.operations: dict[str, int | None] = {}  # None: made in several places, or loaded
        self.variables: dict[str, str | None] = {}  # that an operation writes; None: several
        self.layers: dict[str, str | None] = {}  # of those variables; None: not known
        self.initial: dict[str, str] = {}  # variables by name: the layer that their initial value is for
        self.xla: dict[str, str] = {}  # the function that an operation calls, where XLA compiled it
        self.left_out = 0
        self.unread: dict[str, int] = {}  # what could not be asked, and why: how often

    def note_unread(self, what: str, error: Exception) -> None:
        """To be called where the error is caught."""
        drop(error)
        why = f"{what} ({type(error).__name__}: {message_of(error)[:MAX_ERROR]})"
        self.unread[why] = self.unread.get(why, 0) + 1

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
            "variables": {
                name: [variable, self.layers.get(variable)]
                for name, variable in self.variables.items()
                if variable is not None
            },
            "initial_values": self.initial,
            "xla": self.xla,
            "layers": dict(graph_scopes.paths),
            "left_out": {
                "operations": self.left_out,
                "graphs": max(0, _made - len(_graphs)),
                "scopes": graph_scopes.left_out,
            },
            **({"errors": self.unread} if self.unread else {}),
        }


def collect(max_seconds: float = MAX_SECONDS) -> Collected:
    """What the graphs that are alive say. Operations for which there was no time are counted in `left_out`, and what could
    not be asked in `unread`: one graph's trouble takes nothing from the others."""
    collected = Collected()
    end = time.monotonic() + max_seconds
    graphs, clusters = list(_graphs), Clusters()
    for graph in graphs:
        try:
            _add_graph(collected, graph, clusters, end)
        except Exception as error:
            collected.note_unread("a graph", error)
    try:
        collected.xla = clusters.by_name()
        _add_layers(collected, graphs)
        _add_compiled_functions(collected, end)
    except Exception as error:
        collected.note_unread("layers and XLA's functions", error)
    return collected


def _add_graph(collected: Collected, graph: Any, clusters: Clusters, end: float) -> None:
    captured = tf_variables.captured(graph)
    for operation in graph.get_operations():
        if time.monotonic() > end or len(collected.operations) >= MAX_OPERATIONS:
            collected.left_out += 1
            continue
        traceback = operation.traceback
        if traceback is None:  # of a SavedModel that was loaded
            collected.operations[operation.name] = None
        else:
            frames = [(f.filename, f.lineno, f.name) for f in traceback.get_user_frames()]
            collected.add(operation.name, frames)
        if captured and tf_variables.writes_variable(operation.type):
            _add_variable(collected, operation, captured)
        clusters.add(graph.name, operation)


def _add_variable(collected: Collected, operation: Any, captured: dict[str, Any]) -> None:
    variable = captured.get(operation.inputs[0].name)
    if variable is None:
        return
    name = tf_variables.plain_name(variable)
    if collected.variables.setdefault(operation.name, name) != name:
        collected.variables[operation.name] = None


def _add_layers(collected: Collected, graphs: list[Any]) -> None:
    """Of every variable of the graphs; an optimizer's belongs to the layer that it is the state of."""
    shapes = tf_variables.shapes_of(variable for graph in graphs for variable in tf_variables.living(graph))
    states = tf_variables.states(shapes)
    optimizers = {name.partition("/")[0] for name in states}
    for name in shapes:
        if name in states:
            collected.layers[name] = tf_variables.layer_of(states[name])
        elif name.partition("/")[0] not in optimizers:
            collected.layers[name] = tf_variables.layer_of(name)
    collected.initial = tf_variables.layers_of_initial_values(shapes, states)


def _add_compiled_functions(collected: Collected, end: float) -> None:
    """Functions that XLA compiles: where Python calls one, its own name is the operation's."""
    module = sys.modules.get("tensorflow.python.eager.context")
    if module is None:
        return
    context = module.context()
    for name in context.list_function_names():
        name = name.decode() if isinstance(name, bytes) else name
        if not name.startswith("__inference_") or time.monotonic() > end:
            continue
        if context.get_function_def(name).attr["_XlaMustCompile"].b:
            collected.xla[name] = name


def _identity() -> tuple[str, int, int]:
    """Host, PID and start in clock ticks: what names a process in a recording."""
    name = os.fsencode(os.uname().nodename or "unknown")
    host = "".join(chr(c) if 0x20 < c < 0x7F and c != 0x2F else "_" for c in name)  # base/host_name.h
    return host, os.getpid(), start_ticks()


def write(folder: str) -> str | None:
    """Writes operations.PID.START.json into `folder`; its path, None if there is nothing to write."""
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
