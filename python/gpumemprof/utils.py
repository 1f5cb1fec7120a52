"""Sizes as text, and what this machine and its GPUs are."""

from ._counting.machine import MemoryContext as MemoryContext
from ._counting.machine import check_memory_fragmentation as check_memory_fragmentation
from ._counting.machine import convert_bytes as convert_bytes
from ._counting.machine import format_bytes as format_bytes
from ._counting.machine import get_gpu_info as get_gpu_info
from ._counting.machine import get_system_info as get_system_info
from ._counting.machine import memory_summary as memory_summary
from ._counting.machine import suggest_memory_optimization as suggest_memory_optimization
