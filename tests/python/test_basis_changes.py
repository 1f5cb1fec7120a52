"""A profiler that was there before exact counting began: two kinds of memory are never mixed, and the words say so."""

import sys
import threading

from exactly import run
from tracker_helpers import Scripted

from gpumemprof import GPUMemoryProfiler, MemoryTracker, TrackingEvent

MIB = 2**20


def test_a_profiler_older_than_attach_begins_anew_and_says_so(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        with profiler.profile_context("before"):
            held = bytearray(300 * MIB)    # resident: far above any tensor below
        gpumemprof.attach()
        profiler.profile_function(tensor, 2 * MIB)
        s = profiler.get_summary()
        show(baseline=s["baseline_memory_usage"], peak=s["peak_memory_usage"], exact=s["peak_is_exact"],
             basis=s["basis"], reason=s["basis_reason"].split("; ")[-1])
        """,
        tmp_path,
        "plain",
    )
    assert seen == {
        "baseline": 0, "peak": 2 * MIB, "exact": False, "basis": "exact",
        "reason": "the basis changed from host to exact, so baseline and peak cover the time since then, and sums "
                  "both times",
    }  # fmt: skip


def test_clear_results_after_the_change_is_a_clean_exact_start(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        gpumemprof.attach()
        profiler.clear_results()
        tensor(3 * MIB)
        s = profiler.get_summary()
        show(peak=s["peak_memory_usage"], exact=s["peak_is_exact"], changed="changed" in s["basis_reason"])
        """,
        tmp_path,
        "plain",
    )
    assert seen == {"peak": 3 * MIB, "exact": True, "changed": False}


def test_attaching_again_keeps_baseline_and_highest_mark(tmp_path):
    seen = run(
        """
        from gpumemprof import counters
        held = tensor(MIB)
        profiler = GPUMemoryProfiler()
        generation = counters.generation
        tensor(50 * MIB)
        gpumemprof.attach()
        held = tensor(3 * MIB)
        s = profiler.get_summary()
        show(baseline=s["baseline_memory_usage"], rise=s["peak_memory_usage"] - s["baseline_memory_usage"],
             exact=s["peak_is_exact"], same=counters.generation == generation,
             since="of blocks allocated since counting began" in s["basis_reason"])
        """,
        tmp_path,
    )
    assert seen["rise"] == 50 * MIB and seen["exact"] and seen["same"] and seen["since"]


def test_a_forked_child_has_a_baseline_of_its_own_and_says_since_when_it_counts(tmp_path):
    seen = run(
        """
        import os
        profiler = GPUMemoryProfiler()
        held = tensor(5 * MIB)
        read, write = os.pipe()
        if os.fork() == 0:
            tensor(MIB)
            profiler.profile_function(tensor, 2 * MIB)
            s = profiler.get_summary()
            rest = ["restarted in this forked child" in s["basis_reason"], "the process forked" in s["basis_reason"]]
            os.write(write, json.dumps([s["baseline_memory_usage"], s["peak_memory_usage"], *rest]).encode())
            os._exit(0)
        os.wait()
        show(child=json.loads(os.read(read, 1000)), parent=profiler.get_summary()["peak_is_exact"])
        """,
        tmp_path,
    )
    assert seen == {"child": [0, 2 * MIB, True, True], "parent": True}


def test_growth_of_resident_memory_is_said_to_be_a_lower_bound():
    result = GPUMemoryProfiler(device="cpu").profile_function(sum, [1])
    assert result.basis == "host"
    assert "allocated and freed are its net growth, not what was allocated" in result.basis_reason


def test_a_cleanup_on_the_cpu_is_measured_in_resident_memory_where_tensors_are_counted(tmp_path):
    seen = run(
        """
        from gpumemprof.watchdog import MemoryWatchdog
        dog = MemoryWatchdog(max_memory_mb=1e6, cleanup_threshold_mb=1e6, device="cpu", auto_cleanup=False)
        kept = [bytearray(b"x" * (100 * MIB))]
        dog.add_cleanup_callback(kept.clear)
        show(freed=dog.force_cleanup(), basis=dog._collector.basis)
        """,
        tmp_path,
    )
    assert seen["basis"] == "exact" and 99 * MIB <= seen["freed"] < 200 * MIB


def test_events_may_be_walked_over_while_more_of_them_come():
    tracker = MemoryTracker(collector=Scripted(1), sampling_interval=3600, max_events=50)
    event = TrackingEvent(1.0, "sample", 1, None, 0, 0)
    for _ in range(50):
        tracker.events.append(event)
    seen = 0
    for _ in tracker.events:
        tracker.events.append(event)
        seen += 1
    assert seen == 50 == len(tracker.events)
    assert list(reversed(tracker.events)) == list(tracker.events) == [event] * 50

    stop = threading.Event()

    def add():
        while not stop.is_set():
            tracker.events.append(event)

    thread, interval = threading.Thread(target=add), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        assert all(len([e.timestamp for e in tracker.events]) == 50 for _ in range(2000))
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
