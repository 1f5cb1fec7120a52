"""What waits for Python's garbage collector in a program's first rounds is no warning."""

import harness
import with_tensorflow

PREDICT = """
import sys, keras, numpy, tensorflow as tf
m = keras.Sequential([keras.layers.Input((128,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(8)])
m.export(sys.argv[1], verbose=False)
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
asked = []
for _ in range(200):
    x = tf.random.normal((32, 128))
    asked.append((x, serve(x)))
for _ in range(20):
    m.predict(numpy.ones((32, 128), "float32"), verbose=0)
"""


def test_a_few_calls_of_predict_are_no_warning(tmp_path):
    with_tensorflow.run(PREDICT, tmp_path / "recording", tmp_path / "model", timeout=240)
    leaks = [f for f in harness.analysis(tmp_path / "recording")["findings"] if f["kind"] == "leak"]
    assert {f["severity"] for f in leaks} <= {"info"}, leaks
