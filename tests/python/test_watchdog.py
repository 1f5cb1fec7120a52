"""MemoryWatchdog in both documented forms: at its own thresholds, on its own thread, with what it freed."""

import gc
import threading
import time

import pytest
from harness import PYTHON, record, until
from tracker_helpers import Scripted, one

from gpumemprof import MemoryTracker
from gpumemprof.tracker import MemoryWatchdog

MIB = 1 << 20


class Level(Scripted):
    """A device whose memory is a number that the test, or a cleanup, changes."""

    def __init__(self, allocated, total=1000, used=None):
        super().__init__(0)
        self.allocated, self.total, self.used, self.threads = allocated, total, used, set()

    def _read(self, missing):
        self.threads.add(threading.current_thread().name)
        return one(self.allocated, None, self.used, self.total)


def watched(level, **options):
    tracker = MemoryTracker(collector=level, sampling_interval=3600)
    tracker.start_tracking()
    options = {"check_interval": 0.005, **options}
    return tracker, MemoryWatchdog(tracker, **options)


def freeing(level, to):
    def cleanup():
        level.allocated = to

    return cleanup


def test_a_threshold_below_those_of_the_alerts_has_its_effect():
    level = Level(400)
    tracker, dog = watched(level, cleanup_threshold=0.5)
    dog.add_cleanup_callback(freeing(level, 100))
    time.sleep(0.05)
    assert dog.get_cleanup_stats()["cleanup_count"] == 0
    level.allocated = 500
    assert until(lambda: dog.get_cleanup_stats()["cleanup_count"])
    dog.stop()
    stats = dog.get_cleanup_stats()
    assert (stats["cleanup_count"], stats["aggressive_cleanup_count"]) == (1, 0)
    assert (stats["last_freed_bytes"], stats["total_freed_bytes"]) == (400, 400)
    (note,) = tracker.get_events("cleanup")
    assert note.metadata == {"aggressive": False, "before_bytes": 500, "after_bytes": 100, "freed_bytes": 400}


def test_the_device_filled_by_others_counts_too():
    level = Level(10, used=930)
    tracker, dog = watched(level)
    assert until(lambda: dog.get_cleanup_stats()["cleanup_count"])
    dog.stop()
    assert dog.get_cleanup_stats()["total_freed_bytes"] == 0


def test_the_aggressive_threshold_is_honoured_and_is_not_held_back_by_a_plain_cleanup():
    level = Level(920)
    tracker, dog = watched(level)
    assert until(lambda: dog.get_cleanup_stats()["cleanup_count"] == 1)
    assert dog.get_cleanup_stats()["aggressive_cleanup_count"] == 0
    level.allocated = 960
    assert until(lambda: dog.get_cleanup_stats()["aggressive_cleanup_count"] == 1)
    dog.stop()
    assert dog.get_cleanup_stats()["cleanup_count"] == 2


def test_cleanups_keep_their_distance():
    level = Level(990)
    tracker, dog = watched(level, min_cleanup_interval=3600)
    assert until(lambda: dog.get_cleanup_stats()["cleanup_count"])
    time.sleep(0.1)
    level.allocated = 920
    time.sleep(0.1)
    assert dog.get_cleanup_stats()["cleanup_count"] == 1
    dog.min_cleanup_interval = 0.0
    assert until(lambda: dog.get_cleanup_stats()["cleanup_count"] >= 5)
    dog.stop()


def test_cleanups_run_on_the_watchdogs_thread_and_never_delay_a_sample():
    level = Level(990)
    tracker = MemoryTracker(collector=level, sampling_interval=0.01)
    dog = MemoryWatchdog(tracker, check_interval=0.005)
    release, names = threading.Event(), []
    dog.add_cleanup_callback(lambda: (names.append(threading.current_thread().name), release.wait(20)))
    tracker.start_tracking()
    assert until(lambda: names)
    before = len(tracker.get_events("sample"))
    assert until(lambda: len(tracker.get_events("sample")) >= before + 10)
    release.set()
    dog.stop()
    tracker.stop_tracking()
    assert names == ["gpumemprof-watchdog"]


def test_a_callback_that_fails_is_counted_and_the_others_run():
    level = Level(990)
    tracker, dog = watched(level, auto_cleanup=False)
    dog.add_cleanup_callback(lambda: 1 / 0)
    dog.add_cleanup_callback(freeing(level, 90))
    assert dog.force_cleanup() == 900
    stats = dog.get_cleanup_stats()
    assert (stats["callback_errors"], stats["last_error"]) == (1, "ZeroDivisionError: division by zero")
    assert stats["auto_cleanup_enabled"] is False and not dog.is_running


def test_with_a_tracker_it_acts_only_while_that_tracks():
    level = Level(990)
    tracker, dog = watched(level, min_cleanup_interval=0)
    assert until(lambda: dog.get_cleanup_stats()["cleanup_count"])
    tracker.stop_tracking()
    time.sleep(0.05)
    count = dog.get_cleanup_stats()["cleanup_count"]
    time.sleep(0.05)
    assert dog.get_cleanup_stats()["cleanup_count"] == count
    dog.stop()


