"""Training on several devices, each with a part of the memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from .._core.torch import require_torch
from ._batches import moved

torch: Any = require_torch("distributed training")
import_module("torch.distributed")  # not loaded by torch itself in every release


def setup_distributed(rank: int, world_size: int, backend: str | None = None) -> Any:
    """Joins the process group and returns this rank's device. Uses NCCL if there are GPUs, otherwise gloo.

    An address and port set by a launcher are kept.
    """
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "12355")
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(rank % torch.cuda.device_count())
    torch.distributed.init_process_group(backend or ("nccl" if on_gpu else "gloo"), rank=rank, world_size=world_size)
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")


def cleanup_distributed() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def train_distributed(
    rank: int,
    world_size: int,
    make_model: Callable[[], Any],
    batches: Callable[[int], Iterable[Any]],
    criterion: Callable[[Any, Any], Any],
    optimizer_class: Any = None,
    split_optimizer: bool = True,
    **options: Any,
) -> list[float]:
    """Trains on this rank's `batches(rank)` of (inputs, targets); returns the losses. For torch.multiprocessing.spawn.

    DistributedDataParallel splits only the batch: each rank has the whole model, its gradients, the optimizer state,
    and buckets beside them. `split_optimizer` gives each rank a part of the optimizer state (ZeroRedundancyOptimizer),
    and gradients are views of the buckets. To split the model as well, use torch.distributed.fsdp.
    """
    device = setup_distributed(rank, world_size)
    try:
        ids = [device.index] if device.type == "cuda" else None
        model = torch.nn.parallel.DistributedDataParallel(
            make_model().to(device), device_ids=ids, gradient_as_bucket_view=True
        )
        kind = optimizer_class or torch.optim.Adam
        if split_optimizer:
            from torch.distributed.optim import ZeroRedundancyOptimizer

            optimizer = ZeroRedundancyOptimizer(model.parameters(), kind, **options)
        else:
            optimizer = kind(model.parameters(), **options)
        losses = []
        for batch in batches(rank):
            inputs, targets = moved(batch, device)
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(float(loss.detach()))
        return losses
    finally:
        cleanup_distributed()
