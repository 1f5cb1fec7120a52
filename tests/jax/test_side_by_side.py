"""The same Keras model on three backends: parameters' bytes by layer, by arithmetic; the rest where it is, with bytes."""
import json

import pytest

import harness
import nested
from jax_helpers import environment, python

EXAMPLE = harness.ROOT / "examples" / "frameworks_side_by_side.py"
BACKENDS = ("torch", "tensorflow", "jax")
LAYERS = {"sequential/hidden_a": (50, 257), "sequential/hidden_b": (257, 131), "sequential/head": (131, 11)}
FLOAT = 4
PARAMETERS = {name: (i * o + o) * FLOAT for name, (i, o) in LAYERS.items()}


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    return tmp_path_factory.mktemp("recorded")


def recordings(where, name, *options):
    """By backend."""
    folders = {backend: where / f"{name}_{backend}" for backend in BACKENDS}
    argv = [python("keras", *BACKENDS), EXAMPLE, "--model", *options]
    for backend, folder in folders.items():
        env = environment(where, KERAS_BACKEND=backend, TF_ENABLE_ONEDNN_OPTS="0")  # one allocator on the CPU
        nested.record(folder, argv, imports=("keras",), env=env, timeout=300).ok()
    return folders


@pytest.fixture(scope="module")
def built(where):
    """Of a model that was built and called once."""
    return recordings(where, "built")


@pytest.fixture(scope="module")
def trained(where):
    return recordings(where, "trained", "--steps", "3")


def diff(a, b, *options):
    done = harness.execute([harness.COMMAND, "diff", a, b, "--format", "json", *options]).ok()
    return json.loads(done.stdout)


def by_layer(found, part, side):
    return {row["layer"]: row[f"{side}_bytes"] for row in found["by_layer"] if row["part"] == part and row[f"{side}_bytes"]}


@pytest.mark.parametrize("other", BACKENDS[1:])
def test_parameters_of_each_layer_are_the_same_and_what_arithmetic_says(built, other):
    found = diff(built["torch"], built[other])
    assert by_layer(found, "parameters", "a") == PARAMETERS
    assert by_layer(found, "parameters", "b") == PARAMETERS
    assert all(row["delta_bytes"] == 0 for row in found["by_layer"] if row["part"] == "parameters")


def test_what_tensorflow_keeps_for_itself_is_no_layers_and_is_not_left_out(built):
    found = diff(built["torch"], built["tensorflow"])
    assert by_layer(found, "variable handles", "b").keys() == PARAMETERS.keys()
    own = by_layer(found, "framework's own", "b")
    assert own.keys() == {None} and by_layer(found, "framework's own", "a") == {}
    naive = harness.NaivePeak([e for e in harness.events(built["tensorflow"]) if e["device"] == "tensorflow:cpu"])
    inside = [e for e in naive.peak_live if e["stack"][0].startswith("<tensorflow internal> ")]
    assert sum(e["size_bytes"] for e in inside) == own[None]
    graphs = [e for e in inside if e["stack"][0].endswith("tensorflow::core::Arena")]
    assert graphs and {e["size_bytes"] for e in graphs} == {8192}  # with what the arena of a small graph begins
    assert not [e for e in naive.peak_live if e not in inside and e["size_bytes"] == 8192]


@pytest.mark.parametrize("other", BACKENDS[1:])
def test_layers_add_up_to_both_peaks_with_what_is_in_none(built, trained, other):
    for runs in (built, trained):
        found = diff(runs["torch"], runs[other])
        for side in ("a", "b"):
            assert sum(row[f"{side}_bytes"] for row in found["by_layer"]) == found["peak"][f"{side}_bytes"]


def test_trained_on_pytorch_and_jax_weights_and_adams_state_are_the_same_and_what_arithmetic_says(trained):
    found = diff(trained["torch"], trained["jax"])
    for side in ("a", "b"):
        assert by_layer(found, "parameters", side) == PARAMETERS
        counters = by_layer(found, "optimizer", side)["adam"] - 2 * sum(PARAMETERS.values())
        # Adam's learning rate, and its iteration unless the peak falls between the old number and the new one.
        assert counters in (4, 4 + 4)


