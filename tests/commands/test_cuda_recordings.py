"""A recording that followed PyTorch's CUDA allocator is replayed, asked what if, and written as a snapshot.

The recordings and what they are compared with come from PyTorch's own allocator: tests/reference_allocator.
"""

import json
import pickle
import sys
from collections import Counter

import harness
import pytest

sys.path.insert(0, str(harness.ROOT / "tests" / "reference_allocator"))
import recorded

FOLDER = harness.ROOT / "tests" / "fixtures" / "recordings"
FIXTURES = json.loads((FOLDER / "answers.json").read_text())


@pytest.fixture(params=FIXTURES, ids=lambda f: f["name"])
def fixture(request):
    return request.param


def own_history(fixture):
    return pickle.loads((FOLDER / f"{fixture['name']}.pickle").read_bytes())


def analysis_of(fixture):
    file = FOLDER / f"{fixture['name']}.gmp"
    return json.loads(harness.execute([harness.COMMAND, "analyze", file, "--format", "json"]).ok().stdout)


def test_the_snapshot_of_a_recording_is_the_allocators_own_event_for_event(fixture, tmp_path):
    out = tmp_path / "out.pickle"
    harness.execute(
        [harness.COMMAND, "export", FOLDER / f"{fixture['name']}.gmp", "--to", "snapshot", "-o", out]).ok()
    snapshot = pickle.loads(out.read_bytes())
    minor = int(fixture["release"].split(".")[1])
    assert len(snapshot["device_traces"][0]) > 700
    assert recorded.difference(own_history(fixture), snapshot, minor) == ""
    assert snapshot["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] == fixture["settings"]
    own_settings = own_history(fixture)["allocator_settings"]
    for key in ("max_split_size", "expandable_segments", "garbage_collection_threshold"):
        assert snapshot["allocator_settings"][key] == own_settings[key]


def test_the_replay_gives_every_address_and_the_counts_are_those_of_the_history(fixture):
    (device,) = analysis_of(fixture)["devices"]
    own = Counter(e["action"] for e in own_history(fixture)["device_traces"][0] if e["action"] in recorded.KINDS)
    assert device["device"] == "cuda:0"
    assert device["replay"]["matched"] == device["replay"]["alloc_addresses"] == own["alloc"]
    assert device["replay"]["first_mismatch_event"] is None
    assert {k: v for k, v in device["events"].items() if v} == own
    segments = own_history(fixture)["segments"]
    assert device["end"]["segments"] == len(segments)
    assert device["end"]["reserved_bytes"] == sum(s["total_size"] for s in segments)
    assert device["end"]["allocated_bytes"] == sum(s["allocated_size"] for s in segments)
    assert device["end"]["active_bytes"] == sum(s["active_size"] for s in segments)
    assert device["peak"]["basis"] == "requested"


def test_what_if_answers_what_the_allocator_does_under_those_settings(fixture):
    for answer in fixture["answers"]:
        options = ["--set", answer["settings"], "--format", "json", "--capacity", answer["capacity"] or "none"]
        done = harness.execute([harness.COMMAND, "whatif", FOLDER / f"{fixture['name']}.gmp", *options], timeout=120)
        study = json.loads(done.ok().stdout)
        assert study["replay"]["matched"] == study["replay"]["alloc_addresses"] > 200
        told = study["results"][-1]
        expected = [answer[k] for k in ("peak_reserved", "reserved", "segments", "num_alloc_retries", "num_ooms")]
        keys = ("peak_reserved_bytes", "end_reserved_bytes", "segments", "num_alloc_retries", "num_ooms")
        assert [told[k] for k in keys] == expected, answer


def test_a_refusal_is_explained_with_what_the_device_had():
    fixture = FIXTURES[0]
    (device,) = analysis_of(fixture)["devices"]
    own = [(i, e) for i, e in enumerate(own_history(fixture)["device_traces"][0]) if e["action"] == "oom"]
    assert len(own) == device["events"]["oom"] > 0
    first = device["oom"][0]
    index, event = own[0]
    assert first["event_index"] == index
    assert first["asked_bytes"] == event["size"] and first["device_free_bytes"] == event["device_free"]
    # The device is as large as its driver says; nothing else is on it.
    assert first["reserved_bytes"] + first["device_free_bytes"] == fixture["capacity"]
    assert first["held_by_others_bytes"] == 0
    file = FOLDER / f"{fixture['name']}.gmp"
    text = harness.execute([harness.COMMAND, "analyze", file]).ok().stdout.decode()
    assert "48.0 MiB free. 0 B were used by other processes or by CUDA itself." in text


def test_no_byte_of_such_a_file_makes_it_say_something_else(tmp_path):
    """Cut or changed, it is refused with one line, or tells no more than it held."""
    whole = (FOLDER / "streams_2.13.gmp").read_bytes()
    for at in range(1, len(whole), len(whole) // 40):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:]):
            path = tmp_path / "damaged.gmp"
            path.write_bytes(damaged)
            done = harness.execute([harness.COMMAND, "whatif", path, "--format", "json", "--no-seal"], timeout=60)
            assert done.rc in (0, 2)
            assert done.rc == 0 or done.stderr.count(b"\n") == 1
