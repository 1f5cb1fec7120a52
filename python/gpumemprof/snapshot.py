"""What profiling gives: MemorySnapshot, one moment, and ProfileResult, one call or block. All memory in bytes."""

from ._profiling.results import MemorySnapshot as MemorySnapshot
from ._profiling.results import ProfileResult as ProfileResult
from ._profiling.results import snapshot_of as snapshot_of
