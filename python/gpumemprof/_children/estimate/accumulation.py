"""How the backward pass sums gradients that meet: into the first of them, if nobody else has it. While operations are
noted PyTorch makes a new tensor (isTensorSubclassLike), which a run without that would not."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten


class _Probe(TorchDispatchMode):  # type: ignore[misc]
    """Counts the references of a gradient that nobody else has, at the moment of a sum: they depend on the release."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: tuple[int, int] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _aten.add.Tensor and torch._C._current_autograd_node() is not None:
            self.counts = _references(args[0])
        return func(*args, **(kwargs or {}))


def _references(tensor: Any) -> tuple[int, int]:
    count: Any = torch._C._storage_Use_Count
    return int(tensor._use_count()), int(count(tensor.untyped_storage()._cdata))


def counts_of_the_last() -> tuple[int, int] | None:
    """None: this release does not tell."""
    if not hasattr(torch.Tensor, "_use_count") or not hasattr(torch._C, "_storage_Use_Count"):
        return None
    leaf = torch.ones(2, requires_grad=True)
    probe = _Probe()
    with torch.enable_grad(), probe:
        twice = leaf * 2
        torch.autograd.backward([twice.exp(), twice.sin()], [torch.ones(2), torch.ones(2)])
    return probe.counts


def kernel(func: Any, args: Any, counts: tuple[int, int] | None) -> Any:
    """What runs in place of `func`: torch/csrc/autograd/input_buffer.cpp, can_accumulate_inplace."""
    if func is not _aten.add.Tensor or counts is None or torch.is_grad_enabled():
        return func
    if torch._C._current_autograd_node() is None:
        return func
    held, added = args[:2]
    if not isinstance(held, torch.Tensor) or not isinstance(added, torch.Tensor):
        return func
    if held.shape != added.shape or held.dtype != added.dtype or not _is_dense(held):
        return func
    return _aten.add_.Tensor if _references(held) == counts else func


def _is_dense(tensor: torch.Tensor) -> bool:
    """Every element once, without gaps."""
    if tensor.layout != torch.strided:
        return False
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
