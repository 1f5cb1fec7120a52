"""Runs a few steps without lasting effects and measures peak, time, losses and weights."""

from __future__ import annotations

import contextlib
import math
import mmap
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .._core.columns import side_by_side
from .._core.torch import require_torch
from .._counting import counters


@dataclass(frozen=True)
class Trial:
    """`weights` are copies in memory of their own, which no counter of tensors sees."""

    peak_bytes: int
    time_s: float  # median of the steps
    losses: tuple[float, ...]
    weights: tuple[Any, ...]

    def agreement(self, other: Trial) -> tuple[str, float]:
        """In words, and the largest difference of losses relative to their size; 0 where all is equal bit for bit,
        infinite where something is not a number in one of them alone."""
        torch = require_torch("optimize")
        equal = self.losses == other.losses and all(
            torch.equal(a, b) for a, b in side_by_side(self.weights, other.weights)
        )
        if equal:
            return "bit for bit", 0.0
        apart = [_apart(a, b) for a, b in side_by_side(self.losses, other.losses)]
        for a, b in side_by_side(self.weights, other.weights):
            size = max(float(a.abs().max()), 1e-12) if a.numel() and a.is_floating_point() else 1.0
            apart.append(float((a.double() - b.double()).abs().max()) / size if a.numel() else 0.0)
        worst = max(apart, default=0.0)
        return f"within {worst:.1e}" if math.isfinite(worst) else "not the same", worst


class Bench:
    """Runs a step of a model, each time from the same state: weights, buffers, gradients, optimizers' state, random
    numbers. Data that the step takes from elsewhere (an iterator) is not ours to turn back."""

    def __init__(self, model: Any, steps: int, device: Any = None) -> None:
        self.torch = require_torch("optimize")
        self.model, self.steps = model, steps
        where = device if device is not None else next(model.parameters()).device
        self.source = counters.source_for(where)
        self.optimizers: list[Any] = []  # those that stepped

    def run(self, step: Callable[[], Any]) -> Trial:
        with self._same_afterwards(), self._optimizers_same_afterwards():
            start = self._older_bytes()
            span = self.source.begin()
            times, losses = [], []
            try:
                for _ in range(self.steps):
                    began = time.perf_counter()
                    losses.append(_number(step()))
                    self._wait()
                    times.append(time.perf_counter() - began)
            finally:
                figures = counters.figures_of(self.source, span.end())
            weights = tuple(_outside_copy(self.torch, p.detach()) for p in self.model.parameters())
        known = tuple(loss for loss in losses if loss is not None)
        return Trial(figures.peak_bytes + start, statistics.median(times), known, weights)

    def live_bytes(self) -> int:
        return int(self.source.read().allocated_bytes)

    def _wait(self) -> None:
        if not self.source.device.is_cpu:
            self.torch.cuda.synchronize()

    def _older_bytes(self) -> int:
        """What of the model was allocated before counting began, and is in no figure."""
        held = {}
        for parameter in self.model.parameters():
            for tensor in (parameter, parameter.grad):
                if tensor is not None and not tensor.is_sparse:
                    held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return int(max(0, sum(held.values()) - self.source.read().allocated_bytes))

    @contextlib.contextmanager
    def _optimizers_same_afterwards(self) -> Iterator[None]:
        """Those that step: what an optimizer has is what it had when it stepped first."""
        torch = self.torch
        own = {id(parameter) for parameter in self.model.parameters()}
        before: list[tuple[Any, dict[Any, dict[str, Any]], list[tuple[Any, Any]]]] = []

        def note(optimizer: Any, *_: Any) -> None:
            if any(optimizer is known for known, _, _ in before):
                return
            others = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in own]
            copies = [(p, _outside_copy(torch, p.detach())) for p in others]
            before.append((optimizer, _state_of(torch, optimizer), copies))
            if not any(optimizer is known for known in self.optimizers):
                self.optimizers.append(optimizer)

        handle = import_module("torch.optim.optimizer").register_optimizer_step_pre_hook(note)
        try:
            yield
        finally:
            handle.remove()
            with torch.no_grad():
                for optimizer, state, copies in before:
                    _restore_state(optimizer, state)
                    for parameter, copied in copies:
                        parameter.copy_(copied)

    @contextlib.contextmanager
    def _same_afterwards(self) -> Iterator[None]:
        torch, model = self.torch, self.model
        tensors = [*model.parameters(), *model.buffers()]
        kept = [(tensor, _outside_copy(torch, tensor.detach())) for tensor in tensors]
        gradients = [(p, p.grad, None if p.grad is None else _outside_copy(torch, p.grad)) for p in model.parameters()]
        numbers = _Randomness(torch)
        training = [(module, module.training) for module in model.modules()]
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, copied in kept:
                    tensor.copy_(copied)
                for parameter, gradient, copied in gradients:
                    parameter.grad = gradient
                    if gradient is not None:
                        gradient.copy_(copied)
            for module, mode in training:
                module.training = mode
            numbers.restore()


class _Randomness:
    def __init__(self, torch: Any) -> None:
        self._torch, self._python = torch, random.getstate()
        self._cpu = bytes(torch.get_rng_state().tolist())
        on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
        self._gpus = [bytes(state.tolist()) for state in torch.cuda.get_rng_state_all()] if on_gpu else []

    def restore(self) -> None:
        torch = self._torch
        random.setstate(self._python)
        torch.set_rng_state(torch.frombuffer(bytearray(self._cpu), dtype=torch.uint8))
        if self._gpus:
            torch.cuda.set_rng_state_all(
                [torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in self._gpus]
            )


def _state_of(torch: Any, optimizer: Any) -> dict[Any, dict[str, Any]]:
    """Of each parameter: its entries, tensors with a copy."""
    return {
        parameter: {
            key: (value, _outside_copy(torch, value)) if isinstance(value, torch.Tensor) else (value, None)
            for key, value in entries.items()
        }
        for parameter, entries in optimizer.state.items()
    }


def _restore_state(optimizer: Any, state: dict[Any, dict[str, Any]]) -> None:
    optimizer.state.clear()
    for parameter, entries in state.items():
        optimizer.state[parameter] = {}
        for key, (value, copied) in entries.items():
            if copied is not None:
                value.copy_(copied)
            optimizer.state[parameter][key] = value


def _outside_copy(torch: Any, tensor: Any) -> Any:
    """A copy in memory that is not the allocator's, so that it is in no peak."""
    if tensor.is_sparse or tensor.numel() == 0:
        return tensor.detach().clone()
    copied = torch.frombuffer(mmap.mmap(-1, tensor.nbytes), dtype=tensor.dtype)
    return copied.view(tensor.shape).copy_(tensor)


def _number(loss: Any) -> float | None:
    if loss is None:
        return None
    return float(loss.detach()) if hasattr(loss, "detach") else float(loss)


def _apart(a: float, b: float) -> float:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) / max(abs(a), 1e-12) if math.isfinite(a - b) else math.inf
