"""Observes every tensor that PyTorch creates on this thread. Imports PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Created = Callable[[Any, Any, Callable[[], None]], None]


class LiveTensors(TorchDispatchMode):  # type: ignore[misc]
    """Calls `created(tensor, storage, when_gone)` for each new storage; `when_gone` is to be called at its end."""

    def __init__(self, created: Created) -> None:
        super().__init__()
        self._created = created
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        try:
            self._look(result, args, kwargs)
        except Exception:  # a subclass without a storage, a fake tensor: none of the program's business
            pass
        return result

    def _look(self, result: Any, args: Any, kwargs: Any) -> None:
        given: set[int] | None = None
        for tensor in tree_leaves(result):
            if not hasattr(tensor, "untyped_storage") or tensor.device.type == "meta":
                continue
            storage = tensor.untyped_storage()
            address = storage._cdata
            if address in self._known or storage.nbytes() == 0:
                continue
            if given is None:
                given = {
                    leaf.untyped_storage()._cdata
                    for leaf in tree_leaves((args, kwargs or {}))
                    if hasattr(leaf, "untyped_storage")
                }
            if address in given:  # older than us: a view of it is no new memory
                continue
            self._known.add(address)
            self._created(tensor, storage, partial(self._known.discard, address))
