"""Bugs that only a caching allocator shows, named from traces that PyTorch's own allocator recorded of itself.

The figures are that allocator's: what it reserved under the recorded settings and under expandable segments, and what
of its segments no event of the trace touched.
"""

import bisect
import json
import pickle
from pathlib import Path

import harness
import pytest

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "cache"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())


def findings(name):
    analysis = harness.analysis(FIXTURES / name)
    return [f for f in analysis["findings"] if f.get("name")]


def lowest_idle_bytes(events, first_event):
    """The least that whole free segments add up to, after any event from `first_event` on, by recorded addresses."""
    starts, sizes, live, of = [], {}, {}, {}
    lowest = None
    for index, event in enumerate(events):
        if event["action"] == "segment_alloc":
            bisect.insort(starts, event["addr"])
            sizes[event["addr"]] = event["size"]
            live[event["addr"]] = 0
        elif event["action"] == "alloc":
            segment = starts[bisect.bisect_right(starts, event["addr"]) - 1]
            of[event["addr"]] = segment
            live[segment] += 1
        elif event["action"] == "free_completed":
            live[of.pop(event["addr"])] -= 1
        is_in_between = event["action"] in ("segment_alloc", "free_requested")  # half of an allocation or of a free
        if index >= first_event and not is_in_between:
            idle = sum(size for start, size in sizes.items() if not live[start])
            lowest = idle if lowest is None else min(lowest, idle)
    return lowest


@pytest.mark.parametrize("name", EXPECTED)
def test_the_bug_is_named_and_what_only_looks_like_one_is_not(name):
    found = findings(name)
    assert [f["name"] for f in found] == ([EXPECTED[name]["name"]] if EXPECTED[name]["name"] else [])


@pytest.mark.parametrize("name", [n for n, e in EXPECTED.items() if e["name"] == "variable_shapes"])
def test_the_bytes_at_stake_are_what_expandable_segments_save_in_the_real_allocator(name):
    (finding,) = findings(name)
    expected = EXPECTED[name]
    assert finding["evidence"]["peak_reserved_bytes"] == expected["peak_reserved_bytes"]
    assert finding["evidence"]["expandable_peak_reserved_bytes"] == expected["expandable_peak_reserved_bytes"]
    assert finding["bytes"] == expected["peak_reserved_bytes"] - expected["expandable_peak_reserved_bytes"]
    assert finding["stack"][0] == {"variable_lengths.pickle": "train.py:3 scores",
                                   "growing_cache.pickle": "train.py:4 concatenate"}[name]  # fmt: skip


@pytest.mark.parametrize("name", [n for n, e in EXPECTED.items() if e["name"] == "cache_not_returned"])
def test_idle_segments_are_those_that_no_event_touches(name):
    (finding,) = findings(name)
    events = pickle.loads((FIXTURES / name).read_bytes())["device_traces"][0]  # our own file
    evidence = finding["evidence"]
    assert finding["bytes"] == evidence["idle_bytes"] == lowest_idle_bytes(events, evidence["first_event"])
    asked = [e["size"] for e in events[evidence["first_event"]:] if e["action"] == "alloc"]
    assert (evidence["alloc_events"], evidence["allocated_bytes"]) == (len(asked), sum(asked))
