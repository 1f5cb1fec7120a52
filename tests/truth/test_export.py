"""What `export --to jsonl` promises, and that memory is counted once, however many have heard of it."""
import collections
import json

import pytest

import harness

ALWAYS = {"time_ns", "action", "device", "layer", "thread", "process"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memories") / "recording"
    done = harness.record(folder, [harness.PYTHON, harness.PROGRAMS / "memories.py"]).ok()
    assert done.stdout == b"RuntimeError\n"
    return folder


def test_one_json_object_a_line_and_nothing_else(folder):
    done = harness.execute([harness.COMMAND, "export", folder, "--to", "jsonl"]).ok()
    lines = done.stdout.split(b"\n")
    assert lines.pop() == b""
    for line in lines:
        event = json.loads(line)
        assert ALWAYS <= set(event) and None not in event.values(), event
        assert event["action"] in ("alloc", "free_requested", "free_completed", "oom")
        assert isinstance(event["time_ns"], int) and isinstance(event.get("size_bytes", 0), int)
        assert all(isinstance(frame, str) for frame in event.get("stack", []))


def test_events_are_in_time_order_and_every_free_has_its_allocation(folder):
    events = harness.events(folder)
    times = [e["time_ns"] for e in events]
    assert times == sorted(times)
    for device in {e["device"] for e in events}:
        naive = harness.NaivePeak([e for e in events if e["device"] == device])
        assert (naive.unmatched, naive.repeated) == (0, 0), device


def test_the_sums_of_the_analysis_are_those_of_the_events(folder):
    events, analysis = harness.events(folder), harness.analysis(folder)
    assert {d["device"] for d in analysis["devices"]} == {e["device"] for e in events}
    for device in analysis["devices"]:
        own = [e for e in events if e["device"] == device["device"]]
        naive = harness.NaivePeak(own)
        assert {k: v for k, v in device["events"].items() if v} == collections.Counter(e["action"] for e in own)
        assert device["peak"]["requested_bytes"] == naive.peak_bytes
        assert device["end"]["requested_bytes"] == naive.end_bytes
        assert events[device["peak"]["event_index"]] == own[naive.peak_index]
        held = collections.Counter()
        for block in naive.peak_live:
            held[tuple(block.get("stack", []))] += block["size_bytes"]
        assert {tuple(h["stack"]): h["bytes"] for h in device["holders_at_peak"]} == held


@pytest.mark.parametrize("size, devices", [
    (1_000_001, ["cpu"]), (1_000_003, ["cpu", "shared memory"]), (1_000_005, ["shared memory"]), (1_000_007, ["cpu"]),
    (1_000_009, ["cpu", "shared memory"]), (1_000_011, ["cpu"]), (1_000_013, ["cpu"]), (1_000_015, ["cpu"]), (1_000_017, ["cpu"])])
def test_memory_is_counted_once_on_its_own_device(folder, size, devices):
    assert sorted(e["device"] for e in harness.by_size(harness.events(folder))[size]) == devices


def test_what_was_refused_is_not_live(folder):
    events = harness.events(folder)
    assert all(e["size_bytes"] < 1 << 50 for e in harness.allocs(events))
    refused = [e for e in events if e["action"] == "oom"]
    assert [e["size_bytes"] for e in refused] in ([], [1 << 50])


def test_csv_has_the_same_events(folder):
    import csv
    import io
    done = harness.execute([harness.COMMAND, "export", folder, "--to", "csv"]).ok()
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode(), newline="")))
    events = harness.events(folder)
    assert [(r["action"], int(r["time_ns"]), int(r["size_bytes"] or 0)) for r in rows] == [
        (e["action"], e["time_ns"], e.get("size_bytes", 0)) for e in events]
