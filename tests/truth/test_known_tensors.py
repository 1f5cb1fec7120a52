"""Known tensors in, the same tensors out: sizes, addresses, lines, and the exact peak with its holders."""
import collections

import pytest

import harness

PROGRAM = harness.PROGRAMS / "known.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("known") / "recording"
    (books,) = harness.record(folder, [harness.PYTHON, PROGRAM]).ok().printed()
    return books, harness.events(folder), harness.analysis(folder)


def test_every_allocation_and_free_is_there_in_order_with_size_address_and_line(recorded):
    books, events, _ = recorded
    expected = [("free", b["free"]) if "free" in b else ("alloc", b["address"], b["size"], b["line"]) for b in books["books"]]
    found = [("alloc", e["address"], e["size_bytes"], harness.frames(e)[0].line) if e["action"] == "alloc"
             else ("free", e["address"]) for e in events[: len(expected)]]
    assert found == expected


def test_every_stack_begins_in_the_function_and_ends_in_the_module(recorded):
    names = collections.Counter((f[0].function, f[-1].function) for e in harness.allocs(recorded[1]) for f in [harness.frames(e)])
    assert set(names) == {(f, "<module>") for f in ("first", "second", "third", "fourth")}
    assert {f.file for e in harness.allocs(recorded[1]) for f in harness.frames(e)} == {str(PROGRAM)}


def test_requested_sizes_are_known_on_the_cpu(recorded):
    assert all(e["requested_bytes"] == e["size_bytes"] for e in harness.allocs(recorded[1]))


def test_the_peak_is_exact_to_the_byte_and_the_event(recorded):
    books, events, analysis = recorded
    (device,) = analysis["devices"]
    naive = harness.NaivePeak(events)
    assert device["device"] == "cpu" and device["backend"] == "CPU"
    assert device["peak"]["requested_bytes"] == books["peak_bytes"] == naive.peak_bytes
    assert device["peak"]["basis"] == "requested"
    assert device["peak"]["event_index"] == naive.peak_index
    sizes = [b["size"] for b in books["books"] if "size" in b]
    assert events[device["peak"]["event_index"]]["size_bytes"] == sizes[books["peak_number"]]


def test_the_holders_at_the_peak_are_exact_and_name_the_line(recorded):
    books, _, analysis = recorded
    (device,) = analysis["devices"]
    found = collections.defaultdict(lambda: [0, 0])
    for holder in device["holders_at_peak"]:
        frame = harness.FRAME.match(holder["stack"][0])
        found[frame["line"]][0] += holder["bytes"]
        found[frame["line"]][1] += holder["count"]
    assert dict(found) == books["holders"]
    bytes_held = [h["bytes"] for h in device["holders_at_peak"]]
    assert bytes_held == sorted(bytes_held, reverse=True)


def test_counts_and_the_end_agree_with_the_events(recorded):
    books, events, analysis = recorded
    (device,) = analysis["devices"]
    count = collections.Counter(e["action"] for e in events)
    assert {k: v for k, v in device["events"].items() if v} == dict(count)
    assert count["alloc"] == sum("size" in b for b in books["books"])
    assert device["end"]["requested_bytes"] == harness.NaivePeak(events).end_bytes
    assert analysis["lost"]["events"] == 0 and analysis["lost"]["bytes"] == 0
