"""GPUMemoryProfiler: profiles calls and blocks, takes snapshots, sums up."""

from ._profiling.profiler import *
