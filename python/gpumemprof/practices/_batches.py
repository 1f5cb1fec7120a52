"""Batches as programs have them: a tensor, or tuples, lists and dictionaries of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def size_of(batch: Any) -> int:
    """The number of samples: the first dimension of the first tensor, or the length of a list of samples."""
    found = _first_tensor(batch)
    if found is not None:
        return int(found.shape[0])
    return len(batch)


def piece_of(batch: Any, begin: int, end: int) -> Any:
    """Samples `begin` to `end` of every tensor in the batch; views, no copies."""
    if _first_tensor(batch) is None and isinstance(batch, (list, tuple)):
        return batch[begin:end]  # a list of samples
    return _mapped(batch, lambda tensor: tensor[begin:end] if tensor.dim() else tensor)


def moved(batch: Any, device: Any) -> Any:
    return _mapped(batch, lambda tensor: tensor.to(device, non_blocking=True))


def _mapped(batch: Any, change: Callable[[Any], Any]) -> Any:
    if hasattr(batch, "dim") and hasattr(batch, "shape"):
        return change(batch)
    if isinstance(batch, dict):
        return {key: _mapped(value, change) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_mapped(value, change) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(_mapped(value, change) for value in batch)
    return batch


def _first_tensor(batch: Any) -> Any:
    if hasattr(batch, "dim") and hasattr(batch, "shape") and batch.dim():
        return batch
    values = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    return next((found for value in values if (found := _first_tensor(value)) is not None), None)
