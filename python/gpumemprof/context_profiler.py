"""Profiling with few changes to the code: decorators, blocks, modules, and a shared profiler."""

from typing import TYPE_CHECKING, Any

from ._profiling.blocks import MemoryProfiler as MemoryProfiler
from ._profiling.blocks import clear_results as clear_results
from ._profiling.blocks import get_profile_results as get_profile_results
from ._profiling.blocks import get_summary as get_summary
from ._profiling.blocks import profile_context as profile_context
from ._profiling.blocks import profile_function as profile_function
from ._profiling.blocks import start_monitoring as start_monitoring
from ._profiling.blocks import stop_monitoring as stop_monitoring
from ._profiling.shared import get_global_profiler as get_global_profiler
from ._profiling.shared import set_global_profiler as set_global_profiler

if TYPE_CHECKING:
    from ._profiling.modules import ProfiledModule as ProfiledModule
    from ._profiling.modules import profile_model as profile_model
    from ._profiling.modules import profile_model_training as profile_model_training


def __getattr__(name: str) -> Any:
    # These need PyTorch, which the rest does not.
    if name in ("ProfiledModule", "profile_model", "profile_model_training"):
        from ._profiling import modules

        return getattr(modules, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
