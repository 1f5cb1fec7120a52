"""Hugging Face Transformers: a callback of the Trainer measures every optimizer step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._metrics import require
from ._step_profiler import StepProfiler


class _Hooks:
    """Adds `gpumemprof/peak_mib`, `…/peak_over_start_mib` and `…/kept_mib` of the last step to what the Trainer logs,
    and so to state.log_history and trainer_state.json. Reporters that come before it in the Trainer's list have been
    told already when it is asked: `attach(trainer)` puts it first, so that they get the figures too. `profiler` has
    all steps."""

    def __init__(self, profiler: Any = None) -> None:
        super().__init__()
        self._steps = StepProfiler(profiler)
        self._metrics: dict[str, float] = {}

    @property
    def profiler(self) -> Any:
        return self._steps.profiler

    def attach(self, trainer: Any) -> Any:
        """Puts this callback before all others of `trainer`; returns it."""
        callbacks = trainer.callback_handler.callbacks
        if self not in callbacks:
            callbacks.insert(0, self)
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.prepare(args.device)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.begin("train_step")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._metrics = self._steps.end() or self._metrics

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        # The Trainer tells what it has noted down in log_history: both get the figures.
        if logs is not None and "loss" in logs:
            logs.update(self._metrics)
            if state.log_history:
                state.log_history[-1].update(self._metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.abandon(None)


if TYPE_CHECKING:
    GPUMemoryCallback = _Hooks


def __getattr__(name: str) -> Any:
    if name != "GPUMemoryCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base = require("transformers", "transformers").TrainerCallback
    made = type(name, (_Hooks, base), {"__module__": __name__, "__doc__": _Hooks.__doc__})
    globals()[name] = made
    return made