def test_trained_in_graphs_on_tensorflow_layers_are_those_of_pytorch_and_parameters_the_same_bytes(trained):
    found = diff(trained["torch"], trained["tensorflow"])
    assert by_layer(found, "parameters", "a") == PARAMETERS
    known = by_layer(found, "parameters", "b")
    assert known.keys() == PARAMETERS.keys()
    for layer, (inputs, outputs) in LAYERS.items():
        # TensorFlow copies a variable that is assigned while it is read: at the peak there may be two of a kernel.
        assert known[layer] - PARAMETERS[layer] in (0, inputs * outputs * FLOAT)
    graph = {row["layer"] for row in found["by_layer"] if row["part"] in ("forward", "gradient") and row["b_bytes"]}
    assert graph <= {None, *PARAMETERS, "compile_loss/mse"}, "names as TensorFlow numbers them"
    forward = [row for row in found["by_layer"] if row["part"] == "forward" and row["layer"] == "sequential/hidden_a"]
    assert [(row["a_bytes"], row["b_bytes"]) for row in forward] == [(2048 * 257 * FLOAT,) * 2]
    # The gradient of a kernel has its layer's name, as the operations that made it are in its scope.
    # Which of them live at the peak is up to TensorFlow's threads: all that were made are looked at.
    made = [e for e in harness.events(trained["tensorflow"]) if e["device"] == "tensorflow:cpu" and e["action"] == "alloc"]
    stacks = [(e["size_bytes"], e.get("stack", [])) for e in made]  # a thread of tf.data's has neither operation nor line
    kernels = [size for size, stack in stacks if stack[1:2] == ["<layer> sequential/hidden_b"] and "gradient_tape" in stack[0]]
    assert 257 * 131 * FLOAT in kernels


def test_runs_without_layers_say_that_there_are_none(record):
    done = record([harness.PYTHON, harness.PROGRAMS / "known.py"]).ok()
    assert diff(done.folder, done.folder)["by_layer"] is None
    text = harness.execute([harness.COMMAND, "diff", done.folder, done.folder]).ok().stdout.decode()
    assert "By layer" not in text


def test_the_example_prints_arithmetic_beside_each_backend(tmp_path):
    env = dict(environment(tmp_path), GPUMEMPROF_BIN=harness.COMMAND)
    done = harness.execute([python("keras", *BACKENDS), EXAMPLE, "torch", "jax"], env=env, timeout=300).ok()
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.decode().splitlines()[1:4]}
    assert rows == {name.partition("/")[2]: [f"{size:,}"] * 3 for name, size in PARAMETERS.items()}


def test_keras_is_not_changed_by_the_names(tmp_path):
    """Output, exception and its traceback, with and without us, on the backend that a scope's code is simplest for."""
    program = tmp_path / "program.py"
    program.write_text(
        "import keras, numpy as np\nkeras.utils.set_random_seed(3)\n"
        "class Fails(keras.layers.Layer):\n    def call(self, x):\n        raise RuntimeError('from a layer')\n"
        "model = keras.Sequential([keras.layers.Dense(4, name='one')])\n"
        "print(np.asarray(keras.ops.convert_to_numpy(model(np.ones((2, 3), 'float32')))).tolist())\n"
        "with keras.name_scope('outer'):\n    print(keras.Variable(1.0, name='v').path)\n"
        "try:\n    Fails()(np.ones((2, 3), 'float32'))\n"
        "except RuntimeError as error:\n    import traceback\n    print(traceback.format_exc())\n")
    env = environment(tmp_path, KERAS_BACKEND="torch", KERAS_TRACEBACK_FILTERING="off")
    plain = harness.execute([python("keras", "torch"), program], env=env, timeout=120)
    ours = harness.record(tmp_path / "recording", [python("keras", "torch"), program], env=env, timeout=120)
    assert ours.ok().stdout == plain.ok().stdout and b"outer/v" in plain.stdout
