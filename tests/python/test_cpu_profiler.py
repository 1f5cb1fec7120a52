"""The profiler and the tracker of host memory."""

import threading

import harness
import pytest

from gpumemprof import CPUMemoryProfiler, CPUMemoryTracker

MIB = 2**20


def test_what_a_call_keeps_shows_in_resident_memory():
    profiler, kept = CPUMemoryProfiler(), []
    result = profiler.profile_function(lambda: kept.append(harness.fresh_pages(256 * MIB)))
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


DESCRIPTORS = """
import os
import gpumemprof

def kernels_files():
    names = (os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd"))
    return sorted(os.readlink(name) for name in names if os.path.exists(name) and "/statm" in os.readlink(name))

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
"""


def in_a_process_of_its_own(code):
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", DESCRIPTORS + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_of_many_open_blocks_one_descriptor_is_open_and_none_afterwards():
    assert in_a_process_of_its_own("""
import resource
p = gpumemprof.CPUMemoryProfiler()
highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10  # of the program before exec, where that had more
passed = bytearray(b"x") * (highest - resident() + (32 << 20))
blocks = [p.profile_context("block") for _ in range(50)]
for block in blocks:
    block.__enter__()
print(len(kernels_files()))
for block in blocks:
    block.__exit__(None, None, None)
print(len(kernels_files()))
""") == ["1", "0"]


def test_a_forked_child_within_a_block_reads_its_own_memory():
    assert in_a_process_of_its_own("""
p = gpumemprof.CPUMemoryProfiler()
with p.profile_context("outer"):
    child = os.fork()
    if child == 0:
        kept = bytearray(b"x") * (100 << 20)
        with p.profile_context("inner") as block:
            pass
        print(abs(block.result.snapshot_after.rss - resident()) < 8 << 20, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
""") == ["True"]


def test_a_program_that_closes_and_reuses_every_descriptor_keeps_its_file_and_gets_its_figures(tmp_path):
    path = tmp_path / "log"
    assert in_a_process_of_its_own(f"""
p = gpumemprof.CPUMemoryProfiler()
with p.profile_context("block") as block:
    os.closerange(3, 256)
    files = [open({str(path)!r}, "a") for _ in range(20)]
print(abs(block.result.snapshot_after.rss - resident()) < 8 << 20)
for file in files:
    file.write("line\\n")
    file.close()
""") == ["True"]
    assert path.read_text() == "line\n" * 20
