"""A function that XLA makes one cluster of has no operations of its own in a recording: its allocations have its name."""
import collections
import json

import pytest

import harness
from tensorflow_helpers import last_json, needs_tensorflow, of_tensorflow, record

pytestmark = needs_tensorflow
CLUSTER = "<tensorflow XLA cluster> "


@pytest.fixture(scope="module")
def jitted(tmp_path_factory):
    where = tmp_path_factory.mktemp("jitted")
    done = record(where / "recording", [harness.PYTHON, harness.PROGRAMS / "tf_jitted.py"])
    return last_json(done), of_tensorflow(harness.events(where / "recording")), where / "recording"


def clusters(event):
    return [line.removeprefix(CLUSTER).rpartition("_")[0] for line in event.get("stack", []) if line.startswith(CLUSTER)]


def test_what_a_cluster_returns_has_the_name_of_its_function(jitted):
    said, events, _ = jitted
    found = collections.Counter()
    for event in harness.allocs(events):
        for name in clusters(event):
            if name in said["inside"]:
                continue
            assert name == "__inference_scaled"
            found[event.get("requested_bytes", event["size_bytes"])] += 1
    assert {size: found[size] for size in said["scaled"]} == dict.fromkeys(said["scaled"], 2)


def test_a_cluster_inside_of_a_graph_has_the_name_of_its_function_too(jitted):
    said, events, _ = jitted
    found = {}
    for event in harness.allocs(events):
        for name in clusters(event):
            if name in said["inside"]:
                found.setdefault(name, set()).add(event.get("requested_bytes", event["size_bytes"]))
    assert all(size in found.get(name, ()) for name, size in said["inside"].items()), found
    of_size = [e for e in harness.allocs(events)
               if e.get("requested_bytes", e["size_bytes"]) == said["inside"]["__inference_tripled"]]
    assert of_size and all(clusters(e) == ["__inference_tripled"] for e in of_size)
    assert any("here/" in e["stack"][0] and any("in outer" in f or f.endswith(" outer") for f in e["stack"]) for e in of_size)


def test_what_xla_did_not_compile_has_none(jitted):
    said, events, _ = jitted
    blocks = [e for e in harness.allocs(events) if e.get("requested_bytes", e["size_bytes"]) == said["plain"]]
    assert blocks and all(clusters(e) == [] for e in blocks)


def test_reports_name_it(jitted):
    said, _, folder = jitted
    analysis = harness.analysis(folder)
    (sum_of_host,) = analysis["sums"]
    works = {w["function"]: w["bytes"] for w in sum_of_host["work_at_peak"] if w["xla"]}
    assert set(works) == {"scaled", "doubled", "tripled"} and works["scaled"] >= 2 * sum(said["scaled"])
    holders = [h for h in sum_of_host["holders_at_peak"] if h["xla_cluster"]]
    assert {h["function"] for h in holders} == {"scaled", "doubled", "tripled"}, json.dumps(holders)
    text = harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode()
    assert "XLA cluster scaled" in text