def test_an_aggressive_cleanup_collects_garbage_and_a_plain_one_does_not():
    class Node:
        pass

    gone = []
    node = Node()
    node.itself = node

    import weakref

    weakref.finalize(node, gone.append, True)
    gc.disable()
    try:
        del node
        tracker, dog = watched(Level(1), auto_cleanup=False)
        dog.force_cleanup()
        assert gone == []
        dog.force_cleanup(aggressive=True)
        assert gone == [True]
    finally:
        gc.enable()


def test_the_guides_form_cleans_up_in_mebibytes_of_this_process(monkeypatch):
    level = Level(5 * MIB, total=None)
    monkeypatch.setattr("gpumemprof._tracking.watchdog.build_device_memory_collector", lambda device: level)
    dog = MemoryWatchdog(max_memory_mb=8, cleanup_threshold_mb=6, check_interval=0.005)
    dog.add_cleanup_callback(freeing(level, 2 * MIB))
    dog.start()
    time.sleep(0.05)
    assert dog.get_cleanup_stats()["cleanup_count"] == 0
    level.allocated = 6 * MIB
    assert until(lambda: dog.get_cleanup_stats()["cleanup_count"] == 1)
    assert dog.get_cleanup_stats()["aggressive_cleanup_count"] == 0
    level.allocated = 8 * MIB
    assert until(lambda: dog.get_cleanup_stats()["aggressive_cleanup_count"] == 1)
    dog.stop()
    assert dog.get_cleanup_stats()["total_freed_bytes"] == 4 * MIB + 6 * MIB


def test_on_the_cpu_memory_that_is_no_tensor_counts(monkeypatch):
    level, resident = Level(1 * MIB, total=None), [5 * MIB]
    level.basis = "exact"
    monkeypatch.setattr(level, "name", lambda: "cpu")
    monkeypatch.setattr("gpumemprof._tracking.watchdog.resident_bytes", lambda: (resident[0], resident[0]))
    dog = MemoryWatchdog(max_memory_mb=8, cleanup_threshold_mb=6, check_interval=0.005, collector=level)
    dog.add_cleanup_callback(lambda: resident.__setitem__(0, 2 * MIB))
    with dog:
        time.sleep(0.05)
        assert dog.get_cleanup_stats()["cleanup_count"] == 0
        resident[0] = 6 * MIB
        assert until(lambda: dog.get_cleanup_stats()["cleanup_count"] == 1)
        assert dog.get_cleanup_stats()["aggressive_cleanup_count"] == 0
        resident[0] = 8 * MIB
        assert until(lambda: dog.get_cleanup_stats()["aggressive_cleanup_count"] == 1)
    assert dog.get_cleanup_stats()["total_freed_bytes"] == 4 * MIB + 6 * MIB


def test_what_a_cleanup_frees_of_real_tensors_is_exact_under_a_recording(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import gc, json, time, torch
from gpumemprof.tracker import MemoryWatchdog
gc.disable()
dog = MemoryWatchdog(max_memory_mb=60, cleanup_threshold_mb=40, check_interval=0.01, device="cpu")
class Loop: pass
cache = [torch.empty(16 << 20, dtype=torch.uint8)]
loop = Loop(); loop.itself = loop; loop.tensor = torch.empty(48 << 20, dtype=torch.uint8); del loop
dog.add_cleanup_callback(cache.clear)
with dog:
    deadline = time.monotonic() + 20
    while not dog.get_cleanup_stats()["cleanup_count"] and time.monotonic() < deadline:
        time.sleep(0.01)
stats = dog.get_cleanup_stats()
print(json.dumps([stats["cleanup_count"], stats["aggressive_cleanup_count"], stats["total_freed_bytes"]]))
""")
    done = record(tmp_path / "recording", [PYTHON, program], ["--quiet"]).ok()
    assert done.printed() == [[1, 1, 64 * MIB]]


@pytest.mark.parametrize(
    "options",
    [{"max_memory_mb": 10, "cleanup_threshold_mb": 20}, {"max_memory_mb": 0, "cleanup_threshold_mb": 0},
     {"cleanup_threshold": 0.9, "aggressive_cleanup_threshold": 0.5}, {"cleanup_threshold": 0},
     {"min_cleanup_interval": -1}, {"check_interval": -1.0}],
)  # fmt: skip
def test_thresholds_without_sense_are_errors(options):
    with pytest.raises(ValueError):
        MemoryWatchdog(device="cpu", **options)


def test_documented_keys_are_there_from_the_start():
    stats = MemoryWatchdog(device="cpu").get_cleanup_stats()
    assert stats["cleanup_count"] == 0 and stats["last_cleanup_time"] is None
    assert (stats["cleanup_threshold"], stats["aggressive_cleanup_threshold"]) == (0.9, 0.95)
    assert stats["auto_cleanup_enabled"] is True
