"""Snapshots by name, tensors by name, monitoring, and the watchdog in both of its forms."""

import gc
import time

from expect import MIB, basis, exactly, touched

from gpumemprof import GPUMemoryProfiler, MemoryTracker
from gpumemprof.tracker import MemoryWatchdog

profiler = GPUMemoryProfiler()
important = touched(8)
entry = profiler.tensor_tracker.track_tensor(important, "important")
before = profiler.capture_snapshot("before")
del important
after = profiler.capture_snapshot("after")
exactly(before.allocated_memory - after.allocated_memory, 8 * MIB)
assert before.gpu_memory_mb - after.gpu_memory_mb > 7
assert (entry.size_bytes, entry.is_alive) == (8 * MIB, False)

profiler.start_monitoring(interval=0.02)
time.sleep(0.3)
profiler.stop_monitoring()
assert len(profiler.snapshots) >= 5 and profiler.snapshots[0] is before

# Above its threshold from the start: this process takes more than one MiB.
cleanups = []
watchdog = MemoryWatchdog(max_memory_mb=2, cleanup_threshold_mb=1, check_interval=0.02)
watchdog.add_cleanup_callback(lambda: cleanups.append(gc.collect()))
held = touched(4)
watchdog.start()
time.sleep(0.5)
watchdog.stop()
assert cleanups and watchdog.get_cleanup_stats()["cleanup_count"] >= 1

with MemoryTracker(sampling_interval=0.02) as tracker:
    of_tracker = MemoryWatchdog(tracker, auto_cleanup=False)
    of_tracker.force_cleanup()
assert of_tracker.get_cleanup_stats()["cleanup_count"] == 1
assert tracker.get_statistics()["basis"] == basis
