"""Profiling with few changes to the code: a decorator, a block, whole trainings, and a shared profiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from gpumemprof._profiling.profiler import ProfiledBlock
from gpumemprof._profiling.shared import SharedProfilers
from gpumemprof._profiling.tensors import TensorTracker

from ._graphs_and_calls import graph_aware, skipped_by_autograph
from .devices import resolve_device
from .profiler import TFMemoryProfiler
from .results import ProfileResult

_F = TypeVar("_F", bound=Callable[..., Any])

_shared: SharedProfilers[TFMemoryProfiler] = SharedProfilers(TFMemoryProfiler, resolve_device)

#: Follows single tensors by name, apart from any profiler: `tfmemprof.tensor_tracker.track_tensor(t, "weights")`.
tensor_tracker = TensorTracker()


def get_global_profiler(device: Any = None) -> TFMemoryProfiler:
    """The shared profiler, created at the first call; for a different named device, the shared one of that device."""
    return _shared.get(device)


def set_global_profiler(profiler: TFMemoryProfiler | None) -> None:
    """Makes `profiler` the shared one. None removes all shared ones."""
    _shared.set(profiler)


def clear_global_profiler() -> None:
    """Removes the shared profiler; the next use creates a new one."""
    _shared.set(None)


def clear_profiles() -> None:
    """Resets the shared profiler; does nothing if there is none."""
    profiler = _shared.existing()
    if profiler is not None:
        profiler.reset()


def get_profile_summaries(limit: int | None = None) -> list[dict[str, Any]]:
    """Sums of the shared profiler by name, each with `name`, in the order of the first call; the last `limit`."""
    profiler = _shared.existing()
    functions = profiler.get_results().function_profiles if profiler is not None else {}
    rows = [{"name": name, **sums} for name, sums in functions.items()]
    return rows if limit is None else rows[max(0, len(rows) - max(limit, 0)) :]


@overload
def profile_function(func: _F, /) -> _F: ...
@overload
def profile_function(
    func: None = None, /, *, profiler: TFMemoryProfiler | None = None, name: str | None = None
) -> Callable[[_F], _F]: ...
def profile_function(
    func: Any = None, /, *, profiler: TFMemoryProfiler | None = None, name: str | None = None
) -> Any:
    """Decorator, `@profile_function` or `@profile_function(name="step")`: every call is profiled.

    Above or below `@tf.function`. Below it the function runs only while its graph is built, and that is what is
    measured, under its name and "(graph tracing)". Results are in `profiler`, or in the shared one.
    """

    def decorate(function: Any) -> Any:
        from gpumemprof._profiling.wrapping import profiled

        # The shared profiler is asked for at a call: at import time there may be no device to decide on yet.
        chosen = (lambda: profiler) if profiler is not None else get_global_profiler
        return graph_aware(function, lambda inner, its_name: profiled(inner, its_name, chosen), name)

    return decorate if func is None else decorate(func)


@skipped_by_autograph
def profile_context(name: str = "context", profiler: TFMemoryProfiler | None = None) -> ProfiledBlock:
    """`with profile_context("load") as profiler:` profiles the block; gives the profiler that has the result."""
    chosen = profiler or get_global_profiler()
    return ProfiledBlock(chosen, name, enter=chosen)


class TensorFlowProfiler:
    """Profiles whole training and inference runs of Keras models; `get_results()` returns the results."""

    def __init__(self, device: Any = None) -> None:
        self.profiler = TFMemoryProfiler(device)

    def profile_context(self, name: str = "context") -> ProfiledBlock:
        """Profiles a block, like TFMemoryProfiler.profile_context."""
        return self.profiler.profile_context(name)

    def profile_function(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """A decorator, like TFMemoryProfiler.profile_function."""
        return self.profiler.wrap(func)

    def profile_training(
        self, model: Any, dataset: Any, epochs: int = 1, steps_per_epoch: int | None = None, **fit_options: Any
    ) -> ProfileResult:
        """model.fit with a callback that measures every step and epoch: `training`, `epoch_0`, `train_step`.

        The model must be compiled. `fit_options` are passed to fit().
        """
        from .callback import MemoryCallback

        callbacks = [*fit_options.pop("callbacks", ()), MemoryCallback(self.profiler)]
        fit_options.setdefault("verbose", 0)
        with self.profiler.profile_context("training"):
            model.fit(dataset, epochs=epochs, steps_per_epoch=steps_per_epoch, callbacks=callbacks, **fit_options)
        return self.get_results()

    def profile_inference(self, model: Any, data: Any, batch_size: int = 32) -> ProfileResult:
        """model.predict, measured as `inference`. A tf.data.Dataset has its own batch size."""
        with self.profiler.profile_context("inference"):
            if hasattr(data, "element_spec"):
                model.predict(data, verbose=0)
            else:
                model.predict(data, batch_size=batch_size, verbose=0)
        return self.get_results()

    def get_results(self) -> ProfileResult:
        """As TFMemoryProfiler.get_results."""
        return self.profiler.get_results()

    def reset(self) -> None:
        """As TFMemoryProfiler.reset."""
        self.profiler.reset()


def profile_keras_training(
    model: Any,
    x_train: Any,
    y_train: Any,
    epochs: int = 1,
    batch_size: int = 32,
    validation_data: Any = None,
    profiler: TensorFlowProfiler | None = None,
) -> ProfileResult:
    """Trains a compiled Keras model on arrays and returns the results: see TensorFlowProfiler.profile_training."""
    profiler = profiler or TensorFlowProfiler()
    return profiler.profile_training(
        model, x_train, epochs, y=y_train, batch_size=batch_size, validation_data=validation_data
    )
