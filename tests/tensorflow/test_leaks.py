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
    (leak,) = leaks_of(tmp_path / "recording")  # though TensorFlow has two allocators
    assert (leak["name"], leak["severity"]) == ("function_retraced", "warning")
    # Adam has two moments of each parameter. Variables of operations without a line are in no line's growth.
    evidence = leak["evidence"]
    assert evidence.get("all_memories_bytes_a_step", evidence["bytes_a_step"]) >= 2 * PARAMETERS
    assert " at least " in leak["title"] and "steps_until_limit" not in evidence
    assert leak["fix"].startswith("make a model or a tf.function once, not in the loop")
    gate = harness.execute([harness.COMMAND, "analyze", tmp_path / "recording", "--fail-on", "leak"])
    assert gate.rc == 3
    said = harness.execute([harness.COMMAND, "advise", tmp_path / "recording"]).ok().stdout.decode()
    assert "No suggestion" not in said
    assert said.splitlines()[1].split()[0] == "function_retraced"


UNROLLED = """
import tensorflow as tf
w = tf.Variable(tf.random.normal([64, 64]))
@tf.function
def f(x, times):
    for _ in range(200):
        x = tf.tanh(tf.matmul(x, w) + times)
    return tf.reduce_sum(x)
for step in range(30):
    f(tf.random.normal([8, 64]), step)
"""


def test_what_one_trace_keeps_in_several_memories_is_one_leak(tmp_path):
    with_tensorflow.run(UNROLLED, tmp_path / "recording", options=["--host"], timeout=300)
    (leak,) = leaks_of(tmp_path / "recording")
    assert leak["name"] == "function_retraced"
    assert "host" in leak["evidence"]["keeps_also"]


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
