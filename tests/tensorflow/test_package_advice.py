"""TensorFlow's recommendations: from what a recording shows, and none without."""

import json

import harness
import pytest
import with_tensorflow

TFMEMPROF = "tfmemprof"
FIT = """
import sys, numpy, keras, tensorflow as tf
if sys.argv[1] == "careful":
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
layers = keras.layers
m = keras.Sequential([layers.Input((64,)), *(layers.Dense(1024, activation="relu") for _ in range(4)), layers.Dense(4)])
m.compile(optimizer="sgd", loss="mse", run_eagerly=sys.argv[1] == "eager")
x, y = numpy.ones((4096, 64), "float32"), numpy.ones((4096, 4), "float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4096).prefetch(1)
m.fit(data, epochs=2, verbose=0)
"""


@pytest.fixture(scope="module")
def advised(tmp_path_factory):
    """advised(how): (kinds -> bytes, the command's text) for the same training done in one way or another."""

    def run(how):
        folder = tmp_path_factory.mktemp(how) / "recording"
        with_tensorflow.run(FIT, folder, how, timeout=240)
        findings = harness.analysis(folder)["findings"]
        link = folder.parent / TFMEMPROF
        link.symlink_to(harness.COMMAND)
        report = folder.parent / "report.md"
        done = harness.execute([link, "analyze", "--input", folder, "--optimize", "--report", report]).ok()
        return {f["kind"]: f["bytes"] for f in findings}, done.stdout.decode(), report.read_text()

    return run


def test_a_float32_model_is_told_mixed_precision_with_at_most_half_of_its_layers_bytes(advised):
    found, text, report = advised("plain")
    # Four activations of 4,096 rows of 1,024 numbers are alive when the backward pass begins.
    assert found["tensorflow_mixed_precision"] >= 4 * 4096 * 1024 * 4 / 2
    assert "tensorflow_tf_function" not in found and "tensorflow_tf_data" not in found
    assert "mixed_precision" in text.split("suggestion")[1]
    assert report.startswith("# Memory of ") and "mixed_bfloat16" in report and "## The analysis" in report


def test_a_program_that_uses_mixed_precision_and_tf_data_is_told_neither(advised):
    found, text, _ = advised("careful")
    assert "tensorflow_mixed_precision" not in found and "tensorflow_tf_data" not in found
    assert "set_global_policy" not in text


def test_a_training_that_runs_eagerly_is_told_tf_function(advised):
    found, _, _ = advised("eager")
    assert found["tensorflow_tf_function"] >= 4 * 4096 * 1024 * 4


def test_samples_alone_are_evidence_for_nothing(tmp_path):
    link, file = tmp_path / TFMEMPROF, tmp_path / "samples.json"
    link.symlink_to(harness.COMMAND)
    harness.execute([link, "monitor", "--duration", "0", "--output", file]).ok()
    done = harness.execute([link, "analyze", "--input", file, "--optimize"]).ok().stdout.decode()
    assert "No suggestions.\n" in done and done.count("samples do not show") == 1
    assert json.loads(file.read_text())


def test_the_package_gives_the_advice_of_a_recording_without_tensorflow(tmp_path):
    from tfmemprof import MemoryAnalyzer

    folder = tmp_path / "recording"
    with_tensorflow.run(FIT, folder, "plain", timeout=240)
    (found,) = MemoryAnalyzer().advise(folder)
    assert found["kind"] == "tensorflow_mixed_precision" and found["bytes"] * 2 == found["evidence"]["layer_bytes"]
    (sentence,) = MemoryAnalyzer().generate_optimization_report(folder)["recommendations"]
    assert sentence.startswith("Call tf.keras.mixed_precision.set_global_policy") and "at most half" in sentence
