"""tfmemprof: where the memory of a TensorFlow program goes.

The same code as `gpumemprof`, in TensorFlow's terms: devices are `/GPU:0` and `/CPU:0`, sizes in results are MiB.
Importing this package imports nothing else, in particular not TensorFlow. Every public name is in the table below, and
its module is imported at the first use of the name.
"""

from __future__ import annotations

from importlib import import_module

# As typing.TYPE_CHECKING, which would cost half of the time that importing this package takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Module -> the public names that live in it. `__all__` is made from it, in this order.
_HOMES: dict[str, tuple[str, ...]] = {
    "results": ("MemorySnapshot", "ProfileResult"),
    "profiler": ("TFMemoryProfiler",),
    "context_profiler": (
        "TensorFlowProfiler", "profile_function", "profile_context", "profile_keras_training", "get_global_profiler",
        "set_global_profiler", "clear_global_profiler", "clear_profiles", "get_profile_summaries", "tensor_tracker",
    ),
    "layers": ("ProfiledLayer", "ProfiledModel", "profile_model"),
    "callback": ("MemoryCallback",),
    "tracker": ("MemoryTracker", "TrackingResult"),
    "watchdog": ("MemoryWatchdog",),
    "analyzer": ("MemoryAnalyzer",),
    "visualizer": ("MemoryVisualizer",),
    "attachment": ("attach",),
    "utils": ("get_gpu_info", "get_system_info", "get_backend_info", "format_bytes", "format_memory"),
}  # fmt: skip
# Names of the first releases, and what they are now.
_OTHER_NAMES = {
    "TensorFlowMemoryTracker": "MemoryTracker", "TensorFlowVisualizer": "MemoryVisualizer",
    "TensorFlowAnalyzer": "MemoryAnalyzer",
}  # fmt: skip
_MODULES = frozenset(_HOMES) | {"collector", "counters", "devices"}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF, *_OTHER_NAMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("gpumemprof").__version__
    elif name in _OTHER_NAMES:
        value = __getattr__(_OTHER_NAMES[name])
    elif name in _HOME_OF:
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # the next touch is a plain lookup
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


if TYPE_CHECKING:
    from .analyzer import MemoryAnalyzer as MemoryAnalyzer
    from .attachment import attach as attach
    from .callback import MemoryCallback as MemoryCallback
    from .context_profiler import *
    from .layers import *
    from .profiler import TFMemoryProfiler as TFMemoryProfiler
    from .results import MemorySnapshot as MemorySnapshot
    from .results import ProfileResult as ProfileResult
    from .tracker import MemoryTracker as MemoryTracker
    from .tracker import TrackingResult as TrackingResult
    from .utils import *
    from .visualizer import MemoryVisualizer as MemoryVisualizer
    from .watchdog import MemoryWatchdog as MemoryWatchdog

    TensorFlowMemoryTracker = MemoryTracker
    TensorFlowVisualizer = MemoryVisualizer
    TensorFlowAnalyzer = MemoryAnalyzer
    __version__: str
