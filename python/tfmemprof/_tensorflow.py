"""The only place that imports TensorFlow, and that queries its state without changing it."""

from __future__ import annotations

import sys
from typing import Any

from gpumemprof._core.needed import needed

TRACING = " (graph tracing)"  # behind the name of what ran only to build a graph


def require_tensorflow(feature: str = "this feature") -> Any:
    """The module tensorflow, imported now. ImportError that says what to install where it is missing."""
    missing = needed(f"TensorFlow, for {feature},", "tensorflow")
    try:
        import tensorflow
    except ImportError as error:
        raise ImportError(missing) from error
    if not hasattr(tensorflow, "config"):  # a folder of that name is a package, too
        raise ImportError(f"{missing}. What is found by that name is {list(tensorflow.__path__)[:1]}.")
    return tensorflow


def loaded_tensorflow() -> Any | None:
    """The module where the program has imported it already, whole; else None: never imports it."""
    module = sys.modules.get("tensorflow")
    # While it is being imported by another thread it is there, with half of its names.
    return module if module is not None and hasattr(module, "config") and hasattr(module, "function") else None


def is_initialized() -> bool:
    """Whether TensorFlow has made its devices. Before that it has allocated nothing, and a question about memory would
    make them: after which a program cannot set memory growth, logical devices or numbers of threads any more.
    """
    context = sys.modules.get("tensorflow.python.eager.context")
    if context is None:
        return False
    made = getattr(context, "_context", None)
    if made is None:
        return False
    return bool(getattr(made, "_initialized", True))  # unknown layout: the context is there, so take it for in use


def is_tracing() -> bool:
    """Whether the calling thread builds a graph now: inside a tf.function, a Keras graph, a tf.data function."""
    tensorflow = loaded_tensorflow()
    return tensorflow is not None and not tensorflow.executing_eagerly()
