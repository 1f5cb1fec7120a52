"""Host memory of the process: profiler and tracker for programs without a GPU, and for memory outside tensors."""

from typing import TYPE_CHECKING, Any

from ._profiling.cpu import CPUMemoryProfiler as CPUMemoryProfiler
from ._profiling.cpu import CPUMemorySnapshot as CPUMemorySnapshot
from ._profiling.cpu import CPUProfileResult as CPUProfileResult

if TYPE_CHECKING:
    from ._tracking.cpu import CPUMemoryTracker as CPUMemoryTracker


def __getattr__(name: str) -> Any:
    # The tracker is a good deal of code that the profiler does not need.
    if name == "CPUMemoryTracker":
        from ._tracking.cpu import CPUMemoryTracker

        return CPUMemoryTracker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
