"""Who keeps tensors alive in this process."""

from __future__ import annotations

import gc
import glob
import os
import re
from typing import Any


def why_alive(what: Any = None) -> list[dict[str, Any]]:
    """The holders of this process's tensors, the holder of most tensors first.

    `what`: a tensor, for the holders of its memory; a line of the program as "train.py:41", for what that line
    allocated and is still live, which needs a recorded process; None for all tensors.

    Each holder is a dict: `path` ("losses in train (train.py)"), `name`, `owner`, `through`, `tensors`, `with_graph`,
    `scalars`, `in_pairs`, `operations` as in docs/schemas/holders.schema.json, and `storages`, the number of blocks
    that it and its tensors' graphs keep. The caller's own variables are among the holders. No code of the program is
    called.

    Raises RuntimeError if a line is given and nothing is recorded, and during a backward pass or a finalizer, when tensors
    may be half freed; ValueError for a text that is no line; TypeError for anything else.
    """
    wanted = _addresses(what)
    from .look import look
    from .moment import is_unsafe

    if is_unsafe():
        raise RuntimeError("tensors are being freed: why_alive() cannot look during a backward pass or a finalizer")
    collects = gc.isenabled()
    gc.disable()
    try:
        seen = look(10.0)
    finally:
        if collects:
            gc.enable()
    counts: dict[int, int] = {}
    for address, holder in seen["storages"]:
        if wanted is None or address in wanted:
            counts[holder] = counts.get(holder, 0) + 1
    found = [{**seen["holders"][holder], "storages": count} for holder, count in counts.items()]
    if wanted is not None and not isinstance(what, str):
        for one in found:
            if one["owner"] == "nothing":  # the argument itself is no variable of the program
                one["path"] = "nothing in Python but this call, or a graph or cycle that holds itself"
    return sorted(found, key=lambda one: (-one["storages"], one["path"]))


def _addresses(what: Any) -> set[int] | None:
    if what is None:
        return None
    if isinstance(what, str):
        return _made_at(what)
    import torch

    if isinstance(what, torch.Tensor):
        from .tensor import address_of, parts_of, without_the_program

        with without_the_program():
            return {address_of(part) for part in parts_of(what)}
    raise TypeError(f"a tensor, a line such as 'train.py:41', or None is expected, not {type(what).__name__}")


def _made_at(line: str) -> set[int]:
    """Addresses of what is live by the recording of this process and was allocated at a line."""
    if re.fullmatch(r".+:[0-9]+", line) is None:
        raise ValueError(f"a line of the program is expected, such as 'train.py:41', not {line!r:.80}")
    from ..._core.recording_folder import recording_folder
    from ..._analysis.trace import load

    folder = recording_folder()
    if folder is None:
        raise RuntimeError("nothing is recorded: start the program with gpumemprof run, or call gpumemprof.attach()")
    own = glob.glob(os.path.join(glob.escape(folder), f"*.{os.getpid()}.*.gmp"))
    if not own:  # nothing was allocated yet
        return set()
    trace = load(own[0])
    events = trace.events
    live: dict[int, int] = {}
    for action, address, stack in zip(events.action, events.address, events.stack):
        name = events.actions[action]
        if name == "alloc":
            live[int(address)] = int(stack)
        elif name.startswith("free"):
            live.pop(int(address), None)
    known: dict[int, bool] = {}
    for stack in set(live.values()):
        known[stack] = any(_is_at(frame, line) for frame in trace.stack(stack))
    return {address for address, stack in live.items() if known[stack]}


def _is_at(frame: str, line: str) -> bool:
    place = frame.rpartition(" ")[0]
    return place == line or place.endswith("/" + line)
