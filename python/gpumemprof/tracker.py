"""MemoryTracker: samples a device in the background, warns, and remembers."""

from ._tracking.tracker import AlertCallback as AlertCallback
from ._tracking.tracker import MemoryTracker as MemoryTracker
from ._tracking.tracker import MemoryWatchdog as MemoryWatchdog
from ._tracking.tracker import TrackingEvent as TrackingEvent
