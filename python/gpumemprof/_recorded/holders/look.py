"""One look at who holds the tensors of this process. Nothing of the program is changed, called, printed or kept alive.
Imports PyTorch."""

from __future__ import annotations

import gc
import time
from collections import Counter
from typing import Any

import torch

from ... import _marks
from .graph import kept_by_graph, lies_side_by_side, number_of
from .name import Name, filled_by_hooks, name_of
from .tensor import MOST_BYTES, address_of, base_of, bytes_of, grad_fn_of, gradient_of, is_scalar, parts_of, without_the_program
from .walk import Walk, Way

_MOST_OPERATIONS = 16
# What may be the state of a layer or two, with the graph of many steps.
_FEW_TENSORS, _MANY_STORAGES = 3, 16
# The libraries' own names take as long as all the rest, and hold next to nothing. Where they need not be looked at, they
# are if this part of the tensors is reached by no name of the program.
_UNREACHED_PART = 4
_MORE = "; gpumemprof run --explain-leaks looks longer, and everywhere"
_NOTHING = Name("no name in Python: a cycle, a graph that holds itself, or native code", "", "nothing", ())


class _Holder:
    def __init__(self, name: Name) -> None:
        self.name = name
        self.limited, self.object_id, self.container = name.limited, name.object_id, name.container
        self.function = name.function
        self.tensors = self.with_graph = self.scalars = self.in_pairs = self.leaves = 0
        self.starts: list[Any] = []  # of the first tensors' graphs
        self.side_by_side = False
        self.operations: Counter[str] = Counter()

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.name.path,
            "name": self.name.name,
            "owner": self.name.owner,
            "through": list(self.name.through[:_MOST_OPERATIONS]),
            "tensors": self.tensors,
            "with_graph": self.with_graph,
            "scalars": self.scalars,
            "in_pairs": self.in_pairs,
            "leaves": self.leaves,
            "operations": [name for name, _ in self.operations.most_common(_MOST_OPERATIONS)],
            **({"side_by_side": True} if self.side_by_side else {}),
            **({"object_id": self.object_id} if self.object_id else {}),
            **({"container": self.container} if self.container else {}),
            **({"function": self.function._asdict()} if self.function else {}),
            **self._entries(),
        }

    def _entries(self) -> dict[str, int | str]:
        if self.limited is None or not self.limited.most_entries:
            return {}
        limit = {"limit": self.limited.by} if self.limited.by else {}
        return {"entries": len(self.limited.container), "most_entries": self.limited.most_entries, **limit}


def _is_in_pair(way: Way) -> bool:
    """With one other tensor, as keys and values are: more may be the outputs of many calls."""
    holder = way.values[-2] if len(way.values) > 1 else None
    return type(holder) is tuple and len(holder) == 2 and all(issubclass(type(one), torch.Tensor) for one in holder)


