"""A change that `gpumemprof advise -- COMMAND` tries in a run of its own, made from outside of the program.

GPUMEMPROF_TRY names it; GPUMEMPROF_TRY_STEPS ends the program after so many steps of its optimizers. Both are set for
that run alone. What fails here fails the run: a change that was not made must not be measured as one. For the same
reason the process that makes it says so, in the file of GPUMEMPROF_TRY_MADE: a program may never come to where it could
be made, and its other processes (launchers, workers) need not.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any


def arm() -> None:
    change, steps = os.environ.get("GPUMEMPROF_TRY", ""), os.environ.get("GPUMEMPROF_TRY_STEPS", "")
    kind, _, argument = change.partition(":")
    if kind == "drop_gradients":
        _after_steps(_drop_gradients)
    elif kind == "one_by_one":
        import_module("torch.optim.optimizer").register_optimizer_step_pre_hook(_one_by_one)
    elif kind == "prefetch_two":
        _prefetch_two()
    elif kind == "checkpoint":
        _checkpoint(argument)
    elif change:
        raise ValueError(f"GPUMEMPROF_TRY={change!r} is not a known change")
    if steps:
        _end_after(int(steps))


_is_made = False


def _made() -> None:
    global _is_made
    path = os.environ.get("GPUMEMPROF_TRY_MADE")
    if path and not _is_made:
        with open(path, "a"):
            _is_made = True


def _after_steps(call: Any) -> None:
    import_module("torch.optim.optimizer").register_optimizer_step_post_hook(call)


def _drop_gradients(optimizer: Any, *_: Any) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                parameter.grad = None
                _made()


def _one_by_one(optimizer: Any, *_: Any) -> None:
    for group in optimizer.param_groups:
        if "foreach" in group and not group.get("fused"):
            group["foreach"] = False
            _made()


def _prefetch_two() -> None:
    loader = import_module("torch.utils.data").DataLoader
    made = loader.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("prefetch_factor") is not None:
            kwargs["prefetch_factor"] = 2
            _made()
        made(self, *args, **kwargs)

    loader.__init__ = init


def _checkpoint(parent: str) -> None:
    """The members of `parent`, before the first call of a model that has it. Paths in a Sequential begin with its class."""
    module = import_module("torch.nn.modules.module")
    model, _, below = parent.partition(".")

    def look(called: Any, _inputs: Any) -> None:
        try:
            blocks = called.get_submodule(below if type(called).__name__ == model else parent)
        except AttributeError:
            return
        members = [child for _, child in blocks.named_children()]
        if not members:
            return
        handle.remove()
        from ..practices.checkpointing import CheckpointedModules

        CheckpointedModules(members)
        _made()

    handle = module.register_module_forward_pre_hook(look)


def _end_after(steps: int) -> None:
    done = 0

    def count(*_: Any) -> None:
        nonlocal done
        done += 1
        if done >= steps:
            sys.exit(0)  # as the program itself would: its own clean-up runs

    _after_steps(count)
