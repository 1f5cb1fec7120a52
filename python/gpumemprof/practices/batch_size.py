"""A batch size that adapts to the available memory."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from typing import Any

from .._core.torch import loaded_torch, require_torch
from .._oom.recorder import classify_oom_exception
from ._batches import piece_of, size_of

_log = logging.getLogger(__name__)


class DynamicBatchSizer:
    """Halves the batch size when memory runs out, and lets it grow again.

    The smallest size that failed is a ceiling; it is retried after a time that doubles with every failure. If memory
    runs out at `min_batch_size`, `handle_oom` raises. `run` frees the failed attempt's memory before it retries,
    outside the `except` block: inside it, the exception's frames keep that memory alive.
    """

    def __init__(
        self,
        initial_batch_size: int = 32,
        min_batch_size: int = 1,
        max_batch_size: int = 256,
        *,
        increment: int = 8,
        grow_after: int = 10,
    ) -> None:
        """`grow_after`: successful steps between two attempts to grow by `increment`."""
        if not 1 <= min_batch_size <= initial_batch_size <= max_batch_size:
            raise ValueError(
                "1 <= min_batch_size <= initial_batch_size <= max_batch_size has to hold, not "
                f"{min_batch_size}, {initial_batch_size}, {max_batch_size}"
            )
        if increment < 1 or grow_after < 1:
            raise ValueError("increment and grow_after have to be 1 or more")
        self.current_batch_size = initial_batch_size
        self.min_batch_size, self.max_batch_size = min_batch_size, max_batch_size
        self.increment, self.grow_after = increment, grow_after
        self.oom_count = 0
        self._failed_size: int | None = None  # the smallest
        self._patience = grow_after  # successes until that is tried again
        self._successes = 0  # since the size last changed

    def get_batch_size(self) -> int:
        return self.current_batch_size

    def handle_oom(self) -> None:
        """After a step that ran out of memory: frees memory and halves the size. Raises MemoryError at
        `min_batch_size`. Call it outside the `except` block, otherwise the step's memory is still live."""
        self.oom_count += 1
        failed = self.current_batch_size
        free_memory()
        if failed <= self.min_batch_size:
            raise MemoryError(f"a batch of {failed}, the smallest allowed, does not fit")
        self._failed_size = failed if self._failed_size is None else min(failed, self._failed_size)
        self._patience *= 2
        self._successes = 0
        self.current_batch_size = max(self.min_batch_size, failed // 2)
        _log.warning("out of memory with a batch of %d: going on with %d", failed, self.current_batch_size)

    def try_increase_batch_size(self) -> None:
        """After a step that succeeded: grows the size every `grow_after` such steps, but to a size that failed only
        after a while, when other users of the memory may be gone."""
        self._successes += 1
        if self._successes < self.grow_after or self.current_batch_size >= self.max_batch_size:
            return
        wanted = min(self.max_batch_size, self.current_batch_size + self.increment)
        if self._failed_size is not None and wanted >= self._failed_size:
            if self._successes >= self._patience:
                self._failed_size = None
            else:
                wanted = self._failed_size - 1
        if wanted > self.current_batch_size:
            self.current_batch_size, self._successes = wanted, 0

    def run(self, step: Callable[[Any], Any], batch: Any) -> Iterator[tuple[int, Any]]:
        """Calls `step` on consecutive pieces of the batch, each of the current size; yields (samples, its result).

        A piece that runs out of memory is retried at half the size, so `step` must be repeatable: it calls zero_grad()
        itself. Gradients that a failed step leaves in `.grad` are the caller's to drop.
        """
        at, total = 0, size_of(batch)
        while at < total:
            size = min(self.current_batch_size, total - at)
            result, failed = _attempt(step, piece_of(batch, at, at + size))
            if failed:
                self.current_batch_size = min(self.current_batch_size, max(size, self.min_batch_size))
                self.handle_oom()
                continue
            at += size
            self.try_increase_batch_size()
            yield size, result
            del result  # not kept while the next piece runs


def train_with_dynamic_batching(
    model: Any,
    optimizer: Any,
    dataloader: Any,
    criterion: Callable[[Any, Any], Any],
    epochs: int = 1,
    batch_sizer: DynamicBatchSizer | None = None,
) -> list[float]:
    """Trains on batches of (inputs, targets) in pieces that fit; returns the loss of every optimizer step.

    The loader is created once and its batches are split, so no sample is trained twice after a failure.
    """
    require_torch("train_with_dynamic_batching")
    sizer = batch_sizer or DynamicBatchSizer()

    def step(piece: Any) -> float:
        inputs, targets = piece
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    losses = []
    for _ in range(epochs):
        for batch in dataloader:
            losses += [loss for _, loss in sizer.run(step, batch)]
    return losses


def free_memory() -> None:
    """Collects garbage, then releases the allocator's unused memory; in the other order little is released."""
    gc.collect()
    torch = loaded_torch()
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _attempt(step: Callable[[Any], Any], piece: Any) -> tuple[Any, bool]:
    """(result, whether memory ran out). Once it has returned, nothing holds the frames of what failed."""
    try:
        return step(piece), False
    except Exception as error:
        if not classify_oom_exception(error).is_oom:
            raise
    return None, True
