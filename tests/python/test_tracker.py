"""MemoryTracker with real threads, real processes and real tensors."""

import sys
import threading
import time

import pytest
from harness import PYTHON, execute, record
from tracker_helpers import Scripted, one, run_through, tracker_of

from gpumemprof import MemoryTracker, TrackingEvent, load_telemetry_events
from gpumemprof.device_collectors import AllocatorTotals, DeviceMemorySample
from gpumemprof.telemetry import unknown_fields

MIB = 1 << 20


def test_the_guides_example_runs_on_the_cpu():
    tracker = MemoryTracker(device="cpu", sampling_interval=0.01, enable_alerts=True)
    tracker.start_tracking()
    time.sleep(0.1)
    tracker.stop_tracking()
    results = tracker.get_statistics()
    assert results["peak_memory"] > 0 and results["samples"] > 2
    assert results["basis"] == "host" and results["current_memory_reserved"] is None


def test_samples_come_also_when_nothing_changes():
    tracker = MemoryTracker(collector=Scripted(500), sampling_interval=0.005)
    tracker.start_tracking()
    deadline = time.monotonic() + 10
    while len(tracker.get_events("sample")) < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    tracker.stop_tracking()
    assert len(tracker.get_events("sample")) >= 20
    assert {e.event_type for e in tracker.get_events()} == {"start", "sample", "stop"}


def test_the_pace_does_not_drift_and_late_samples_are_counted_not_bunched():
    class Slow(Scripted):
        def _read(self, missing):
            if self.taken == 5:
                time.sleep(0.26)
            return super()._read(missing)

    tracker = MemoryTracker(collector=Slow(1), sampling_interval=0.05)
    begin = time.monotonic()
    tracker.start_tracking()
    time.sleep(0.8)
    statistics = tracker.stop_tracking()
    places = int((time.monotonic() - begin) / 0.05) + 1  # of the schedule that have passed
    assert statistics["late_samples"] >= 4
    taken = len(tracker.get_events("sample")) - 1  # the last one is stop_tracking's own
    assert taken + statistics["late_samples"] <= places  # a place has a sample or is missed: nothing was made up for


def test_the_first_sample_is_the_baseline_and_no_allocation():
    tracker = tracker_of(5 << 30, total=100 << 30)
    run_through(tracker, 3)
    statistics = tracker.stop_tracking()
    assert tracker.get_events("allocation") == [] and tracker.get_alerts() == []
    assert statistics["total_allocations"] == 0 and statistics["peak_memory"] == 5 << 30


def test_rises_and_falls_between_samples_are_events_and_say_that_they_are_samples():
    tracker = tracker_of(100, 300, 250, 250, 400)
    run_through(tracker, 5)
    statistics = tracker.stop_tracking()
    others = [e for e in tracker.get_events() if e.event_type != "sample"]
    changes = [(e.event_type, e.memory_change) for e in others if e.memory_change]
    assert changes == [("allocation", 200), ("deallocation", -50), ("allocation", 150)]
    assert [e.memory_change for e in tracker.get_events("sample")] == [0, 200, -50, 0, 150, 0]
    assert (statistics["total_allocations"], statistics["total_allocation_bytes"]) == (2, 350)
    assert (statistics["total_deallocations"], statistics["total_deallocation_bytes"]) == (1, 50)
    assert statistics["average_allocation_size"] == 175
    assert (statistics["counts_basis"], statistics["peak_basis"]) == ("samples", "samples")


def test_the_allocators_own_counters_make_counts_and_peaks_exact():
    class Counting(Scripted):
        def totals(self):
            n = self.taken
            return AllocatorTotals(10 * n, 9 * n, 1000 * n, 900 * n)

        def peak_so_far_bytes(self):
            return 700 if self.taken < 3 else 900

    tracker = MemoryTracker(collector=Counting(100, 100, 100, 100), sampling_interval=3600)
    run_through(tracker, 4)
    statistics = tracker.get_statistics()
    assert (statistics["total_allocations"], statistics["total_deallocations"]) == (30, 27)
    assert (statistics["total_allocation_bytes"], statistics["total_deallocation_bytes"]) == (3000, 2700)
    # The mark rose from 700 to 900 while we looked on, so 900 was reached then; the 700 of before was not ours.
    assert (statistics["peak_memory"], statistics["peak_basis"]) == (900, "high-water mark")
    peaks = [(e.metadata or {}).get("interval_peak_bytes") for e in tracker.get_events("sample")]
    assert peaks == [None, None, 900, None]
    assert tracker.get_memory_timeline(3600)["peak_allocated"] == [900]


