"""Dropout as a GPU has it: one kernel that keeps a mask of bytes. For tensors without memory PyTorch takes the formula
for other devices, whose mask is as large as the input."""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten
_libraries: list[Any] = []  # what is registered lasts as long as these


def _fused(tensor: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """`at::dropout`: aten/src/ATen/native/Dropout.cpp takes `native_dropout` for 0 < p < 1 while training."""
    if not train or p == 0 or tensor.numel() == 0:
        return tensor
    if p == 1:
        return tensor * torch.zeros_like(tensor)
    out: torch.Tensor = _aten.native_dropout(tensor, p, train)[0]
    return out


def _output_and_mask(tensor: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(tensor), torch.empty_like(tensor, dtype=torch.bool)


def choose_fused(target: str = "meta") -> None:
    """`target`: where the tensors are that stand for a GPU's."""
    if _libraries:
        return
    library: Any = torch.library.Library("aten", "IMPL")
    library.impl("dropout", _fused, "AutogradMeta" if target == "meta" else "AutogradCPU")
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::native_dropout", "Meta"):
        library.impl("native_dropout", _output_and_mask, "Meta")
    _libraries.append(library)
