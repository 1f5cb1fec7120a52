"""What a sum over rows asks for while it runs on a GPU: thread blocks that share an output leave partial sums in
memory. A bias's gradient needs as much so as its layer's output has, or more, by the rules of cuda/Reduce.cuh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import torch

from .cuda_answers import MULTIPROCESSORS, THREADS_OF_ONE

_aten = torch.ops.aten
KERNELS = frozenset((_aten.sum.default, _aten.sum.dim_IntList, _aten.mean.default, _aten.mean.dim))
_WARP = 32
_MOST_THREADS = 512
_LEAST_VALUES, _MOST_VALUES = 16, 256  # of a thread
_SEMAPHORE_BYTES = 4
_LOADED_AT_ONCE = 4
_BYTES_OF_A_SUM = {torch.float32: 4, torch.float16: 4, torch.bfloat16: 4, torch.float64: 8}
_MOST_INDEXED = (1 << 31) - 1  # what 32 bits address: more is done in parts


@dataclass
class _Dimension:
    size: int
    stride: int  # bytes, of the input
    out_stride: int  # 0: it is summed over


def temporaries(source: torch.Tensor, dims: Sequence[int] | None, result: torch.Tensor) -> list[list[int]]:
    """Bytes of each launch, in the order in which they are asked for."""
    if source.numel() == 0 or source.dtype not in _BYTES_OF_A_SUM:
        return []
    dimensions = _ordered(_dimensions(source, dims, result))
    parts = _parts(dimensions, source.element_size())
    asked = [_of_launch(part, source.element_size(), _BYTES_OF_A_SUM[source.dtype]) for part in parts]
    return [sizes for sizes in asked if sizes]


def _dimensions(source: torch.Tensor, dims: Sequence[int] | None, result: torch.Tensor) -> list[_Dimension]:
    summed = {dim % source.dim() for dim in dims} if dims and source.dim() else set(range(source.dim()))
    kept = [dim for dim in range(source.dim()) if dim not in summed]
    strides = result.stride()
    outs = {dim: strides[dim if result.dim() == source.dim() else place] for place, dim in enumerate(kept)}
    element = source.element_size()
    return [
        _Dimension(size, stride * element, outs.get(dim, 0))
        for dim, (size, stride) in enumerate(zip(source.shape, source.stride()))
    ]


def _ordered(made: list[_Dimension]) -> list[_Dimension]:
    """As TensorIterator has them: summed ones first, neighbours that lie together as one."""
    made = sorted((one for one in made if one.size != 1), key=lambda one: (one.out_stride, one.stride))
    joined: list[_Dimension] = []
    for one in made:
        last = joined[-1] if joined else None
        if last and last.size * last.stride == one.stride and last.size * last.out_stride == one.out_stride:
            last.size *= one.size
        else:
            joined.append(one)
    return joined


def _parts(dimensions: list[_Dimension], element: int) -> list[list[_Dimension]]:
    """More than 32 bits address is done in halves."""
    furthest = sum((one.size - 1) * one.stride for one in dimensions) + element
    if max(furthest, prod(one.size for one in dimensions)) <= _MOST_INDEXED:
        return [dimensions]
    split = max(range(len(dimensions)), key=lambda at: (dimensions[at].size - 1) * dimensions[at].stride)
    half = dimensions[split].size // 2
    if half == 0:
        return []
    parts = []
    for size in (half, dimensions[split].size - half):
        one = [replace(other, size=size) if at == split else replace(other) for at, other in enumerate(dimensions)]
        parts += _parts(one, element)
    return parts


def _of_launch(dimensions: list[_Dimension], element: int, sum_bytes: int) -> list[int]:
    summed = [one for one in dimensions if one.out_stride == 0]
    kept = [one for one in dimensions if one.out_stride != 0]
    outputs, inputs = prod(one.size for one in kept), prod(one.size for one in summed)
    runs_along = not kept or (bool(summed) and summed[0].stride < kept[0].stride)
    at_once, across, down = 1, inputs if runs_along else outputs, outputs if runs_along else inputs
    fastest = (summed or kept or [_Dimension(1, element, 0)])[0] if runs_along else kept[0]
    if fastest.stride == element and runs_along and across >= 128 and len(summed) == 1:
        across //= _LOADED_AT_ONCE
    elif fastest.stride == element and not runs_along:
        at_once = _outputs_at_once(kept[0].size, [one.stride // element for one in dimensions if one is not kept[0]])
        across //= at_once
    width, height = _block(across, down, _MOST_THREADS // at_once)
    values = _shares(inputs, width) if runs_along else inputs
    if values < min(height * 16, _MOST_VALUES):
        return []  # rows are not shared by the warps of a block, nor by blocks
    values = _shares(values, height)
    blocks = _shares(outputs // at_once, 1 if runs_along else width)
    wanted = MULTIPROCESSORS * (THREADS_OF_ONE // (width * height))
    if values < _MOST_VALUES or blocks > wanted:
        return []
    sharing = max(min(_shares(wanted, blocks), _shares(values, _LEAST_VALUES)), _shares(values, _MOST_VALUES))
    if sharing <= 1:
        return []
    return [sum_bytes * outputs * sharing * (1 if runs_along else width * at_once), _SEMAPHORE_BYTES * blocks]


def _block(across: int, down: int, most: int) -> tuple[int, int]:
    """Threads of a block, side by side and one above the other: powers of two."""
    across, down = (1 << (max(1, min(number, most)).bit_length() - 1) for number in (across, down))
    width = min(across, _WARP)
    height = min(down, most // width)
    return min(across, most // height), height


def _outputs_at_once(size: int, strides: list[int]) -> int:
    at_once = 4
    for number in (size, *strides):
        while number % at_once:
            at_once //= 2
    return at_once


def _shares(number: int, of: int) -> int:
    return -(-number // of)
