"""The sizes of free blocks, from `torch.cuda.memory_snapshot()`, for fragmentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._core.torch import loaded_torch


@dataclass(frozen=True)
class FreeBlocks:
    free_bytes: int
    largest_bytes: int


def free_blocks_of(segments: Iterable[Mapping[str, Any]]) -> FreeBlocks:
    """Free blocks of segments that also hold a block in use, as `torch.cuda.memory_snapshot()` lists them.

    A segment that is free as a whole is cache: the allocator gives it back to the device when memory is short. What
    lies between blocks in use cannot be given back, and serves only requests that fit."""
    sizes: list[int] = []
    for segment in segments:
        blocks = segment.get("blocks", ())
        if any(block["state"] != "inactive" for block in blocks):
            sizes += [int(block["size"]) for block in blocks if block["state"] == "inactive"]
    return FreeBlocks(sum(sizes), max(sizes, default=0))


def free_blocks_now(device_id: int | None) -> FreeBlocks | None:
    """Those of a CUDA device that this process uses; None on the CPU (-1), or where CUDA was not started."""
    torch = loaded_torch()
    if torch is None or device_id is None or device_id < 0 or not torch.cuda.is_initialized():
        return None
    return free_blocks_of(s for s in torch.cuda.memory_snapshot() if s.get("device") == device_id)
