"""A Keras training: parameters, gradients and optimizer state of every layer, by arithmetic."""
import collections

import pytest

import harness
from tensorflow_helpers import last_json, needs_tensorflow, of_tensorflow, operation, record

pytestmark = needs_tensorflow
FLOAT = 4


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What the program said and the events of its training."""
    where = tmp_path_factory.mktemp("trained")
    program = [harness.PYTHON, harness.PROGRAMS / "tf_fit.py"]
    done = record(where / "recording", program)
    said = last_json(done)
    events = of_tensorflow(harness.events(where / "recording"))
    end = next(i for i, e in enumerate(events) if e["size_bytes"] >= said["end"] and e["action"] == "alloc")
    return said, events[:end], harness.analysis(where / "recording")


def parameters(said):
    """Kernels and biases of the layers, in bytes."""
    sizes = {}
    for name, (inputs, outputs) in said["layers"].items():
        sizes[name, "kernel"] = inputs * outputs * FLOAT
        sizes[name, "bias"] = outputs * FLOAT
    assert len(set(sizes.values())) == len(sizes)
    return sizes


def test_each_parameter_is_live_at_the_end_and_twice_more_as_adams_state(trained):
    said, events, _ = trained
    live = {}
    for event in events:
        key = event["device"], event["address"]
        live[key] = event if event["action"] == "alloc" else live.pop(key) and None
    sizes = collections.Counter(event["size_bytes"] for event in live.values() if event)
    assert {name: sizes[size] for name, size in parameters(said).items()} == dict.fromkeys(parameters(said), 3)


def test_the_gradients_of_each_layer_have_the_size_that_they_must(trained):
    said, events, _ = trained
    layers = list(said["layers"])
    expected = {}
    for name, (inputs, outputs) in said["layers"].items():
        passed_on = 0 if name == layers[0] else said["batch"] * inputs * FLOAT  # the first one's inputs need none
        expected[name] = said["steps"] * (inputs * outputs * FLOAT + outputs * FLOAT + passed_on)
    found = collections.Counter()
    for event in events:
        parts = operation(event).split("/")
        if event["action"] == "alloc" and parts[1:2] == ["gradient_tape"] and parts[2].startswith("sequential"):
            found[parts[3].rpartition("_")[0]] += event["size_bytes"]
    assert dict(found) == expected


def test_a_layer_has_the_name_that_keras_gave_it(trained):
    """Not the scope of a second trace, in which TensorFlow calls the first Dense layer "dense_1"."""
    said, _, analysis = trained
    work = [w for d in analysis["devices"] for w in d.get("work_at_peak", []) + d.get("work_at_end", [])]
    bytes_of = collections.Counter()
    for w in work:
        if w["phase"] in ("forward", "gradient") and "sequential" in (w["module"] or ""):
            bytes_of[w["module"]] += w["bytes"]
    # What TensorFlow folds into constants has no layer around it: a few bytes of shapes.
    named = {layer for layer, size in bytes_of.items() if size > 64}
    assert named and named <= {f"sequential/{name}" for name in said["layers"]}


def test_the_analysis_names_phases_and_modes_and_its_sums_are_those_of_the_holders(trained):
    _, _, analysis = trained
    devices = [d for d in analysis["devices"] if d["framework"] == "tensorflow" and d["layer"] != "driver"]
    assert devices
    for device in devices:
        assert sum(w["bytes"] for w in device["work_at_peak"]) == device["peak"]["allocated_bytes"]
        assert sum(w["count"] for w in device["work_at_peak"]) == device["peak"]["blocks"]
    work = {(w["phase"], w["mode"]) for d in devices for w in d["work_at_end"] + d["work_at_peak"]}
    assert ("optimizer", "graph") in work
    modes = {h["mode"] for d in devices for h in d["holders_at_peak"]}
    assert modes <= {"eager", "graph", None}
