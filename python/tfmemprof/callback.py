"""A Keras callback: `model.fit(…, callbacks=[MemoryCallback()])` measures every step and epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._tensorflow import require_tensorflow
from .results import MIB


class _Hooks:
    """Measures steps, epochs, evaluations and predictions of a Keras model: `train_step`, `epoch_N`, `test_step`,
    `predict_step` are the names under which `profiler` (yours, or one made for this) has the results.

    `epochs` has a dict for each epoch: epoch, peak_memory_mb (the highest of its steps), kept_memory_mb (what the epoch
    left behind), steps, and basis. With `log=True` the peak is put into Keras's own logs too, as `peak_memory_mb`;
    otherwise nothing that the training prints or returns changes.
    """

    def __init__(self, profiler: Any = None, log: bool = False) -> None:
        super().__init__()
        if profiler is None:
            from .profiler import TFMemoryProfiler

            profiler = TFMemoryProfiler()
        self.profiler = profiler
        self.log = log
        self.epochs: list[dict[str, Any]] = []
        self._open: dict[str, Any] = {}
        self._peak_bytes, self._steps = 0, 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._peak_bytes = self._steps = 0
        self._begin("epoch", f"epoch_{epoch}")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        result = self._end("epoch")
        if result is None:
            return
        peak = max(self._peak_bytes, result.peak_memory_usage())
        self.epochs.append({
            "epoch": epoch, "peak_memory_mb": peak / MIB, "kept_memory_mb": result.memory_diff() / MIB,
            "steps": self._steps, "basis": result.basis, "peak_is_exact": result.peak_is_exact,
        })  # fmt: skip
        if self.log and logs is not None:
            logs["peak_memory_mb"] = peak / MIB

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begin("step", "train_step")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        result = self._end("step")
        if result is not None:
            self._steps += 1
            self._peak_bytes = max(self._peak_bytes, result.peak_memory_usage())

    def on_train_end(self, logs: Any = None) -> None:
        # A training that an exception ended came to no end of its step and epoch.
        for kind in list(self._open):
            self._end(kind)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begin("test", "test_step")

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._end("test")

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begin("predict", "predict_step")

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self._end("predict")

    def _begin(self, kind: str, name: str) -> None:
        self._end(kind)  # one that an exception ended, of a training before
        block = self.profiler.profile_context(name)
        block.__enter__()
        self._open[kind] = block

    def _end(self, kind: str) -> Any:
        block = self._open.pop(kind, None)
        if block is None:
            return None
        block.__exit__(None, None, None)
        return block.result


if TYPE_CHECKING:
    MemoryCallback = _Hooks


def __getattr__(name: str) -> Any:
    if name != "MemoryCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base = require_tensorflow("a Keras callback").keras.callbacks.Callback
    made = type(name, (_Hooks, base), {"__module__": __name__, "__doc__": _Hooks.__doc__})
    globals()[name] = made
    return made
