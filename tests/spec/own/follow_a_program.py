"""A tracker beside a program: alerts, statistics, files, and the leak that it saw."""

import time
from pathlib import Path

from expect import MIB, basis, exactly, touched

from gpumemprof import MemoryAnalyzer, MemoryTracker, load_telemetry_events

tracker = MemoryTracker(sampling_interval=0.01, enable_alerts=True)
alerts = []
tracker.add_alert_callback(alerts.append)
tracker.start_tracking()
kept = []
for count in range(1, 51):
    kept.append(touched(1))
    # Each MiB is in a sample, however late the machine wakes the tracker's thread.
    while len(tracker.get_events("sample")) < 2 * count:
        time.sleep(0.01)
growing = tracker.get_events()  # on a busy machine there are many samples until the tracker has stopped
tracker.stop_tracking()

statistics = tracker.get_statistics()
assert statistics["basis"] == basis
exactly(statistics["peak_memory"], 50 * MIB)
assert statistics["peak_memory"] >= 50 * MIB
assert tracker.get_events("sample") and tracker.get_memory_timeline(interval=0.1)["allocated"]

leaks = MemoryAnalyzer(sensitivity=0.01).detect_memory_leaks(growing)
for leak in leaks:
    print(f"{leak['type']}: {leak['description']}")
assert "monotonic_increase" in {leak["type"] for leak in leaks}
assert not MemoryAnalyzer().detect_memory_leaks([50.0 * MIB] * 100), "flat memory is no leak"

for name in ("events.json", "events.jsonl", "events.csv"):
    tracker.export_events(name, format=Path(name).suffix[1:])
    events = load_telemetry_events(name)
    assert len(events) == len(tracker.get_events())
    assert max(event.allocator_allocated_bytes for event in events) >= 50 * MIB
