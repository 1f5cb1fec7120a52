"""Shared by the callbacks of training loops: a profiler, and the block of the current step."""

from __future__ import annotations

from typing import Any

from ._metrics import PREFIX, result_metrics


class StepProfiler:
    """Measures one step after the other with `profiler`, made for the training's device where none is given.

    Never raises into the training but for what a device refuses when the profiler is made."""

    def __init__(self, profiler: Any = None) -> None:
        self.profiler = profiler
        self._block: Any = None
        self._result: Any = None

    def prepare(self, device: Any) -> None:
        """The device is the training's. One that cannot be profiled has the CPU's memory measured instead."""
        self.abandon(None)
        if self.profiler is None:
            from .._profiling.profiler import GPUMemoryProfiler

            kind = getattr(device, "type", str(device).split(":")[0])
            self.profiler = GPUMemoryProfiler(device if kind == "cuda" else "cpu", track_tensors=False)

    def begin(self, name: str) -> None:
        self.abandon(None)
        if self.profiler is not None:
            self._block = self.profiler.profile_context(name)
            self._result = self._block.__enter__()

    def end(self) -> dict[str, float]:
        """Metrics of the step, by name with prefix; empty where none had begun."""
        if self._block is None:
            return {}
        result = self._result
        self.abandon(None)
        return {f"{PREFIX}/{name}": value for name, value in result_metrics(result).items()}

    def abandon(self, error: BaseException | None) -> None:
        """Ends the step that runs, if one does, by the error that ended it."""
        block, self._block = self._block, None
        if block is not None:
            block.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
