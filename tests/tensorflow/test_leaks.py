"""What TensorFlow itself keeps: graphs of functions that are traced again, and kernels of eager operations."""

import pytest

import harness
import with_tensorflow


def leaks_of(folder):
    return [one for one in harness.analysis(folder)["findings"] if one["kind"] == "leak"]


FOLDS = 14
INPUTS, UNITS = 64, 1024
PROGRAM = f"""
import numpy as np
from tensorflow import keras

x, y = np.ones((128, {INPUTS}), "float32"), np.ones((128, 1), "float32")

def build():
    model = keras.Sequential([keras.layers.Input(({INPUTS},)), keras.layers.Dense({UNITS}), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model

for fold in range({FOLDS}):
    build().fit(x, y, epochs=2, batch_size=64, verbose=0)
"""
PARAMETERS = 4 * (INPUTS * UNITS + UNITS + UNITS + 1)  # float32: kernels and biases


def test_a_model_that_is_made_and_fitted_in_each_round_is_one_leak_with_its_fix(tmp_path):
    with_tensorflow.run(PROGRAM, tmp_path / "recording", timeout=300)
    leaks = leaks_of(tmp_path / "recording")  # one for each of TensorFlow's two allocators
    assert leaks and {(one["name"], one["severity"]) for one in leaks} == {("function_retraced", "warning")}, leaks
    # Adam has two moments of each parameter. Variables of operations without a line are in no line's growth.
    assert sum(one["evidence"]["bytes_a_step"] for one in leaks) >= 2 * PARAMETERS
    for leak in leaks:
        assert " at least " in leak["title"] and "steps_until_limit" not in leak["evidence"]
        assert leak["fix"].startswith("make a model or a tf.function once, not in the loop")
    gate = harness.execute([harness.COMMAND, "analyze", tmp_path / "recording", "--fail-on", "leak"])
    assert gate.rc == 3
    said = harness.execute([harness.COMMAND, "advise", tmp_path / "recording"]).ok().stdout.decode()
    assert "Nothing found" not in said
    assert said.splitlines()[1].split()[0] == "function_retraced"


RANDOM = """
import sys, tensorflow as tf
tf.random.set_seed(0)
draw = tf.random.uniform if sys.argv[1] == "op" else tf.random.Generator.from_seed(0).uniform
for step in range(60):
    x = draw((256, 256))
    y = tf.reduce_sum(tf.square(x) + 1)
"""


@pytest.mark.parametrize(("how", "names"), [("op", ["kernels_kept"]), ("generator", [])])
def test_a_kernel_for_each_seed_of_a_random_operation_is_told_and_a_generator_has_none(tmp_path, how, names):
    with_tensorflow.run(RANDOM, tmp_path / "recording", how)
    assert [one["name"] for one in leaks_of(tmp_path / "recording")] == names
