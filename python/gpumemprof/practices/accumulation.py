"""Large batches in small pieces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from .._core.torch import require_torch
from ._batches import piece_of, size_of


class GradientAccumulator:
    """One optimizer step over `accumulation_steps` backward passes; only one pass's activations are live at a time.

    `step` returns the loss, not its multiple. `finish` uses the rest of an epoch. Under DistributedDataParallel
    gradients are reduced once, with the last pass. `step_whole` splits a batch itself and weights unequal pieces.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        accumulation_steps: int = 4,
        criterion: Callable[[Any, Any], Any] | None = None,
        *,
        scaler: Any = None,
    ) -> None:
        """`criterion` is a mean over samples, needed by `step` and `step_whole`. `scaler`: a GradScaler, if one is
        used."""
        if accumulation_steps < 1:
            raise ValueError(f"accumulation_steps has to be 1 or more, not {accumulation_steps}")
        require_torch("GradientAccumulator")
        self.model, self.optimizer, self.criterion, self.scaler = model, optimizer, criterion, scaler
        self.accumulation_steps = accumulation_steps
        self.current_step = 0  # backward passes so far
        self._pending = 0  # of these, since the optimizer's last step

    def accumulate_gradients(self, loss: Any) -> None:
        """The backward pass of one piece; the optimizer steps after the last of `accumulation_steps`."""
        self._backward(loss / self.accumulation_steps)
        if self._pending == self.accumulation_steps:
            self._apply()

    def step(self, batch: tuple[Any, Any]) -> float:
        """Forward and backward pass of (inputs, targets); returns the loss."""
        is_last = self._pending + 1 == self.accumulation_steps
        with self._reduction(is_last):
            loss = self._loss(batch)
            self.accumulate_gradients(loss)
        return float(loss.detach())

    def step_whole(self, batch: Any) -> float:
        """Accumulates the gradients of one large batch in `accumulation_steps` pieces and steps the optimizer. Returns
        the loss of the whole, which equals that of one pass except for the order of floating-point additions."""
        if self._pending:
            raise RuntimeError(f"{self._pending} passes are accumulated already: call finish() first")
        total, mean = size_of(batch), 0.0
        pieces = min(self.accumulation_steps, total)
        edges = [total * i // pieces for i in range(pieces + 1)]
        for i in range(pieces):
            share = (edges[i + 1] - edges[i]) / total
            with self._reduction(i + 1 == pieces):
                loss = self._loss(piece_of(batch, edges[i], edges[i + 1])) * share
                self._backward(loss)
            mean += float(loss.detach())
            del loss  # and its graph, before the next one is made
        self._apply()
        return mean

    def finish(self) -> bool:
        """At the end of an epoch: steps with the accumulated gradients, as the mean of the passes so far. Returns False
        if there are none."""
        if not self._pending:
            return False
        factor = self.accumulation_steps / self._pending
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.mul_(factor)
        self._apply()
        return True

    def _loss(self, batch: Any) -> Any:
        if self.criterion is None:
            raise TypeError("GradientAccumulator needs its criterion for this: GradientAccumulator(…, criterion=…)")
        inputs, targets = batch
        return self.criterion(self.model(inputs), targets)

    def _backward(self, loss: Any) -> None:
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        self.current_step += 1
        self._pending += 1

    def _apply(self) -> None:
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self._pending = 0

    def _reduction(self, wanted: bool) -> Any:
        """Around a pass whose gradients other ranks need not see yet."""
        no_sync = getattr(self.model, "no_sync", None)
        return contextlib.nullcontext() if wanted or no_sync is None else no_sync()
