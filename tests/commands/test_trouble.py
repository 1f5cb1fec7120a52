"""Troubles of a caching allocator, named from traces that PyTorch's own allocator recorded of itself.

The figures are that allocator's: what it reserved for these calls, and what for the calls changed as the finding proposes.
"""

import json
import pickle
from pathlib import Path

import harness
import pytest

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "trouble"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
OF_KIND = {row["kind"]: name for name, row in EXPECTED.items() if row["kind"]}
SNAPSHOTS = harness.ROOT.parent / "shared" / "snapshots"
MIB = 1 << 20
KINDS = {*OF_KIND, "pinned_rounding", "pinned_cache_growth", "nccl_communicators", "double_weights_in_phase"}


def troubles(path):
    return [f for f in harness.analysis(path)["findings"] if f["kind"] in KINDS]


def the_one(kind):
    name = OF_KIND[kind]
    (finding,) = troubles(FIXTURES / name)
    assert finding["kind"] == kind
    return finding, EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_trouble_is_named_and_what_only_looks_like_one_is_not(name):
    assert [f["kind"] for f in troubles(FIXTURES / name)] == ([EXPECTED[name]["kind"]] if EXPECTED[name]["kind"] else [])


def test_the_line_of_pinned_rounding_is_the_same_in_every_process():
    """Two lines round by the same bytes: the order of a hash table must not choose."""
    path = FIXTURES / "pinned_rounding.pickle"
    assert len({json.dumps(harness.analysis(path)["findings"]) for _ in range(6)}) == 1


@pytest.mark.parametrize(
    "kind, changed",
    [
        ("stranded_stream_cache", "one_stream_peak_reserved_bytes"),
        ("record_stream_pending", "without_pending_peak_reserved_bytes"),
        ("graph_pool_slack", "one_pool_peak_reserved_bytes"),
    ],
)
def test_the_change_saves_what_it_saves_in_the_real_allocator(kind, changed):
    finding, expected = the_one(kind)
    assert "in the simulation" in finding["fix"]
    assert finding["evidence"]["peak_reserved_bytes"] == expected["peak_reserved"]
    assert finding["evidence"][changed] == expected["changed_peak_reserved_bytes"]


def test_pending_bytes_are_those_between_the_peaks_of_active_and_of_allocated_memory():
    finding, expected = the_one("record_stream_pending")
    assert finding["bytes"] == expected["peak_active"] - expected["peak_allocated"]
    assert finding["evidence"]["peak_active_bytes"] == expected["peak_active"]
    assert finding["evidence"]["peak_without_pending_bytes"] == expected["peak_allocated"]
    assert finding["stack"][0].endswith(" all_gather")


def test_free_bytes_in_private_pools_are_those_of_the_files_segments():
    finding, _ = the_one("graph_pool_slack")
    segments = pickle.loads((FIXTURES / "graphs.pickle").read_bytes())["segments"]  # our own file
    private = [s for s in segments if tuple(s["segment_pool_id"]) != (0, 0)]
    assert finding["evidence"]["free_in_pools_bytes"] == sum(s["total_size"] - s["active_size"] for s in private)
    assert finding["evidence"]["pools_bytes"] == sum(s["total_size"] for s in private)
    assert finding["evidence"]["pools"] == len({tuple(s["segment_pool_id"]) for s in private})


def test_of_two_settings_that_fight_the_worse_one_is_taken_out():
    finding, expected = the_one("settings_conflict")
    only = expected["peak_reserved_bytes_with_only"]
    assert finding["evidence"]["peak_reserved_bytes"] == expected["peak_reserved"]
    assert finding["evidence"]["without_max_split_peak_reserved_bytes"] == only["expandable_segments"]
    assert finding["evidence"]["without_expandable_peak_reserved_bytes"] == only["max_split_size_mb"]
    assert finding["bytes"] == expected["peak_reserved"] - min(only.values())
    assert "remove max_split_size_mb from" in finding["fix"]


def test_a_refusal_with_a_block_that_fits_is_told_once_and_fails_a_build():
    finding, _ = the_one("refused_though_it_fits")
    path = FIXTURES / OF_KIND["refused_though_it_fits"]
    events = pickle.loads(path.read_bytes())["device_traces"][0]  # our own file
    (refused,) = [e for e in events if e["action"] == "oom"]
    assert finding["bytes"] == refused["size"]
    assert finding["evidence"]["fitting_block_bytes"] >= refused["size"]
    assert [f["kind"] for f in harness.analysis(path)["findings"]].count("out_of_memory") == 0
    done = harness.execute([harness.COMMAND, "analyze", path, "--fail-on", "oom"])
    assert done.rc == 3 and b"a fitting free block of" in done.stderr


