"""Data parallelism on one traced rank: nothing answers, but the buffers are there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

_FIRST_BUCKET_BYTES = 1 << 20


class Buckets(torch.nn.Module):  # type: ignore[misc]
    """In the place of DistributedDataParallel: the model, and the buckets that its gradients are copied into."""

    def __init__(
        self,
        module: torch.nn.Module,
        *_: Any,
        bucket_cap_mb: float | None = None,
        gradient_as_bucket_view: bool = False,
        **__: Any,
    ) -> None:
        super().__init__()
        self.module = module
        self._buckets = [] if gradient_as_bucket_view else _buckets(module, bucket_cap_mb or 25)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        yield

    def register_comm_hook(self, *_: Any) -> None:
        return None

    def join(self, *_: Any, **__: Any) -> Any:
        return self.no_sync()


def _buckets(module: torch.nn.Module, cap_mib: float) -> list[torch.Tensor]:
    """Filled from the last parameter on; the first is small, so that the first exchange begins early."""
    made: list[torch.Tensor] = []
    size, kind, limit = 0, None, float(_FIRST_BUCKET_BYTES)

    def close() -> None:
        if kind is not None and size:
            made.append(torch.empty(size // kind[0].itemsize, dtype=kind[0], device=kind[1]))

    for parameter in reversed([one for one in module.parameters() if one.requires_grad]):
        own = (parameter.dtype, parameter.device)
        if kind != own or size >= limit:
            close()
            limit = cap_mib * (1 << 20) if made else limit
            size, kind = 0, own
        size += parameter.numel() * parameter.element_size()
    close()
    return made


def install(told: Callable[[], None]) -> None:
    """`told` is called where the script sets up a group of processes."""
    # One GPU: there is nothing to scatter.
    torch.nn.DataParallel.forward = lambda parallel, *args, **kwargs: parallel.module(*args, **kwargs)
    torch.nn.parallel.DistributedDataParallel = torch.nn.parallel.distributed.DistributedDataParallel = Buckets
    if not torch.distributed.is_available():
        return
    begin = torch.distributed.init_process_group

    def init_process_group(*_: Any, **kwargs: Any) -> None:
        """Ranks that answer nothing: what goes over the network is not waited for."""
        from torch.testing._internal.distributed.fake_pg import FakeStore

        rank = int(kwargs.get("rank", os.environ.get("RANK", 0)))
        size = int(kwargs.get("world_size", os.environ.get("WORLD_SIZE", 1)))
        begin(backend="fake", store=FakeStore(), rank=max(0, rank), world_size=max(1, size))
        told()

    torch.distributed.init_process_group = init_process_group
