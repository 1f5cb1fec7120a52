"""GPUMemoryProfiler: profiles calls and blocks, takes snapshots, sums up."""

from ._profiling.profiler import GPUMemoryProfiler as GPUMemoryProfiler
from ._profiling.profiler import MemorySnapshot as MemorySnapshot
from ._profiling.profiler import ProfileResult as ProfileResult
from ._profiling.profiler import ProfiledBlock as ProfiledBlock
from ._profiling.profiler import TensorTracker as TensorTracker
