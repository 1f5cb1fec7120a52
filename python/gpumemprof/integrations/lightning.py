"""Lightning: `Trainer(callbacks=[GPUMemoryCallback()])` measures every training step and logs its peak."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._metrics import require
from ._step_profiler import StepProfiler


class _Hooks:
    """Logs `gpumemprof/peak_mib`, `…/peak_over_start_mib` and `…/kept_mib` of training steps with the module's own
    log(), so they go where the training's metrics go, as often. `profiler` (yours, or one for the trainer's device)
    has train_step, validation_step and their results."""

    def __init__(self, profiler: Any = None) -> None:
        super().__init__()
        self._steps = StepProfiler(profiler)

    @property
    def profiler(self) -> Any:
        return self._steps.profiler

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._steps.prepare(trainer.strategy.root_device)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._steps.begin("train_step")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        metrics = self._steps.end()
        if metrics:
            pl_module.log_dict(metrics, on_step=True, on_epoch=False)

    def on_validation_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if not trainer.sanity_checking:
            self._steps.begin("validation_step")

    def on_validation_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self._steps.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._steps.abandon(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._steps.abandon(None)


if TYPE_CHECKING:
    GPUMemoryCallback = _Hooks


def __getattr__(name: str) -> Any:
    if name != "GPUMemoryCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # There are two packages with one code, and a trainer of the one refuses callbacks of the other: the one in use.
    in_use = [package for package in ("lightning.pytorch", "pytorch_lightning") if package in sys.modules]
    base = require(in_use[0] if in_use else "lightning.pytorch", "lightning").Callback
    made = type(name, (_Hooks, base), {"__module__": __name__, "__doc__": _Hooks.__doc__})
    globals()[name] = made
    return made
