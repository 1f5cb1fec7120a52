"""Workspaces that cuDNN chooses without trials (cudnn.benchmark off), as a recorded H200 had them: cuDNN 9 of PyTorch
2.11, five image models, single precision but for two first layers. With trials the command has a table of its own.

Its kernels want channels last: what lies otherwise is copied, input, output and weights, where it does not run as a
plain product of matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

_FEW_CHANNELS = 4
_LARGE_KERNEL = 49  # elements: of few channels, 7×7 and 16×16 were copied, 3×3 and 4×4 were not
_PARTIAL_BYTES = 8 << 20  # sums that blocks share for a weight's gradient, at most
_MOST_PARTIAL = 16
_TABLE_BYTES = 400  # a kernel's own: 16 to 679 were measured
_ALIGNMENT = 16  # bytes of a plane, for a plain product
_HALF_CHANNELS = 8  # kernels of half precision have channels in multiples of it


def gradients(results: Any, data: torch.Tensor, weight: torch.Tensor) -> tuple[Any, ...]:
    """As cuDNN lays them out: channels last where the input or the weights are. Without memory they are planes."""
    if not data.is_meta or not (_is_last(data) or _is_last(weight)):
        return tuple(results)
    last = torch.channels_last
    return (*(one if one is None else torch.empty_like(one, memory_format=last) for one in results[:2]), *results[2:])


def _is_last(tensor: torch.Tensor) -> bool:
    last = torch.channels_last
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=last)


def workspace(part: str, data: torch.Tensor, outcome: torch.Tensor, weight: torch.Tensor, geometry: Any) -> int:
    """Bytes; `part`: forward, the input's gradient, the weight's (f, i, w). 0: none was measured, or none is needed."""
    stride, _, _, transposed, _, groups = geometry
    if groups > 1 or data.numel() == 0:
        return 0
    kernel, channels = prod(weight.shape[2:]), int(data.shape[1])
    if _is_last(data):
        return _TABLE_BYTES + (_shared(weight) if part != "i" else 0)
    if channels <= _FEW_CHANNELS and kernel < _LARGE_KERNEL and (part == "f" or data.element_size() == 4):
        return 0
    copies = _padded(data, 1) + _padded(outcome, 1)
    if kernel > 1:
        copies += _padded(weight, 0 if transposed else 1)
        return _TABLE_BYTES + copies + (min(_PARTIAL_BYTES, _MOST_PARTIAL * bytes_of(weight)) if part == "w" else 0)
    is_product = prod(stride) == 1 and prod(data.shape[2:]) * data.element_size() % _ALIGNMENT == 0
    if part != "w":
        return _TABLE_BYTES + (0 if is_product else copies)
    of_samples = bytes_of(weight) * int(data.shape[0])  # a product a sample, then their sum
    if is_product and of_samples <= bytes_of(data) + bytes_of(outcome):
        return _TABLE_BYTES + of_samples
    return _TABLE_BYTES + copies + _shared(weight)


def _shared(weight: torch.Tensor) -> int:
    size = bytes_of(weight)
    return min(_PARTIAL_BYTES // size, _MOST_PARTIAL) * size if 2 * size <= _PARTIAL_BYTES else 0


def _padded(tensor: torch.Tensor, dim: int) -> int:
    channels = int(tensor.shape[dim])
    return bytes_of(tensor) // channels * (channels + (-channels % _HALF_CHANNELS if tensor.element_size() == 2 else 0))


def bytes_of(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())
