"""Activations that are recomputed instead of kept."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from .._core.torch import require_torch

torch: Any = require_torch("checkpointing")
import_module("torch.utils.checkpoint")  # not loaded by torch itself in every release

_ABSENT = object()


class CheckpointedModules:
    """Modules whose forward passes are checkpointed; `remove()` undoes it."""

    def __init__(self, modules: Iterable[Any]) -> None:
        self._before: list[tuple[Any, Any]] = []
        for module in modules:
            self._before.append((module, module.__dict__.get("forward", _ABSENT)))
            module.forward = _checkpointed(module)

    def remove(self) -> None:
        while self._before:
            module, before = self._before.pop()
            if before is _ABSENT:
                del module.forward
            else:
                module.forward = before


def checkpoint_modules(model: Any, names: Iterable[str]) -> CheckpointedModules:
    """Checkpoints the named modules in place. Parameters, their names and the state_dict do not change.

    With gradients on, a module keeps only its inputs; its intermediate results are recomputed in its backward pass,
    with the same random numbers.
    """
    return CheckpointedModules([model.get_submodule(name) for name in names])


class CheckpointedModel(torch.nn.Module):  # type: ignore[misc]
    """A model whose layers are checkpointed. Without arguments it has the three layers of the documentation.

    `layers` are the names of the modules to checkpoint: by default the members of the model's longest list of equal
    modules, such as the blocks of a transformer or the stages of a network. A single Linear saves nothing, because it
    keeps only its input, as a checkpoint does. Without gradients nothing is checkpointed.
    """

    def __init__(self, model: Any = None, layers: Iterable[str] | None = None) -> None:
        super().__init__()
        if model is None:
            self.layer1 = torch.nn.Linear(1000, 1000)
            self.layer2 = torch.nn.Linear(1000, 1000)
            self.layer3 = torch.nn.Linear(1000, 1000)
            self.model = None
            self.checkpointed_layers = ["layer2"] if layers is None else list(layers)
            checkpoint_modules(self, self.checkpointed_layers)
        else:
            self.model = model
            self.checkpointed_layers = blocks_of(model) if layers is None else list(layers)
            if not self.checkpointed_layers:
                raise ValueError("no list of equal modules is in the model: name the modules in `layers`")
            checkpoint_modules(model, self.checkpointed_layers)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.model is not None:
            return self.model(*args, **kwargs)
        return self.layer3(self.layer2(self.layer1(*args, **kwargs)))


def blocks_of(model: Any) -> list[str]:
    """The paths of the most modules of one class that have one parent, each with at least two modules within or
    parameters of its own; empty if there are fewer than two."""
    best: list[str] = []
    for path, parent in model.named_modules():
        kinds: dict[type, list[str]] = {}
        for name, child in parent.named_children():
            if next(child.parameters(), None) is not None and next(child.children(), None) is not None:
                kinds.setdefault(type(child), []).append(f"{path}.{name}" if path else name)
        best = max([best, *kinds.values()], key=len)
    return best if len(best) > 1 else []


def _checkpointed(module: Any) -> Any:
    """A bound method: a copy of the module gets one that is bound to the copy, which a closure would not."""
    before = module.__dict__.get("forward")

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        run = before or functools.partial(type(self).forward, self)
        if not torch.is_grad_enabled():
            return run(*args, **kwargs)
        return torch.utils.checkpoint.checkpoint(run, *args, use_reentrant=False, **kwargs)

    return types.MethodType(forward, module)