def test_exact_figures_under_a_recording(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import json, torch
from gpumemprof import MemoryTracker
tracker = MemoryTracker(device="cpu", sampling_interval=3600)
tracker.start_tracking()
for _ in range(5):
    torch.empty(64 << 20, dtype=torch.uint8)  # made and dropped between two samples
keep = torch.empty(1024, dtype=torch.uint8)
with tracker.phase("burst"):
    torch.empty(32 << 20, dtype=torch.uint8)
s = tracker.stop_tracking()
names = ["basis", "peak_basis", "counts_basis", "peak_memory", "total_allocations", "total_deallocations",
         "total_allocation_bytes", "total_deallocation_bytes", "last_memory_check"]
print(json.dumps([s[n] for n in names] + [tracker.get_session_summary()["phases"][0]["peak_bytes"]]))
""")
    done = record(tmp_path / "recording", [PYTHON, program], ["--quiet"]).ok()
    assert done.printed() == [[
        "exact", "exact", "exact", 64 * MIB, 7, 6, 352 * MIB + 1024, 352 * MIB, 1024, 32 * MIB + 1024,
    ]]  # fmt: skip


def test_a_probe_that_came_after_the_tracker_is_used(tmp_path):
    program = """
import json, torch, gpumemprof
tracker = gpumemprof.MemoryTracker(device="cpu", sampling_interval=3600)
before = tracker.collector.basis
gpumemprof.attach()
tracker.start_tracking()
torch.empty(1 << 20, dtype=torch.uint8)
s = tracker.stop_tracking()
print(json.dumps([before, s["basis"], s["total_allocations"], s["peak_memory"]]))
"""
    assert execute([sys.executable, "-c", program]).ok().printed() == [["host", "exact", 1, 1 << 20]]


def test_alerts_reach_callbacks_once_and_an_error_of_theirs_is_counted():
    tracker = tracker_of(500, 850, 860, 840, 970, 970)
    seen = []
    tracker.add_alert_callback(lambda alert: seen.append((alert.event_type, alert.context)))
    tracker.add_alert_callback(lambda alert: 1 / 0)
    run_through(tracker, 6)
    statistics = tracker.stop_tracking()
    assert seen == [("warning", "Memory usage at 85.0 % of 0.0 MiB"), ("critical", "Memory usage at 97.0 % of 0.0 MiB")]
    assert statistics["alert_count"] == 2 and statistics["callback_errors"] == 2
    assert [a.event_type for a in tracker.get_alerts()] == ["warning", "critical"]
    assert tracker.get_alerts(last_n=1)[0].memory_allocated == 970


def test_a_callback_that_was_removed_is_not_called():
    tracker = tracker_of(500, 990)
    seen = []
    tracker.add_alert_callback(seen.append)
    tracker.remove_alert_callback(seen.append)
    run_through(tracker, 2)
    assert seen == [] and len(tracker.get_alerts()) == 1


def test_without_alerts_there_are_none():
    tracker = tracker_of(990, enable_alerts=False)
    run_through(tracker, 2)
    assert tracker.get_alerts() == []


def test_a_callback_may_use_the_tracker_and_stop_it():
    tracker = MemoryTracker(collector=Scripted(1, 1, 990), sampling_interval=0.005)
    done = threading.Event()

    def stop(alert):
        tracker.get_statistics()
        tracker.stop_tracking()
        done.set()

    tracker.add_alert_callback(stop)
    tracker.start_tracking()
    assert done.wait(10)
    assert not tracker.is_tracking and tracker.get_events()[-1].event_type == "stop"


def test_alerts_survive_however_many_samples_come_after():
    tracker = tracker_of(990, 990, max_events=10)
    run_through(tracker, 50)
    assert len(tracker.events) == 10 and [a.event_type for a in tracker.get_alerts()] == ["critical"]
    assert tracker.get_statistics()["dropped_events"] == 52 - 10  # start, 50 samples, 1 alert


def test_thresholds_can_be_set_and_unknown_ones_are_errors():
    tracker = tracker_of(500)
    tracker.set_threshold("memory_warning_percent", 40)
    run_through(tracker, 1)
    assert [a.event_type for a in tracker.get_alerts()] == ["warning"]
    with pytest.raises(ValueError, match="Unknown threshold: nonsense"):
        tracker.set_threshold("nonsense", 1)
    with pytest.raises(TypeError, match="memory_warning_percent must be a number, not '80'"):
        tracker.set_threshold("memory_warning_percent", "80")
    with pytest.raises(ValueError, match="memory_warning_percent must be <= 100, not 250"):
        tracker.set_threshold("memory_warning_percent", 250)
    with pytest.raises(ValueError, match="fragmentation_threshold must be <= 1, not 30"):
        tracker.set_threshold("fragmentation_threshold", 30)
    assert tracker.thresholds["memory_warning_percent"] == 40


def test_above_the_critical_percentage_an_alert_is_critical_whatever_the_warning_s_is():
    tracker = tracker_of(500)  # of 1000
    tracker.set_threshold("memory_warning_percent", 40)
    tracker.set_threshold("memory_critical_percent", 10)
    run_through(tracker, 1)
    assert [a.event_type for a in tracker.get_alerts()] == ["critical"]


def test_a_device_that_fails_is_said_once_and_tracking_goes_on():
    lost = DeviceMemorySample(None, None, None, None, None, None, None, 0)
    tracker = tracker_of(100, lost, lost, 100)
    run_through(tracker, 4)
    kinds = [e.event_type for e in tracker.get_events()]
    assert kinds == ["start", "sample", "collector_degraded", "collector_recovered", "sample"]
    assert tracker.get_statistics()["sample_errors"] == 2
    assert tracker.get_events("collector_degraded")[0].metadata == {"error": "RuntimeError: device lost"}


def test_events_can_be_asked_for_by_type_number_and_time():
    tracker = tracker_of(1, 2, 3)
    run_through(tracker, 3)
    samples = tracker.get_events("sample")
    assert [e.memory_allocated for e in samples] == [1, 2, 3]
    assert tracker.get_events("sample", last_n=2) == samples[1:] and tracker.get_events(last_n=0) == []
    assert tracker.get_events("sample", since=samples[2].timestamp)[-1] == samples[2]


def test_a_timeline_has_the_last_sample_of_every_interval():
    tracker = tracker_of(1)
    for n in range(100):
        tracker.events.append(TrackingEvent(1000 + n / 10, "sample", n, None, 0, 0))
    tracker.events.append(TrackingEvent(1500.0, "sample", 7, None, 0, 0))
    timeline = tracker.get_memory_timeline(interval=2.0)
    assert timeline["allocated"] == [19, 39, 59, 79, 99, 7]
    assert timeline["timestamps"][-1] == 1500.0 and timeline["reserved"] == [None] * 6
    with pytest.raises(ValueError, match="interval must be > 0"):
        tracker.get_memory_timeline(0)


def test_the_forecast_is_of_what_counts_against_the_limit():
    tracker = tracker_of(1)
    for n in range(20):
        tracker._series.append((float(n), 100 + 10 * n))
    tracker._last = one(290, total=1000)
    assert tracker.forecast().seconds_to_limit == pytest.approx(71)


def test_growth_of_ones_own_is_not_hidden_by_what_others_give_back():
    tracker = tracker_of(1)
    for n in range(20):
        tracker._series.append((float(n), 800 - 10 * n))
        tracker._own_series.append((float(n), 10 * n))
    tracker._last = one(190, total=1000)
    found = tracker.forecast()
    assert found.growth_bytes_per_s == pytest.approx(10) and found.limit_bytes == 1000
    assert found.seconds_to_limit == pytest.approx((1000 - 420 - 190) / 10)  # others have 610 - 190


@pytest.mark.parametrize("extension", ["json", "jsonl", "csv", "txt"])
def test_exports_are_what_was_seen(tmp_path, extension):
    tracker = tracker_of(one(100, 300, 400), one(200, None, None), job_id="j", rank=1, local_rank=0, world_size=2)
    run_through(tracker, 2)
    path = tmp_path / f"events.{extension}"
    tracker.export_events(path)
    read = load_telemetry_events(path)
    assert [e.event_type for e in read] == [e.event_type for e in tracker.get_events()]
    last = [e for e in read if e.event_type == "sample"][-1]
    assert (last.allocator_allocated_bytes, last.allocator_change_bytes, last.rank, last.job_id) == (200, 100, 1, "j")
    assert set(unknown_fields(last)) == {"allocator_reserved_bytes", "device_used_bytes"}
    assert read[1].device_used_bytes == 400 and read[1].metadata["session_id"] == tracker.session_id
    assert abs(last.timestamp_ns / 1e9 - tracker.get_events("sample")[-1].timestamp) < 1e-6


@pytest.mark.parametrize("format", ["json", "csv", "jsonl"])
def test_without_events_the_export_is_a_valid_file_all_the_same(tmp_path, format):
    tracker_of(1).export_events(tmp_path / "none", format=format)
    assert load_telemetry_events(tmp_path / "none") == []
    with pytest.raises(ValueError, match="Unsupported format"):
        tracker_of(1).export_events(tmp_path / "none", format="excel")


def test_phases_have_their_own_change_and_peak_also_when_they_overlap():
    tracker = tracker_of(100, 200, 900, 300, 250)
    tracker.collector.taken = -1
    tracker.start_tracking()  # 100
    outer = tracker.enter_phase("outer", {"step": 1})  # 200
    inner = tracker.enter_phase("inner")  # 900
    outer.exit()  # 300
    inner.exit()  # 250
    inner.exit()
    phases = {p["phase"]: p for p in tracker.get_session_summary()["phases"]}
    assert (phases["outer"]["change_bytes"], phases["outer"]["peak_bytes"], phases["outer"]["step"]) == (100, 900, 1)
    assert (phases["inner"]["change_bytes"], phases["inner"]["peak_bytes"]) == (-650, 900)
    assert [e.context for e in tracker.get_events("sample")] == [None, None, "outer", "inner", "inner"]
    assert len(tracker.get_events("phase_exit")) == 2


def test_many_threads_may_use_a_tracker_while_it_samples():
    tracker = MemoryTracker(collector=Scripted(*range(0, 900, 7)), sampling_interval=0.001, max_events=500)
    errors = []
    stop = threading.Event()

    def use(call):
        try:
            while not stop.is_set():
                call()
        except Exception as error:
            errors.append(error)

    calls = [
        tracker.get_events, tracker.get_statistics, tracker.get_memory_timeline, tracker.get_alerts, tracker.clear_events,
        lambda: tracker.enter_phase("p").exit(), lambda: tracker.set_threshold("memory_warning_percent", 50),
    ]  # fmt: skip
    with tracker:
        threads = [threading.Thread(target=use, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        stop.set()
        for thread in threads:
            thread.join(20)
    assert errors == [] and not any(thread.is_alive() for thread in threads)
    assert tracker.get_statistics()["callback_errors"] == 0 and tracker._thread.failed_ticks == 0


def test_starting_and_stopping_twice_does_no_harm():
    tracker = tracker_of(1)
    tracker.stop_tracking()
    tracker.start_tracking()
    tracker.start_tracking()
    assert tracker.is_tracking
    tracker.stop_tracking()
    tracker.stop_tracking()
    assert [e.event_type for e in tracker.get_events()].count("stop") == 1


def test_a_tracker_that_is_forgotten_ends_its_thread():
    tracker = MemoryTracker(collector=Scripted(1), sampling_interval=3600)
    tracker.start_tracking()
    thread = tracker._thread._thread
    assert thread.is_alive()
    del tracker
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"sampling_interval": 0}, "sampling_interval must be > 0"),
     ({"sampling_interval": float("nan")}, "sampling_interval"),
     ({"max_events": 0}, "max_events must be >= 1"), ({"oom_max_dumps": 0}, "max_dumps must be >= 1"),
     ({"rank": 3}, "rank 3 must be < world_size 1")],
)  # fmt: skip
def test_arguments_without_sense_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        MemoryTracker(device="cpu", **options)
