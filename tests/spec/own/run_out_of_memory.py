"""What a tracker still knows when memory ran out, and the bundle of the flight recorder."""

import json
from pathlib import Path

import torch
from expect import MIB, exactly, touched

from gpumemprof import MemoryAnalyzer, MemoryTracker, classify_oom_exception

tracker = MemoryTracker(enable_alerts=True, enable_oom_flight_recorder=True, oom_dump_dir="bundles")
tracker.start_tracking()
try:
    held = touched(9)
    with tracker.capture_oom(context="too large"):
        torch.empty(2**52, dtype=torch.uint8)
    raise SystemExit("4 PiB were to be had")
except RuntimeError as error:
    assert classify_oom_exception(error).is_oom
    tracker.stop_tracking()

statistics = tracker.get_statistics()
exactly(statistics["peak_memory"], 9 * MIB)
manifest = json.loads((Path(tracker.last_oom_dump_path) / "manifest.json").read_text())
assert manifest["event_count"] > 0
assert MemoryAnalyzer().generate_optimization_report()["recommendations"]
