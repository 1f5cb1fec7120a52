"""Notes which storages an autograd program makes and drops, in order, while it runs on tensors of one device."""

from __future__ import annotations

import json
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..._core.whole_file import whole_file
from . import accumulation, convolutions, reductions

_aten = torch.ops.aten
_CONVOLUTIONS = {_aten.convolution.default: "f", _aten.convolution_backward.default: "b"}
_PRODUCTS = frozenset(("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"))

_ATTENTION_BACKWARD = _aten._scaled_dot_product_flash_attention_backward.default

# The command scales these to any batch, size by size; partial sums do not grow so, and are left out.
SCALED_BATCHES = (2, 4)

# One letter each in the file; "-" leaves it to the reader, who sees the phases of a storage's life.
CATEGORIES = frozenset("pbgoi-")


def storages_of(tensor: torch.Tensor) -> list[Any]:
    """One, but those of the indices and the values of a sparse tensor."""
    if tensor.layout == torch.strided:
        return [tensor.untyped_storage()]
    if tensor.layout != torch.sparse_coo:
        raise NotImplementedError(f"tensors of layout {tensor.layout} are not supported")
    if tensor.is_meta:
        raise NotImplementedError("how many rows a sparse gradient has is known only from values")
    return [tensor._indices().untyped_storage(), tensor._values().untyped_storage()]


