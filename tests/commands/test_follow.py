"""A recording is followed while it grows and while its parts are sealed away: the counters stay exact."""
import json
import subprocess
import time

import harness
from programs_for_commands import recorded_pid

# More than the 8 MiB of events after which `run` seals, in two halves, with blocks of other threads' freed here.
CHURN = """
import sys, threading, torch
kept = []
def make(count):
    for i in range(count):
        x = torch.empty(1000, dtype=torch.uint8)
        if i % 1000 == 0:
            kept.append(torch.empty(4096, dtype=torch.uint8))
torch.empty(1, dtype=torch.uint8)
print("begun", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=make, args=(60_000,)) for _ in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
del kept[:40]
print("done", flush=True)
sys.stdin.readline()
"""
ALLOCATIONS = 1 + 4 * (60_000 + 60)
LIVE_BYTES = (4 * 60 - 40) * 4096


def last_counts(path, number):
    """What the last samples counted, of those that are wholly written; all different where there are fewer."""
    lines = path.read_text().split("\n")[:-1][-number:]
    counts = [json.loads(line)["metadata"].get("alloc_count") for line in lines]
    return counts if len(counts) == number else [*range(number)]


def test_counters_are_exact_through_sealing(tmp_path):
    argv = harness.run_argv(tmp_path / "r", [harness.PYTHON, "-c", CHURN], ["--quiet"])
    path = tmp_path / "t.jsonl"
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "begun\n"
        pid = recorded_pid(tmp_path / "r")
        tracker = subprocess.Popen([harness.COMMAND, "track", "--pid", str(pid), "--interval", "0.02", "--output", path],
                                   stdout=subprocess.DEVNULL)
        while not path.exists() or path.read_text().count("\n") < 3:
            time.sleep(0.01)
        program.stdin.write("go\n"), program.stdin.flush()
        assert program.stdout.readline() == "done\n"
        time.sleep(2)  # a sealing or two more
        # And looks after it: on a busy machine the tracker comes late.
        harness.until(lambda: len(set(last_counts(path, 20))) == 1, seconds=60)
        tracker.terminate()
        assert tracker.wait(30) == 0
        program.communicate("\n", timeout=60)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    samples = [e for e in events if e["event_type"] == "sample" and e["metadata"]["basis"] != "process_rss"]
    counts = [s["metadata"]["alloc_count"] for s in samples]
    assert counts == sorted(counts) and len(set(counts)) > 3, "followed while it grew"
    last = samples[-1]
    assert last["metadata"]["basis"] == "exact"
    assert last["metadata"]["alloc_count"] == ALLOCATIONS
    assert last["metadata"]["free_count"] == ALLOCATIONS - 4 * 60 + 40
    assert last["allocator_allocated_bytes"] == LIVE_BYTES
    assert {s["metadata"]["basis"] for s in samples} == {"exact"}
