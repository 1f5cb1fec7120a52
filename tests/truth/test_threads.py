"""Threads come and go: every event is there, named by its thread, and buffers are used again."""
import collections

import pytest

import harness

PROGRAM = harness.PROGRAMS / "threads.py"


def run_threads(tmp_path, light, total, alive, each):
    folder = tmp_path / "recording"
    done = harness.record(folder, [harness.PYTHON, PROGRAM, total, alive, each, folder], env=light.env).ok()
    events = [e for e in harness.events(folder) if e["action"] != "alloc" or e["size_bytes"] >= 10_000]
    return int(done.stdout), events


@pytest.mark.parametrize("total, alive, each", [(64, 64, 200), (1000, 8, 10), (3, 1, 20_000)])
def test_every_event_of_every_thread_is_there_and_the_file_stays_small(tmp_path, light, total, alive, each):
    largest, events = run_threads(tmp_path, light, total, alive, each)
    sizes = collections.Counter(e["size_bytes"] for e in harness.allocs(events))
    assert sizes == dict.fromkeys(range(10_000, 10_000 + total * each), 1)

    by_thread = collections.defaultdict(list)
    for e in harness.allocs(events):
        by_thread[e["thread"]].append(e)
        assert [f.function for f in harness.frames(e)][0] == "work"
    assert len(by_thread) <= total
    if total == alive:
        assert len(by_thread) == total, "all were alive at once, so every one has a number of its own"
    for own in by_thread.values():  # a thread's own events are in its own order
        numbers = {(e["size_bytes"] - 10_000) // each for e in own}
        assert len(own) == len(numbers) * each
        times = [e["time_ns"] for e in own]
        assert times == sorted(times)

    freed = collections.Counter(e["address"] for e in events if e["action"] == "free_completed")
    assert sum(freed.values()) >= total * (each // 2)
    # At most 1 MiB a live thread, and 24 bytes an event and its turn of a buffer for what is written.
    assert 0 < largest <= (alive + 1) * 2**20 + 3 * total * each * 64