@pytest.mark.parametrize("name", ["training_torch26.pickle", "fullstep_ctx256_torch26.pickle", "training_ctx512_torch210.pickle",
                                  "lora_finetune_torch21.pickle", "forward_2_7b_torch26.pickle", "empty_cache_loop_torch26.pickle",
                                  "snapshot_events_torch22.pickle", "expandable_oom_4gpu.pickle"])  # fmt: skip
def test_ordinary_real_snapshots_have_none(name):
    if not (SNAPSHOTS / name).exists():
        pytest.skip(f"{SNAPSHOTS} is not here")
    assert troubles(SNAPSHOTS / name) == []


def pinned(folder, requests):
    """A snapshot of pinned memory: `requests` are (bytes, block) and ("free", block), blocks of a power of two."""
    events, size_of, live = [], {}, {}
    for what, block in requests:
        address = 0x7F0000000000 + (block << 32)
        frames = [{"filename": "/job/load.py", "line": 7, "name": "copy"}]
        if what == "free":
            events += [{"action": a, "addr": address, "size": live[block], "stream": 0, "time_us": 1000 + len(events), "frames": frames}
                       for a in ("free_requested", "free_completed")]  # fmt: skip
            del live[block]
            continue
        if block not in size_of:
            size_of[block] = 1 << (what - 1).bit_length()
            events.append({"action": "segment_alloc", "addr": address, "size": size_of[block], "stream": 0,
                           "time_us": 1000 + len(events), "frames": frames})  # fmt: skip
        live[block] = what
        events.append({"action": "alloc", "addr": address, "size": what, "stream": 0, "time_us": 1000 + len(events), "frames": frames})
    segments = []
    for block, size in size_of.items():
        address, asked = 0x7F0000000000 + (block << 32), live.get(block, 0)
        part = {"address": address, "size": size, "requested_size": asked, "frames": [],
                "state": "active_allocated" if asked else "inactive"}  # fmt: skip
        used = size if asked else 0
        segments.append({"device": 0, "address": address, "total_size": size, "allocated_size": used, "active_size": used,
                         "requested_size": asked, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                         "is_expandable": False, "frames": [], "blocks": [part]})  # fmt: skip
    path = folder / "pinned.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [], "host_segments": segments, "host_traces": [events]}, protocol=4))
    return path


def test_pinned_buffers_are_rounded_to_a_power_of_two(tmp_path):
    """6 buffers of 1.25 GiB ask for 7.5 GiB and take 12."""
    asked = 1280 * MIB
    (finding,) = troubles(pinned(tmp_path, [(asked, block) for block in range(6)]))
    assert (finding["kind"], finding["bytes"]) == ("pinned_rounding", 6 * (2048 * MIB - asked))
    assert finding["evidence"] == {"requested_bytes": 6 * asked, "used_bytes": 12 << 30, "buffers": 6}


def test_pinned_buffers_of_a_power_of_two_are_not(tmp_path):
    assert troubles(pinned(tmp_path, [(1024 * MIB, block) for block in range(6)])) == []


def test_a_pinned_cache_that_only_grows(tmp_path):
    """Each round asks for twice as much: 16 MiB, 32, … 1,024. One is in use at a time, all are kept."""
    requests = [step for block in range(7) for step in ((16 * MIB << block, block), ("free", block))]
    (finding,) = troubles(pinned(tmp_path, requests))
    assert finding["kind"] == "pinned_cache_growth"
    assert finding["bytes"] == (16 * 127 - 1024) * MIB
    assert finding["evidence"]["taken_bytes"] == 16 * 127 * MIB and finding["evidence"]["peak_used_bytes"] == 1024 * MIB


def test_a_pinned_cache_that_is_used_again(tmp_path):
    requests = [step for round_ in range(20) for step in ((64 * MIB, round_ % 2), ("free", round_ % 2))]
    assert troubles(pinned(tmp_path, requests)) == []


def test_pinned_memory_is_not_replayed_by_the_rules_of_the_device(tmp_path):
    found = harness.analysis(pinned(tmp_path, [(100 * MIB, 0), ("free", 0), (90 * MIB, 1)]))["findings"]
    assert [f["kind"] for f in found if f["kind"] in ("replay_mismatch", "inconsistent_trace", "fragmentation")] == []
