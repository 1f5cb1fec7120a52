"""MemoryWatchdog: gives memory back before it runs out."""

from ._tracking.watchdog import MIB as MIB
from ._tracking.watchdog import MemoryWatchdog as MemoryWatchdog
