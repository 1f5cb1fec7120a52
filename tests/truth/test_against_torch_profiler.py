"""The same run as torch.profiler saw it: every allocation, every free, and the peak."""
import collections
import json

import pytest

import harness
import nested

BEGIN_BYTES, END_BYTES = 1_234_567, 1_234_569  # the markers of transformer_profiled.py


def profiler_events(path):
    """(address, signed bytes, total after it) of every CPU [memory] event, in order."""
    trace = json.loads(path.read_text())["traceEvents"]
    memory = [e for e in trace if e.get("name") == "[memory]" and e["args"]["Device Type"] == 0]
    memory.sort(key=lambda e: e["ts"])
    return [(e["args"]["Addr"], e["args"]["Bytes"], e["args"]["Total Allocated"]) for e in memory]


def window(items, size_of):
    """From the allocation of the first marker to that of the last, both included."""
    sizes = [size_of(i) for i in items]
    return sizes.index(BEGIN_BYTES), sizes.index(END_BYTES) + 1


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transformer")
    nested.record(folder / "recording", [harness.PYTHON, harness.PROGRAMS / "transformer_profiled.py", folder / "trace.json"]).ok()
    return harness.events(folder / "recording"), harness.analysis(folder / "recording"), profiler_events(folder / "trace.json")


def signed(all_events):
    """Our events as the profiler writes them: the bytes of a free are those of its allocation."""
    live, result = {}, []
    for e in all_events:
        if e["action"] == "alloc":
            live[e["address"]] = e["size_bytes"]
            result.append((e["address"], e["size_bytes"]))
        else:
            result.append((e["address"], -live.pop(e["address"], 0)))
    return result


def test_the_same_allocations_and_frees(both):
    events, _, profiled = both
    ours = signed(events)
    a, b = window(ours, lambda i: i[1])
    c, d = window(profiled, lambda i: i[1])
    assert d - c > 3_000, "too few events to prove anything"
    assert collections.Counter(ours[a:b]) == collections.Counter(i[:2] for i in profiled[c:d])
    assert [i[1] for i in ours[a:b] if i[1] > 0] == [size for _, size, _ in profiled[c:d] if size > 0]


def test_the_peak_is_the_one_that_the_profiler_counted(both):
    events, analysis, profiled = both
    ours = signed(events)
    a, b = window(ours, lambda i: i[1])
    c, d = window(profiled, lambda i: i[1])
    (device,) = [x for x in analysis["devices"] if x["device"] == "cpu"]
    assert a == 0 and c == 0, "something was allocated before the profiler began"
    assert a <= device["peak"]["event_index"] < b
    assert device["peak"]["requested_bytes"] == max(total for _, _, total in profiled[c:d])
    assert device["peak"]["requested_bytes"] == harness.NaivePeak(events).peak_bytes


def test_the_profiler_being_on_adds_no_event(both):
    naive = harness.NaivePeak([e for e in both[0] if e["device"] == "cpu"])
    assert naive.repeated == 0 and naive.unmatched == 0