class _Look:
    def __init__(self, deadline: float, everywhere: bool, at_end: bool) -> None:
        self.deadline, self.everywhere, self.at_end = deadline, everywhere, at_end
        self.holders: list[_Holder] = []
        self.by_name: dict[tuple[str, str], int] = {}
        self.storages: dict[int, int] = {}
        self.shown_bytes: dict[int, int] = {}  # of each storage, by all tensors
        self.nodes: dict[int, Any] = {}
        self.why_incomplete = ""

    def take(self) -> None:
        self.take_holders()
        counts = Counter(self.storages.values())
        for index, holder in enumerate(self.holders):
            is_state = 0 < holder.with_graph and holder.tensors <= _FEW_TENSORS and counts[index] >= _MANY_STORAGES * holder.tensors
            if is_state and time.thread_time() <= self.deadline:
                holder.side_by_side = lies_side_by_side(holder.starts, self.deadline)

    def take_holders(self) -> None:
        # Tensors first: what this look makes is none of the program's.
        objects = gc.get_objects()
        tensors = _marks.instances(objects, torch.Tensor)
        hooked = filled_by_hooks(_marks.instances(objects, torch.nn.Module), tensors)
        del objects
        walk = Walk(torch.Tensor, self.deadline, self.at_end)
        # An argument of a library's function is a variable of the program's, most often: its own names come first.
        walk.walk_program()
        rest = self.take_reached(tensors, walk, hooked)
        if not self.everywhere and len(rest) * _UNREACHED_PART <= len(tensors):
            skipped = "names in libraries were not searched" if rest else ""
            self.why_incomplete = walk.why_incomplete or self.why_incomplete or skipped
            return
        if rest:
            walk.walk_libraries()
            rest = self.take_reached(rest, walk, hooked)
        self.why_incomplete = walk.why_incomplete or self.why_incomplete
        if not walk.why_incomplete:  # else a name may hold them
            for tensor in rest:
                self.add(tensor, _NOTHING, in_pair=False)
            self.add_graphs([(tensor, self.index_of(_NOTHING)) for tensor in rest])

    def take_reached(self, tensors: list[Any], walk: Walk, hooked: set[int]) -> list[Any]:
        """Those that were not reached, and that no graph keeps of what was."""
        reached, rest = [], []
        for tensor in tensors:
            way = walk.way_to(tensor)
            if way is None:
                rest.append(tensor)
                continue
            name = name_of(way, hooked)
            self.add(tensor, name, _is_in_pair(way))
            reached.append((tensor, self.index_of(name)))
        # Their graphs after all that is held by name: a name is nearer than a graph.
        self.add_graphs(reached)
        # One that only its views keep shows nothing to anybody.
        bases = {id(base_of(tensor)) for tensor, _ in reached} if rest else set()
        unknown = []
        for tensor in rest:
            address = address_of(tensor)
            if address not in self.storages:
                unknown.append(tensor)
            elif id(tensor) not in bases:
                self.show(tensor, address)
        return unknown

    def index_of(self, name: Name) -> int:
        key = (name.path, name.owner)
        if key not in self.by_name:
            self.by_name[key] = len(self.holders)
            self.holders.append(_Holder(name))
        holder = self.holders[self.by_name[key]]
        if holder.limited is not None and (name.limited is None or holder.limited.container is not name.limited.container):
            holder.limited = None  # two objects of one name: no limit holds for both
        if holder.object_id != name.object_id:
            holder.object_id = 0
        if holder.container != name.container:
            holder.container = ""
        if holder.function != name.function:
            holder.function = None
        return self.by_name[key]

    def add(self, tensor: Any, name: Name, in_pair: bool) -> None:
        index = self.index_of(name)
        if not self.add_storage(tensor, index):
            return
        holder = self.holders[index]
        holder.tensors += 1
        holder.in_pairs += in_pair
        grad_fn = grad_fn_of(tensor)
        if grad_fn is not None:
            holder.with_graph += 1
            if holder.with_graph <= _FEW_TENSORS:
                holder.starts.append(grad_fn)
            holder.scalars += is_scalar(tensor)
        gradient = gradient_of(tensor)
        if gradient is not None:
            self.add_storage(gradient, index)

    def add_storage(self, tensor: Any, index: int) -> bool:
        """False for a tensor that has none."""
        has_one = False
        for part in parts_of(tensor):
            address = address_of(part)
            if address != 0:
                has_one = True
                self.storages.setdefault(address, index)
                self.show(part, address)
        return has_one

    def show(self, tensor: Any, address: int) -> None:
        self.shown_bytes[address] = self.shown_bytes.get(address, 0) + bytes_of(tensor)

    def add_leaf(self, leaf: Any, index: int) -> None:
        """With its gradient. A backward pass leaves both, as it frees what was saved."""
        known = len(self.storages)
        for one in (leaf, gradient_of(leaf)):
            if one is not None:
                self.add_storage(one, index)
        self.holders[index].leaves += len(self.storages) - known

    def add_graphs(self, held: list[tuple[Any, int]]) -> None:
        starts = []
        for tensor, index in held:
            gradient = gradient_of(tensor)
            for one in (tensor,) if gradient is None else (tensor, gradient):
                start = grad_fn_of(one)
                if start is not None:
                    starts.append((start, index))
        # What is made last of many results, as the cat of a list is, leads to all of their graphs: each result keeps its own.
        for start, index in sorted(starts, key=lambda one: number_of(one[0]) or 0):
            if time.thread_time() > self.deadline:
                self.why_incomplete = "the walk over the graphs took too long"
                return
            saved, leaves, operations = kept_by_graph(start, self.nodes)
            self.holders[index].operations.update(operations)
            for kept in saved:
                self.add_storage(kept, index)
            for leaf in leaves:
                self.add_leaf(leaf, index)


def _pinned() -> tuple[int | None, int | None]:
    """Bytes of the cache of pinned memory, and of these in use; None without CUDA, and where a release does not count them.
    A forked child does not ask: another thread may have had the cache's locks."""
    stats = getattr(torch._C, "_cuda_hostMemoryStats", None)
    if stats is None or not torch.cuda.is_initialized():
        return None, None
    try:
        told = stats()
        if "reserved_bytes" in told:
            owned, used = told["reserved_bytes"]["current"], told["allocated_bytes"]["current"]
            return owned, used if 0 <= used <= owned else None
        # Later releases have "active_bytes" for what is in use, but 2.11 counts blocks there that were freed.
        return told["allocated_bytes"]["current"], None
    except (KeyError, TypeError, RuntimeError):
        return None, None


def _memory() -> dict[str, int | str | None] | None:
    """Of this process now, before the look has made anything; None where the kernel does not tell."""
    live, kept = _marks.malloc_figures() or (None, None)
    arenas = _marks.python_arenas()
    pinned_cache, pinned_used = _pinned()
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        resident, anonymous, mapped, shared = (int(fields[name].split()[0]) << 10 for name in ("VmRSS", "RssAnon", "RssFile", "RssShmem"))
    except (OSError, ValueError, KeyError, IndexError):
        return None
    is_known = isinstance(arenas, int)
    return {
        "resident_bytes": resident,
        "anonymous_bytes": anonymous,
        "file_bytes": mapped,
        "shared_bytes": shared,
        "malloc_live_bytes": live,
        "malloc_kept_bytes": kept,
        "python_arenas_bytes": arenas if is_known else None,
        "why_no_python_arenas": "" if is_known else arenas,
        "pinned_used_bytes": pinned_used,
        "pinned_cache_bytes": pinned_cache,
    }


def look(most_s: float, everywhere: bool = True, at_end: bool = False) -> dict[str, Any]:
    """A look as docs/schemas/holders.schema.json has it; ends after about `most_s` seconds of work, and says so. To be called
    without the collector running. `everywhere`: at the libraries' names in any case.
    `at_end`: the process ends, and what an exception left is held by the functions that it left."""
    taken = _Look(time.thread_time() + most_s, everywhere, at_end)
    time_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    memory = _memory()
    with without_the_program():
        taken.take()
    return {
        "time_ns": time_ns,
        "why_incomplete": taken.why_incomplete if everywhere or not taken.why_incomplete else taken.why_incomplete + _MORE,
        "memory": memory,
        "holders": [holder.as_json() for holder in taken.holders],
        "storages": [[address, index] for address, index in taken.storages.items()],
        "shown_bytes": [min(taken.shown_bytes[address], MOST_BYTES) for address in taken.storages],
    }
