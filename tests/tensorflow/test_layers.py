"""What the optimizer keeps of each layer, by the names of variables alone: equal to arithmetic, or said not to be known."""
import collections

import pytest

import harness
from tensorflow_helpers import last_json, needs_tensorflow, of_tensorflow, operation, record

pytestmark = needs_tensorflow
VARIABLE, LAYER = "<tensorflow variable> ", "<tensorflow layer> "


def named(event, kind):
    return next((line.removeprefix(kind) for line in event.get("stack", []) if line.startswith(kind)), None)


def is_parameter(event):
    """An optimizer's operation may put a parameter into a block of its own: that is no state of the optimizer's."""
    return not (named(event, VARIABLE) or "adam/").startswith("adam/")


def trained(where, *arguments):
    """Each layer's parameters, in bytes, and the blocks of the optimizer that are live at the end of the training."""
    program = [harness.PYTHON, harness.PROGRAMS / "tf_layers.py", *arguments]
    done = record(where / "recording", program)
    said, live = last_json(done), {}
    for event in of_tensorflow(harness.events(where / "recording")):
        key = event["device"], event["address"]
        if event["action"] == "alloc" and event["size_bytes"] >= said["end"]:
            break
        live[key] = event if event["action"] == "alloc" else live.pop(key, None) and None
    of_optimizer = [e for e in live.values() if e and "adam" in operation(e) and not is_parameter(e)]
    return said["layers"], of_optimizer, harness.analysis(where / "recording")


def by_layer(events):
    sums = collections.Counter()
    for event in events:
        sums[named(event, LAYER)] += event.get("requested_bytes", event["size_bytes"])
    return dict(sums)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("layers"))


def test_adam_keeps_twice_the_parameters_of_each_layer(model):
    layers, events, _ = model
    assert "outer/inner_a/dense_kernel" in layers and "outer/inner_a/dense" in layers
    found = by_layer(events)
    counters = found.pop(None, 0)  # the number of steps and the like
    assert found == {layer: 2 * size for layer, size in layers.items()}
    assert counters < 64


def test_an_operation_that_writes_a_variable_names_it(model):
    layers, events, _ = model
    names = {(named(e, VARIABLE), named(e, LAYER)) for e in events if "AssignAddVariableOp" in operation(e)}
    written = {name for name, layer in names if name and layer}
    assert written and all(name.startswith("adam/outer_") for name in written)
    for name, layer in names:
        if layer is not None:
            assert name.removeprefix("adam/").startswith(layer.replace("/", "_") + "_")


def test_the_analysis_has_the_same_layers(model):
    layers, _, analysis = model
    work = [w for d in analysis["sums"] + analysis["devices"] for w in d.get("work_at_peak", []) + d.get("work_at_end", [])]
    assert set(layers) <= {w["module"] for w in work if w["phase"] == "optimizer"}


def test_where_layers_have_the_same_shapes_nothing_is_given_to_the_wrong_one(tmp_path):
    layers, events, _ = trained(tmp_path, "twin")
    found = by_layer(events)
    unknown = found.pop(None, 0)
    assert unknown > 0, "the initial value of one of them may be that of another"
    for layer, size in found.items():
        assert size <= 2 * layers[layer], layer
    assert 0 <= sum(found.values()) + unknown - 2 * sum(layers.values()) < 64
