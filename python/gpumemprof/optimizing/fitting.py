"""`gpumemprof.optimize`: applies safe changes until a step fits."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

from .._core.torch import require_torch
from ..practices._batches import size_of
from . import measures as tried
from .result import Measure, OptimizationResult
from .trial import Bench, Trial

_SMALL = 1e-4  # losses of the same sums in another order are closer than this


def optimize(
    model: Any,
    step: Callable[..., Any],
    budget: str | int = "20GiB",
    *,
    batch: Any = None,
    optimizer: Any = None,
    optimizer_state: str | None = None,
    steps: int = 3,
    device: Any = None,
) -> OptimizationResult:
    """Changes training steps of the model so that their peak fits into `budget` bytes of its device. Every change is
    measured.

    `step()` is a whole training step: forward, backward, optimizer. It returns its loss, or None. With `batch` and
    `optimizer`, `step(batch)` only returns the loss, a mean over samples, and the rest is done for it; then batches can
    be split, and `result.step(batch)` is the step to train with.

    A change is kept only if it saves bytes and the results agree: bit for bit, or as closely as sums in another order.
    For a step that differs from run to run, they must agree as closely as it does with itself, and its batch is not
    split. Changes are tried in this order. Always: gradients set to None instead of zero, and optimizers that update
    one tensor after the other (foreach=False). Then, until the peak is within the budget: checkpointing of the modules
    that save enough in the least time; splitting the batch; with `optimizer_state` "8bit" (torchao or bitsandbytes) or
    "factored" (torch.optim.Adafactor), an optimizer with less state, which trains differently. It has the settings that
    both optimizers share, no schedulers, and is `result.optimizer`. Allocator settings are suggested, not changed.

    Every trial begins from the same weights, optimizer state and random numbers, which are restored afterwards: the
    model is not trained. Peaks are exact under `gpumemprof run` or after `gpumemprof.attach()`; otherwise, on a GPU,
    they come from PyTorch's counters. Raises RuntimeError on a CPU without exact counting, because resident memory
    cannot show single tensors.
    """
    require_torch("optimize")
    budget_bytes = _bytes_of(budget)
    if steps < 2:
        raise ValueError("two steps are needed: the first one creates the optimizer state")
    if optimizer_state not in (None, "8bit", "factored"):
        raise ValueError(f'optimizer_state is "8bit", "factored" or None, not {optimizer_state!r}')
    bench = Bench(model, steps, device)
    if bench.source.basis == "host":
        raise RuntimeError(f"optimize() needs counted allocations on the CPU: {bench.source.basis_reason}")
    if (batch is None) != (optimizer is None):
        raise TypeError("give batch and optimizer together: step(batch) then returns only the loss")
    whole = tried.Steps(step, batch, optimizer)
    if batch is None and _wants_arguments(step):
        raise TypeError("step() takes no arguments unless batch and optimizer are given")
    state = _State(bench, whole, budget_bytes)
    state.free_measures()
    state.checkpointing()
    state.cutting(size_of(batch) if batch is not None else 0)
    state.optimizer_state(optimizer_state)
    state.allocator()
    return state.result()


class _State:
    """What is applied so far, and the last trial of it."""

    def __init__(self, bench: Bench, steps: tried.Steps, budget_bytes: int) -> None:
        self.bench, self.steps, self.budget_bytes = bench, steps, budget_bytes
        self.measures: list[Measure] = []
        self.undo: list[Callable[[], None]] = []
        bench.run(steps)  # what is made once (caches, workspaces) is none of the step's
        self.first = self.last = bench.run(steps)
        # A step that differs from itself, as one that draws new data does, is compared by how far it does.
        runs = [self.first, bench.run(steps)]
        if self.first.agreement(runs[1])[1] > 0:
            runs.append(bench.run(steps))
        self.spread = max(a.agreement(b)[1] for a, b in itertools.combinations(runs, 2))
        self.notes = (f"runs of the unchanged step differ (within {self.spread:.1e})",) if self.spread else ()

    @property
    def fits(self) -> bool:
        return self.last.peak_bytes <= self.budget_bytes

    def attempt(
        self, name: str, undo: Callable[[], None], *, exact: bool, may_differ: bool = False, **more: Any
    ) -> Measure:
        """Measures what has just been applied, and keeps it or takes it back."""
        try:
            trial = self.bench.run(self.steps)
        except BaseException:
            undo()
            raise
        words, apart = self.last.agreement(trial)
        # Two more runs of a step that varies may be further apart than those few that were made.
        allowed = 2 * self.spread if math.isfinite(self.spread) else 0.0
        agrees = apart <= (allowed if exact else max(allowed, _SMALL))
        if self.spread:
            words += f", as it was within {self.spread:.1e}"
        saved = self.last.peak_bytes - trial.peak_bytes
        keep = saved > 0 and (agrees or may_differ)
        kept_because = more.pop("reason", "")
        reason = kept_because if keep else "saves nothing" if saved <= 0 else "results differ"
        measure = Measure(name, keep, saved, trial.time_s - self.last.time_s, words, reason, **more)
        if keep:
            self.last = trial
            self.undo.append(undo)
        else:
            undo()
        self.measures.append(measure)
        return measure

    def skip(self, name: str, reason: str) -> None:
        self.measures.append(Measure(name, False, reason=reason))

    def free_measures(self) -> None:
        if not self.bench.optimizers:
            self.skip("set_to_none", "no optimizer stepped")
            self.skip("foreach=False", "no optimizer stepped")
            return
        self.attempt("set_to_none", tried.set_to_none(self.bench), exact=True)
        if tried.uses_foreach(self.bench):
            self.attempt("foreach=False", tried.one_by_one(self.bench), exact=False)
        else:
            self.skip("foreach=False", "no optimizer updates several tensors at once")

    def checkpointing(self) -> None:
        if self.fits:
            return self.skip("checkpointing", "not needed")
        tried.checkpoint_until(self)

    def cutting(self, samples: int) -> None:
        if self.fits:
            return self.skip("accumulation", "not needed")
        if not samples:
            return self.skip("accumulation", "step() creates its own batch: give batch and optimizer")
        normalised = tried.batch_statistics(self.bench.model)
        if normalised:
            return self.skip("accumulation", f"{normalised} uses batch statistics, which smaller pieces would change")
        if self.spread > _SMALL:
            # Whether the loss is a mean, which pieces need, would not show.
            why = "the step differs from run to run, so pieces cannot be compared with it"
            return self.skip("accumulation", why)
        pieces = 2
        while not self.fits and pieces <= samples:
            if not self.attempt("accumulation", self.steps.cut(pieces), exact=False, pieces=pieces).applied:
                break
            pieces *= 2

    def optimizer_state(self, kind: str | None) -> None:
        if kind is None:
            return
        name = f"optimizer state: {kind}"
        if self.fits:
            return self.skip(name, "not needed")
        undo, reason = self.steps.smaller_state(kind)
        if undo is None:
            return self.skip(name, reason)
        try:
            self.attempt(name, undo, exact=False, may_differ=True, reason=reason)
        except Exception as error:  # of the library: not every one has kernels for every device
            self.skip(name, f"{reason.split(';')[0]}: its step failed ({type(error).__name__}: {str(error)[:200]})")

    def allocator(self) -> None:
        if self.bench.source.device.is_cpu:
            return self.skip("allocator settings", "a CPU has no pool")
        self.skip(
            "allocator settings",
            "fixed at start: try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True and gpumemprof whatif",
        )

    def result(self) -> OptimizationResult:
        first, last = self.first, self.last
        return OptimizationResult(
            self.budget_bytes, first.peak_bytes, last.peak_bytes, first.time_s, last.time_s,
            self.bench.source.basis, self.bench.source.basis_reason, tuple(self.measures), first.losses, last.losses,
            self.steps.public, self.notes, self.undo, lambda: self.steps.optimizer,
        )  # fmt: skip


def _bytes_of(budget: str | int) -> int:
    if isinstance(budget, bool) or not isinstance(budget, (str, int)):
        raise TypeError(f'budget is a size like "20GiB" or a number of bytes, not {budget!r}')
    if isinstance(budget, int):
        size = float(budget)
    else:
        text = budget.strip()
        units = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
        unit = next((unit for unit in units if text.endswith(unit)), "")
        try:
            size = float(text.removesuffix(unit).removesuffix("B")) * units.get(unit, 1)
        except ValueError:
            raise ValueError(f'budget is a size like "20GiB", not {budget!r}') from None
    if not (size > 0 and math.isfinite(size)):
        raise ValueError(f"budget must be above 0, not {budget!r}")
    return int(size)


def _wants_arguments(step: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
