"""What the graph of a tensor keeps alive. Hooks of the program that pack and unpack saved tensors are never called: what
they packed is left out. Imports PyTorch."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .unseen import mro_of, space_of_class

_LEAST_NODES, _NODES_A_CLOCK = 16, 1024
# Parts of the nodes in the order in which they were made. The last ones may join what lies side by side, and the first may be
# what all of it was made from.
_EARLY, _LATE = (0.2, 0.4), (0.55, 0.8)

_saved_names: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    names = _saved_names.get(kind)
    if names is None:
        known = {name: None for one in mro_of(kind) for name in space_of_class(one)}  # in order
        names = _saved_names[kind] = tuple(name for name in known if name.startswith("_raw_saved_"))
    return names


def _saved(node: Any) -> Iterator[Any]:
    for name in _names(type(node)):
        try:
            kept = getattr(node, name)
        except Exception:  # freed by a backward pass
            continue
        for one in kept if type(kept) in (list, tuple) else (kept,):
            try:
                if one.unpack_hook is None and one.data is not None:
                    yield one.data
            except Exception:  # a PyTorch that does not tell, an empty one
                continue


def number_of(node: Any) -> int | None:
    """Nodes made later have larger ones; None for a PyTorch that does not number them."""
    try:
        return int(node._sequence_nr())
    except Exception:
        return None


def kept_by_graph(node: Any, seen: dict[int, Any]) -> tuple[list[Any], list[Any], Counter[str]]:
    """Tensors that operations of the graph behind `node` saved, its leaves, and its operations by name. `seen`: nodes of
    graphs that were walked before, which are left out; it keeps them alive, so that no id comes twice."""
    tensors: list[Any] = []
    leaves: list[Any] = []
    operations: Counter[str] = Counter()
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if at is None or id(at) in seen:
            continue
        seen[id(at)] = at
        kind = type(at).__name__
        if kind == "AccumulateGrad":
            leaves.append(at.variable)
            continue
        operations[kind] += 1
        tensors += _saved(at)
        waiting += [following for following, _ in at.next_functions]
    return tensors, leaves, operations


def lies_side_by_side(starts: list[Any], deadline: float) -> bool:
    """Whether what was made late in these graphs does not lead to most of what was made early, as the parts of a batch do not.
    False where there is no time to tell, and for a PyTorch that does not number its nodes."""
    following: dict[int, list[int]] = {}
    kept: list[Any] = []  # so that no id comes twice
    numbers: list[tuple[int, int]] = []
    waiting = list(starts)
    while waiting:
        at = waiting.pop()
        if at is None or id(at) in following or type(at).__name__ == "AccumulateGrad":
            continue
        kept.append(at)
        number = number_of(at)
        if number is None:
            return False
        numbers.append((number, id(at)))
        nodes = [one for one, _ in at.next_functions]
        following[id(at)] = [id(one) for one in nodes]
        waiting += nodes
        kept += nodes
        if len(numbers) % _NODES_A_CLOCK == 0 and time.thread_time() > deadline:
            return False
    if len(numbers) < _LEAST_NODES:
        return False
    ordered = [node for _, node in sorted(numbers)]
    count = len(ordered)
    early, late = (ordered[int(begin * count) : int(end * count)] for begin, end in (_EARLY, _LATE))
    reached: set[int] = set()
    while late:
        node = late.pop()
        if node not in reached and node in following:
            reached.add(node)
            late += following[node]
    return 2 * len(reached.intersection(early)) < len(early)
