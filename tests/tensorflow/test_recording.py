"""Recorded TensorFlow programs: every allocation with its operation and line, equal to what TensorFlow itself says."""
import collections
import os
from pathlib import Path

import pytest

import harness
from tensorflow_helpers import (MADE_BY, environment, execute, is_installed, last_json, needs_tensorflow, of_tensorflow,
                                operation, record, unmatched_frees)

pytestmark = needs_tensorflow
FILLS = harness.PROGRAMS / "tf_fills.py"


def probe():
    named = os.environ.get("GPUMEMPROF_PROBE")
    return Path(named) if named else harness.ROOT / ".venv" / "lib" / "libgpumemprof_probe.so"


@pytest.fixture(scope="module", params=["preloaded", "attached"])
def fills(request, tmp_path_factory):
    """What the program said, the events, the folder, and whether it was attached."""
    where = tmp_path_factory.mktemp("fills")
    folder = where / "recording"
    if request.param == "preloaded":
        done = record(folder, [harness.PYTHON, FILLS])
    else:
        done = execute([harness.PYTHON, FILLS, folder], GPUMEMPROF_PROBE=str(probe()))
    return last_json(done), harness.events(folder), folder, request.param == "attached"


def rounded(size, to=256):
    return -(-size // to) * to


def blocks_of_fills(said, events):
    """By number of the tensor: TensorFlow numbers operations in the order in which the function makes them."""
    found = collections.defaultdict(list)
    for event in of_tensorflow(events):
        name = operation(event).rpartition("/")[2]
        is_fill = name == "Fill" or name.startswith("Fill_")
        if event["action"] == "alloc" and is_fill and event["size_bytes"] >= min(said["bytes"]):
            found[int(name[5:] or 0)].append(event)
    return found


def test_a_hundred_tensors_are_a_hundred_allocations(fills):
    said, events, _, _ = fills
    found = blocks_of_fills(said, events)
    assert {number: len(blocks) for number, blocks in found.items()} == dict.fromkeys(range(100), 1)
    for number, (block,) in found.items():
        assert block["requested_bytes"] == said["bytes"][number]
        # A pool gives a whole chunk where the rest would be too small for another.
        assert rounded(said["bytes"][number]) <= block["size_bytes"] < 2 * said["bytes"][number]
        assert block["size_bytes"] % 256 == 0


def test_each_of_them_has_the_line_inside_the_function(fills):
    said, events, _, _ = fills
    for blocks in blocks_of_fills(said, events).values():
        for event in blocks:
            frames = [f for f in harness.frames(event) if isinstance(f, harness.Frame)]
            assert any((f.file, f.line) == (str(FILLS), said["line"]) for f in frames), event["stack"]
            assert MADE_BY in event["stack"] or "fills" in {f.function for f in frames}, event["stack"]


def test_every_free_has_its_allocation_unless_it_is_older_than_the_recording(fills):
    _, events, folder, attached = fills
    assert unmatched_frees(of_tensorflow(events)) >= (5 if attached else 0)
    if attached:
        notes = harness.analysis(folder)["notes"]
        assert any("whose allocation was not recorded" in note for note in notes), notes
    else:
        assert unmatched_frees(of_tensorflow(events)) == 0
        assert unmatched_frees(of_tensorflow(events, regions=True)) == 0


def test_nothing_is_lost(fills):
    assert harness.analysis(fills[2])["lost"] == {"events": 0, "bytes": 0, "more_than_counted": False, "reasons": []}


def test_a_recorded_program_prints_what_it_prints_alone(tmp_path):
    alone = execute([harness.PYTHON, FILLS], GPUMEMPROF_PROBE=str(probe())).ok()
    recorded = harness.record(tmp_path / "recording", [harness.PYTHON, FILLS], env=environment(), timeout=300).ok()
    assert recorded.stdout == alone.stdout


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    where = tmp_path_factory.mktemp("profiled")
    program = [harness.PYTHON, harness.PROGRAMS / "tf_profiled.py"]
    done = record(where / "recording", program)
    events = of_tensorflow(harness.events(where / "recording"))
    pool = [e for e in events if e["layer"] == "allocator"]
    assert len({e["device"] for e in pool}) == 1
    return last_json(done), pool


def of_xplane(event):
    return event["address"], event["size_bytes"], event.get("requested_bytes", event["size_bytes"]), operation(event)


def window(said, pool):
    """Of TensorFlow's own list and of ours, what lies between the two tensors that mark it."""
    theirs = [tuple(row) for row in said["xplane"]]
    requested = [row[2] for row in said["xplane"]]
    theirs = theirs[requested.index(said["first"]):requested.index(said["last"]) + 1]
    ours = [of_xplane(e) for e in pool if e["action"] == "alloc"]
    end = len(ours) - ours[::-1].index(theirs[-1])
    return theirs, ours[ours.index(theirs[0]):end]


def test_addresses_rounded_and_requested_sizes_and_operations_are_those_of_tensorflows_own_profiler(profiled):
    theirs, ours = window(*profiled)
    assert len(theirs) > 10
    assert collections.Counter(ours) == collections.Counter(theirs)


def test_live_and_peak_bytes_are_those_of_get_memory_info(profiled):
    said, pool = profiled
    theirs, _ = window(said, pool)
    live, live_bytes, peak_bytes, after_last = {}, 0, 0, False
    for event in pool:
        if event["action"] == "alloc":
            if after_last:
                break
            live[event["address"]] = event["size_bytes"]
            live_bytes += event["size_bytes"]
            peak_bytes = max(peak_bytes, live_bytes)
            after_last = of_xplane(event) == theirs[-1]
        else:
            live_bytes -= live.pop(event["address"])
            if after_last and live_bytes == said["info"]["current"]:
                break
    assert {"current": live_bytes, "peak": peak_bytes} == said["info"]


@pytest.mark.skipif(not is_installed("torch"), reason="PyTorch is not installed beside TensorFlow")
def test_a_process_with_both_frameworks_shows_both(tmp_path):
    program = [harness.PYTHON, harness.PROGRAMS / "tf_and_torch.py"]
    done = record(tmp_path / "recording", program).ok()
    of_torch, of_tf = map(int, done.stdout.split())
    events = harness.events(tmp_path / "recording")
    sizes = {e["size_bytes"]: e["device"] for e in harness.allocs(events) if e["layer"] != "driver"}
    assert sizes[of_torch] == "cpu"
    assert sizes[of_tf].startswith("tensorflow:")
    frameworks = {d["device"]: d["framework"] for d in harness.analysis(tmp_path / "recording")["devices"]}
    assert frameworks["cpu"] == "pytorch" and frameworks[sizes[of_tf]] == "tensorflow"
    assert unmatched_frees(events) == 0
