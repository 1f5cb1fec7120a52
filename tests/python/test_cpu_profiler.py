"""The profiler and the tracker of host memory."""

import threading

import pytest
import torch

from gpumemprof import CPUMemoryProfiler, CPUMemoryTracker

MIB = 2**20


def test_what_a_call_keeps_shows_in_resident_memory():
    profiler, kept = CPUMemoryProfiler(), []
    result = profiler.profile_function(lambda: kept.append(torch.ones(256 * MIB, dtype=torch.uint8)))
    assert abs(result.memory_diff() - 256 * MIB) < 16 * MIB
    assert result.peak_rss >= result.snapshot_after.rss and profiler.results == [result]
    assert result.to_dict().keys() >= {"name", "duration", "memory_diff", "peak_rss", "before", "after"}


def test_a_peak_within_a_call_is_seen():
    # In a process of its own, no larger before: the high-water mark has to rise.
    import subprocess
    import sys

    code = """
import gpumemprof
p = gpumemprof.CPUMemoryProfiler()
def work():
    big = bytearray(b"x") * (300 * 2**20)
    del big
r = p.profile_function(work)
print(r.peak_is_exact, r.peak_rss - r.snapshot_before.rss >= 290 * 2**20, r.memory_diff() < 20 * 2**20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "True", "True"]


def test_an_exception_is_recorded_and_raised():
    profiler = CPUMemoryProfiler()
    with pytest.raises(KeyError), profiler.profile_context("block"):
        raise KeyError
    assert profiler.results[0].error == "KeyError" and profiler.results[0].name == "block"


def test_the_summary_has_its_keys_from_the_start():
    summary = CPUMemoryProfiler().get_summary()
    assert summary["mode"] == "cpu" and summary["peak_memory_usage"] >= summary["baseline_rss"] > 0
    assert summary["snapshots_collected"] == 0 and "memory_change_from_baseline" in summary


def test_monitoring_collects_snapshots():
    wait = threading.Event()
    with CPUMemoryProfiler() as profiler:
        profiler.start_monitoring(0.001)
        while len(profiler.snapshots) < 3:
            wait.wait(0.001)
    assert not profiler.get_summary()["monitoring_active"]
    assert all(s.rss > 0 and s.vms >= s.rss for s in profiler.snapshots)
    profiler.clear_results()
    assert profiler.snapshots == []


def test_a_block_that_is_left_twice_has_one_result():
    profiler = CPUMemoryProfiler()
    block = profiler.profile_context("twice")
    block.__enter__()
    for _ in range(2):
        block.__exit__(None, None, None)
    assert [result.name for result in profiler.results] == ["twice"]


def test_a_snapshot_has_what_the_kernel_says():
    held = bytearray(64 << 20)
    snapshot = CPUMemoryProfiler()._snapshot()
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    assert abs(snapshot.rss - int(fields["VmRSS"].split()[0]) * 1024) < 8 << 20
    assert abs(snapshot.vms - int(fields["VmSize"].split()[0]) * 1024) < 8 << 20
    assert len(held) == 64 << 20


def test_results_are_bounded():
    profiler = CPUMemoryProfiler(max_results=10)
    for _ in range(25):
        profiler.profile_function(int)
    assert len(profiler.results) <= 10 and len(profiler.results) + profiler.results_dropped == 25


def test_the_tracker_is_a_memory_tracker_of_the_cpu(tmp_path):
    wait = threading.Event()
    with CPUMemoryTracker(sampling_interval=0.005) as tracker:
        while len(tracker.get_events("sample")) < 2:
            wait.wait(0.005)
    statistics = tracker.get_statistics()
    assert statistics["mode"] == "cpu" and statistics["peak_memory"] > 0
    path = tracker.export_events_with_timestamp(tmp_path / "out", "json")
    from gpumemprof import load_telemetry_events

    assert len(load_telemetry_events(path)) == len(tracker.get_events())
