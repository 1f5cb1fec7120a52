"""Keras layers and models under the profiler. `undo()` reverts every change to a layer."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .context_profiler import get_global_profiler
from .profiler import TFMemoryProfiler

_MEASURED = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")


class ProfiledLayer:
    """Measures the calls of a Keras layer as `NAME_forward` until `undo()` or the end of a `with` block.

    The layer object stays in its model with its weights; only its `call` is replaced and later restored. This object
    can be called and has the layer's attributes. In a graph (fit, predict, tf.function) a layer's Python code runs only
    while the graph is built, and that is measured; a recording shows the memory of each step, by ops.
    """

    def __init__(self, layer: Any, profiler: TFMemoryProfiler | None = None, name: str | None = None) -> None:
        self.layer = layer
        self.profiler = profiler or get_global_profiler()
        self.profile_name = name or getattr(layer, "name", None) or type(layer).__name__
        self._wrapper = self.profiler.wrap(layer.call, f"{self.profile_name}_forward")
        self._before = layer.__dict__.get("call")  # somebody else's replacement is put back, too
        _set(layer, "call", self._wrapper)

    def undo(self) -> None:
        """Restores the layer's own `call`. Does nothing if that was done, or if other code has replaced it since."""
        if self.layer.__dict__.get("call") is not self._wrapper:
            return
        if self._before is not None:
            _set(self.layer, "call", self._before)
        else:
            self.layer.__dict__.pop("call", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.layer(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "layer":  # not there yet: asking it would ask us again
            raise AttributeError(name)
        return getattr(self.layer, name)

    def __enter__(self) -> ProfiledLayer:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


class ProfiledModel:
    """A Keras model whose layers are ProfiledLayers and whose fit(), evaluate(), predict() and calls are measured.

    All other attributes are read from and set on the model. `undo()`, or the end of a `with` block, restores the model.
    """

    def __init__(self, model: Any, profiler: TFMemoryProfiler | None = None, name: str | None = None) -> None:
        profiler = profiler or get_global_profiler()
        label = name or getattr(model, "name", None) or type(model).__name__
        parts = [ProfiledLayer(layer, profiler) for layer in _leaves(model)]
        self.__dict__.update(model=model, profiler=profiler, profile_name=label, layers_profiled=parts)

    def undo(self) -> None:
        """Restores the layers' own calls. This object remains usable, with its layers unmeasured."""
        for part in self.layers_profiled:
            part.undo()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.profiler.profile_context(f"{self.profile_name}_forward"):
            return self.model(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # not there yet: asking it would ask us again
            raise AttributeError(name)
        value = getattr(self.model, name)
        return self._measured(name, value) if name in _MEASURED else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.model, name, value)

    def _measured(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.profiler.profile_context(f"{self.profile_name}.{name}"):
                return method(*args, **kwargs)

        return call

    def __enter__(self) -> ProfiledModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


def profile_model(model: Any, profiler: TFMemoryProfiler | None = None, name: str | None = None) -> ProfiledModel:
    """The model as a ProfiledModel of `profiler`, or of the shared one."""
    return ProfiledModel(model, profiler, name)


def _leaves(model: Any) -> list[Any]:
    """The layers that have no layers in them, each once; of a model that is not built, those it has so far."""
    found: dict[int, Any] = {}

    def walk(layer: Any) -> None:
        inner = [each for each in getattr(layer, "layers", None) or ()]
        for each in inner:
            walk(each)
        if not inner and layer is not model:
            found.setdefault(id(layer), layer)

    walk(model)
    return list(found.values())


def _set(layer: Any, name: str, value: Any) -> None:
    # Past Keras's own __setattr__, which looks for weights and layers in all that it is given.
    layer.__dict__[name] = value
