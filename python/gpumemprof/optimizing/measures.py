"""The changes. Each applies itself and returns the function that undoes it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.columns import side_by_side
from ..practices._batches import piece_of, size_of
from .knapsack import choose
from .modules import candidates, measure_modules
from .result import Measure
from .trial import Bench

if TYPE_CHECKING:
    from .fitting import _State

Undo = Callable[[], None]


class Steps:
    """The step, in whatever form it was given; called without arguments by trials."""

    def __init__(self, step: Callable[..., Any], batch: Any, optimizer: Any) -> None:
        self._step, self._batch, self._optimizer, self._pieces = step, batch, optimizer, 1

    def __call__(self) -> Any:
        return self._step() if self._optimizer is None else self.train(self._batch)

    @property
    def public(self) -> Callable[..., Any]:
        return self._step if self._optimizer is None else self.train

    def train(self, batch: Any) -> float:
        """One optimizer step over the batch, in as many pieces as were chosen; the loss of the whole."""
        total, loss_sum = size_of(batch), 0.0
        pieces = min(self._pieces, total)
        edges = [total * i // pieces for i in range(pieces + 1)]
        self._optimizer.zero_grad()
        for begin, end in zip(edges, edges[1:]):
            loss = self._step(piece_of(batch, begin, end) if pieces > 1 else batch)
            share = (end - begin) / total
            (loss * share if pieces > 1 else loss).backward()
            loss_sum += float(loss.detach()) * share
            del loss  # and its graph, before the next one is made
        self._optimizer.step()
        return loss_sum

    def cut(self, pieces: int) -> Undo:
        before, self._pieces = self._pieces, pieces

        def undo() -> None:
            self._pieces = before

        return undo

    def smaller_state(self, kind: str) -> tuple[Undo | None, str]:
        """(None, why not) where it cannot be."""
        if self._optimizer is None:
            return None, "step() creates its own optimizer: give batch and optimizer"
        made, reason = _optimizer_class(kind)
        if made is None:
            return None, reason
        before = self._optimizer
        self._optimizer, dropped = _like(before, made)

        def undo() -> None:
            self._optimizer = before

        words = [f"by {made.__module__.split('.')[0]}"]
        if dropped:
            words.append(f"without {', '.join(dropped)}, which it does not have")
        words += [
            "trains differently; its learning rate may need another value",
            "schedulers still refer to the old optimizer: create new ones for result.optimizer",
        ]
        return undo, "; ".join(words)

    @property
    def optimizer(self) -> Any:
        return self._optimizer


def _like(before: Any, made: Any) -> tuple[Any, tuple[str, ...]]:
    """An optimizer of the class `made` with the groups of another, and which of its settings the class does not have.

    A setting of the same name means the same where its value is of the same form: Adam's `eps` is a number, Adafactor's
    is two. What the class of the other one never had is its user's or a scheduler's (`initial_lr`), and comes along.
    """
    optimizer = made([{key: group[key] for key in ("params", "lr") if key in group} for group in before.param_groups])
    dropped: dict[str, None] = {}
    for old, new in side_by_side(before.param_groups, optimizer.param_groups):
        for key, value in old.items():
            if key in ("params", "lr"):
                continue
            if key not in before.defaults or (key in optimizer.defaults and _same_form(new[key], value)):
                new[key] = value
            elif value is not None and value is not False:  # off is what a class without the setting is, too
                if key == "decoupled_weight_decay" and made.__name__.startswith("AdamW"):
                    continue  # what makes an AdamW of an Adam
                dropped[key] = None
    return optimizer, tuple(dropped)


def _same_form(own: Any, other: Any) -> bool:
    if isinstance(own, (tuple, list)) or isinstance(other, (tuple, list)):
        both = isinstance(own, (tuple, list)) and isinstance(other, (tuple, list))
        return both and len(own) == len(other) and all(map(_same_form, own, other))
    return own is None or other is None or isinstance(own, bool) == isinstance(other, bool)


def _optimizer_class(kind: str) -> tuple[Any, str]:
    places = (
        (("torch.optim", "Adafactor"),)
        if kind == "factored"
        else (("torchao.optim", "AdamW8bit"), ("bitsandbytes.optim", "AdamW8bit"))
    )
    for module, name in places:
        try:
            return getattr(importlib.import_module(module), name), ""
        except (ImportError, AttributeError):
            continue
    return None, f"{' and '.join(module.split('.')[0] for module, _ in places)}: not installed, or without {places[0][1]}"


def set_to_none(bench: Bench) -> Undo:
    """zero_grad() of the model and of every optimizer that stepped drops gradients, whatever it is told."""
    owners = [*bench.optimizers, bench.model]
    before = [(owner, owner.__dict__.get("zero_grad")) for owner in owners]
    for owner in owners:
        original = owner.zero_grad

        def zero_grad(set_to_none: bool = True, original: Any = original) -> None:
            original(set_to_none=True)

        owner.zero_grad = zero_grad

    def undo() -> None:
        for owner, kept in before:
            if kept is None:
                del owner.zero_grad
            else:
                owner.zero_grad = kept

    return undo


def uses_foreach(bench: Bench) -> bool:
    """By default optimizers do so on GPUs, where they can."""
    default = not bench.source.device.is_cpu
    return any(
        "foreach" in group and not group.get("fused") and (group["foreach"] or (group["foreach"] is None and default))
        for optimizer in bench.optimizers
        for group in optimizer.param_groups
    )


def one_by_one(bench: Bench) -> Undo:
    groups = [group for optimizer in bench.optimizers for group in optimizer.param_groups if "foreach" in group]
    before = [group["foreach"] for group in groups]
    for group in groups:
        if not group.get("fused"):
            group["foreach"] = False

    def undo() -> None:
        for group, value in side_by_side(groups, before):
            group["foreach"] = value

    return undo


def checkpoint_until(state: _State) -> None:
    """Checkpoints the set of modules that saves what is missing in the least time; where the measured peak is still
    above the budget, as what a module computes again is there once more, a larger set."""
    from ..practices.checkpointing import CheckpointedModules

    bench = state.bench
    paths = candidates(bench.model)
    items = measure_modules(bench, state.steps, paths) if paths else []
    if not any(item.saved_bytes > 0 for item in items):
        return state.skip("checkpointing", "no module below the root keeps more than its output")
    needed = state.last.peak_bytes - state.budget_bytes
    before, all_bytes = state.last, sum(max(item.saved_bytes, 0) for item in items)
    while True:
        choice = choose(items, min(needed, all_bytes))
        assert choice is not None  # no more than all of them is asked for
        names = tuple(item.name for item in choice.items)
        applied = CheckpointedModules([bench.model.get_submodule(name) for name in names])
        measure: Measure = state.attempt(
            "checkpointing", applied.remove, exact=True, modules=names,
            reason="" if choice.is_exact else "too many combinations to compare all: near the shortest time",
        )  # fmt: skip
        if state.fits or not measure.applied or needed >= all_bytes:
            return
        # Back, to choose anew: this attempt is no step on the way.
        needed = max(needed + state.last.peak_bytes - state.budget_bytes, choice.saved_bytes + 1)
        state.undo.pop()()
        state.measures.pop()
        state.last = before


def batch_statistics(model: Any) -> str:
    """The class of the first module that normalises over the batch while training; "" where none does."""
    return next((type(m).__name__ for m in model.modules() if "BatchNorm" in type(m).__name__ and m.training), "")
