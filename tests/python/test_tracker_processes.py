"""Programs with a tracker: how they end, what signals leave behind, and their forked children."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from harness import execute

from gpumemprof import load_telemetry_events

# Whoever starts the tests in the background has SIGINT ignored, which programs inherit.
STREAMING = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from gpumemprof import MemoryTracker
tracker = MemoryTracker(device="cpu", sampling_interval=0.002, output=sys.argv[1])
tracker.start_tracking()
print("tracking", flush=True)
"""


def test_a_program_that_never_stops_its_tracker_ends_cleanly_with_a_whole_file(tmp_path):
    path = tmp_path / "e.json"
    done = execute([sys.executable, "-c", STREAMING + "time.sleep(0.2)", path]).ok()
    assert done.stderr == b""
    events = load_telemetry_events(path)
    assert (events[0].event_type, events[-1].event_type) == ("start", "stop") and len(json.loads(path.read_bytes())) > 5


def killed_at_random(tmp_path, extension, number, seed, after=""):
    """The file that a tracking program leaves when a signal comes at a random moment, and how the program ended."""
    path = tmp_path / f"e{seed}.{extension}"
    with subprocess.Popen(
        [sys.executable, "-c", STREAMING + after + "\nwhile True: tracker.enter_phase('p').exit()", path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == b"tracking\n"
        time.sleep(random.Random(seed).uniform(0, 0.15))
        process.send_signal(number)
        try:
            process.communicate(timeout=30)
        finally:
            process.kill()
    return path, process.returncode


@pytest.mark.parametrize("extension", ["json", "jsonl", "csv"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("seed", [1, 2, pytest.param(range(3, 53), marks=pytest.mark.slow)], ids=["1", "2", "50 more"])
def test_a_signal_at_any_moment_leaves_a_whole_file(tmp_path, recwarn, extension, number, seed):
    torn = 0
    for each in [seed] if isinstance(seed, int) else seed:
        path, code = killed_at_random(tmp_path, extension, number, each)
        assert code == (1 if number == signal.SIGINT else -number) or (code, number) == (-2, signal.SIGINT)
        recwarn.clear()
        events = load_telemetry_events(path)
        assert len(events) >= 2 and events[0].event_type == "start"
        # The kernel may cut a write where it crosses a page: then all before it is read, and the loss is said.
        cut = [w for w in recwarn if "cut short" in str(w.message)]
        torn += len(cut)
        assert cut or extension != "json" or len(json.loads(path.read_bytes())) == len(events)
        assert not cut or path.stat().st_size % 4096 == 0
    assert torn <= 2


def test_a_handler_that_stops_the_tracker_leaves_a_whole_file(tmp_path):
    handler = """
signal.signal(signal.SIGTERM, lambda *_: (tracker.stop_tracking(), os._exit(7)))
"""
    for seed in range(5):
        path, code = killed_at_random(tmp_path, "json", signal.SIGTERM, 100 + seed, handler)
        assert code == 7
        kinds = [e.event_type for e in load_telemetry_events(path)]
        # Where the signal came in the middle of a write, os._exit keeps that write from taking the stop along.
        assert kinds[0] == "start" and kinds.count("stop") <= 1


def test_a_forked_child_is_not_tracking_and_may_begin_anew():
    program = STREAMING + """
import threading
child = os.fork()
if child == 0:
    threads = [t.name for t in threading.enumerate()]
    before = tracker.is_tracking
    tracker.get_statistics()
    tracker.start_tracking(); time.sleep(0.05); n = tracker.stop_tracking()["samples"]
    print(["child", before, threads, n > 1], flush=True)
    sys.exit(0)
os.waitpid(child, 0)
print(["parent", tracker.is_tracking], flush=True)
"""
    done = execute([sys.executable, "-c", program, os.devnull]).ok()
    assert done.stdout.decode().splitlines()[1:] == ["['child', False, ['MainThread'], True]", "['parent', True]"]


def test_forking_at_any_moment_never_hangs(tmp_path):
    program = STREAMING + """
for _ in range(60):
    child = os.fork()
    if child == 0:
        tracker.get_statistics(); tracker.start_tracking(); tracker.stop_tracking()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
tracker.stop_tracking()
"""
    path = tmp_path / "e.jsonl"
    execute([sys.executable, "-c", program, path], timeout=60).ok()
    events = load_telemetry_events(path)
    assert len({e.pid for e in events}) == 1 and events[-1].event_type == "stop"