class EventLog(TorchDispatchMode):  # type: ignore[misc]
    """The events of one trace. Live storages are known by weak references: a free is noted when it happens."""

    def __init__(self, counts: Callable[[torch.Tensor], bool]) -> None:
        super().__init__()
        self.counts = counts  # is this tensor on the device that is estimated?
        self.events: list[list[Any]] = []
        self.stream = 0
        self.live_bytes = self.peak_bytes = 0
        self._live: dict[int, list[Any]] = {}  # by storage: its "a" event
        self._references: dict[int, Any] = {}
        self._next = 0
        self._strings: dict[str, int] = {"": 0}
        self._shapes: dict[Any, int] = {}
        self._modules: list[int] = [0]  # names of the modules that are being called, innermost last
        self._turns: tuple[list[int], list[int]] = ([0], [0])  # autograd's number, module from there on
        self.benchmark: bool | None = None  # cudnn.benchmark at the first convolution
        self.has_partial_sums = True
        self._counts_of_the_last = accumulation.counts_of_the_last()

    # What the loop tells.

    def phase(self, name: str) -> None:
        self.events.append(["p", name])

    def empty_cache(self) -> None:
        self.events.append(["x"])

    def enter_module(self, name: str) -> None:
        self._modules.append(self._string(name))
        self._turn()

    def leave_module(self) -> None:
        if len(self._modules) > 1:
            self._modules.pop()
            self._turn()

    def _turn(self) -> None:
        numbers, modules = self._turns
        numbers.append(torch._C._autograd._get_sequence_nr())
        modules.append(self._modules[-1])

    def categorize(self, tensor: torch.Tensor, category: str, name: str = "") -> None:
        """Says what a live storage is; the last word counts."""
        for storage in storages_of(tensor):
            event = self._live.get(storage._cdata)
            if event is not None:
                event[4] = category
                if name:
                    event[5] = self._string(name)

    # What happens.

    def add(self, tensor: torch.Tensor) -> None:
        for storage in storages_of(tensor):
            self._add(storage)

    def _add(self, storage: Any) -> None:
        key = storage._cdata
        if key in self._live:
            return
        size = storage.nbytes()
        event = ["a", self._next, size, self.stream, "-", self._module()]
        self._live[key] = event
        self._references[key] = weakref.ref(storage, partial(self._storage_dropped, key))
        if size == 0:
            event[1] = -1
            return
        self._next += 1
        self.events.append(event)
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def _sum(self, source: torch.Tensor, dims: Any, result: torch.Tensor) -> None:
        if not self.has_partial_sums:
            return
        for sizes in reductions.temporaries(source, dims, result):
            self._temporaries(sizes)

    def _temporaries(self, sizes: list[int]) -> None:
        """What a kernel asks for while it runs."""
        first = self._next
        for size in sizes:
            self.events.append(["a", self._next, size, self.stream, "-", self._module()])
            self._next += 1
        self.peak_bytes = max(self.peak_bytes, self.live_bytes + sum(sizes))
        self.events.extend(["f", index] for index in reversed(range(first, self._next)))

    def _storage_dropped(self, key: int, _: Any) -> None:
        event = self._live.pop(key)
        self._references.pop(key, None)
        if event[1] >= 0:
            self.events.append(["f", event[1]])
            self.live_bytes -= event[2]

    def _module(self) -> int:
        """In the backward pass: the module whose forward made the node that runs."""
        node = torch._C._current_autograd_node()
        if node is None:
            return self._modules[-1]
        numbers, modules = self._turns
        return modules[bisect_right(numbers, node._sequence_nr()) - 1]

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = accumulation.kernel(func, args, self._counts_of_the_last)
        result = self.call(func, args, kwargs or {})
        direction = _CONVOLUTIONS.get(func)
        if direction == "b":
            result = convolutions.gradients(result, args[1], args[2])
        if direction is not None:
            self._convolution(direction, args, result)
        else:
            for leaf in (result,) if isinstance(result, torch.Tensor) else tree_leaves(result):
                if isinstance(leaf, torch.Tensor) and self.counts(leaf):
                    self.add(leaf)
            if func in reductions.KERNELS and self.counts(result):
                self._sum(args[0], args[1] if len(args) > 1 else None, result)
            if func is _ATTENTION_BACKWARD and self.counts(args[1]):
                batch, heads, rows, size = args[1].shape
                self._temporaries([batch * heads * rows * (size + 1) * 4 + 256])  # in single precision
            if func._schema.name in _PRODUCTS:
                self.events.append(["m"])
        return result

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        return func(*args, **kwargs)

    def _convolution(self, direction: str, args: Any, result: Any) -> None:
        """cuDNN is asked once a result: gradients of input and weight are two calls, in this order."""
        if direction == "f":
            results, kinds, (data, weight), geometry = [result], "f", args[:2], args[3:9]
            outcome = result
        else:
            results, kinds, (outcome, data, weight), geometry = list(result), "iw", args[:3], args[4:10]
        if not self.counts(data):
            return
        if self.benchmark is None:
            self.benchmark = bool(torch.backends.cudnn.benchmark)
        stride, _, _, transposed, _, groups = geometry
        key = (tuple(data.shape), tuple(weight.shape), tuple(map(str, geometry)), data.dtype)
        shape = self._shapes.setdefault(key, len(self._shapes))
        facts = [
            shape,
            convolutions.bytes_of(data),
            convolutions.bytes_of(outcome),
            convolutions.bytes_of(weight),
            prod(weight.shape[2:]),
            prod(stride),
            int(groups),
            int(data.shape[1]),
            int(outcome.shape[1]),
            int(bool(transposed)),
        ]
        for kind, made in zip(kinds, results):
            if made is not None:
                self.add(made)
                if self.benchmark:
                    self.events.append(["c", kind, *facts])
                elif size := convolutions.workspace(kind, data, outcome, weight, geometry):
                    self._temporaries([size])
        for made in results[len(kinds) :]:
            if made is not None:
                self.add(made)
                self._sum(outcome, [0, *range(2, outcome.dim())], made)  # a bias's gradient

    # The file.

    def lines(self, facts: dict[str, Any]) -> Iterator[str]:
        yield "gpumemprof-estimate 1"
        yield json.dumps({**facts, "cudnn_benchmark": self.benchmark}, separators=(",", ":"))
        for text in list(self._strings)[1:]:
            yield "s " + text.replace("\n", " ").replace("\r", " ")
        for event in self.events:
            yield " ".join(map(str, event))
        yield f"e {len(self.events)}"

    def write(self, path: str, facts: dict[str, Any]) -> None:
        """Whole or not at all: the reader may be waiting for the file."""
        with whole_file(path) as made, open(made, "w", encoding="utf-8", errors="replace") as file:
            for line in self.lines(facts):
                file.write(line + "\n")
