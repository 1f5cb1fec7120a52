"""Keras layers, models and trainings under the profiler."""

import with_tensorflow
from programs_of_package import BEGIN, printed

MODEL = BEGIN + """
import keras, numpy
layers = keras.layers
def model():
    m = keras.Sequential([layers.Input((256,)), layers.Dense(1024, name="wide"), layers.Dense(4, name="narrow")])
    m.compile(optimizer="sgd", loss="mse")
    return m
x, y = numpy.ones((64, 256), "float32"), numpy.ones((64, 4), "float32")
"""


def test_a_profiled_layer_computes_the_same_and_is_itself_again_afterwards(tmp_path):
    same, names, kept, restored, after = printed(with_tensorflow.run(MODEL + """
m, p = model(), TFMemoryProfiler()
layer = m.get_layer("wide")
own = layer.call
expected = layer(x).numpy()
with tfmemprof.ProfiledLayer(layer, p) as profiled:
    got = profiled(x)
    units = profiled.units
    same = bool((got.numpy() == expected).all()) and units == 1024
result = p.results[-1]
layer(x)
print(json.dumps([same, [r.function_name for r in p.results], result.memory_diff(), layer.call == own,
                  "call" in vars(layer)]))
""", tmp_path / "recording"))
    assert same and names == ["wide_forward"]
    assert kept == 64 * 1024 * 4  # the output, 64 rows of 1,024 numbers: a power of two
    assert restored and not after


def test_a_profiled_model_measures_its_layers_and_its_fits_until_undone(tmp_path):
    names, fits, predictions, left = printed(with_tensorflow.run(MODEL + """
m, p = model(), TFMemoryProfiler()
with tfmemprof.profile_model(m, p) as profiled:
    profiled(x)
    profiled.fit(x, y, epochs=2, verbose=0)
    predicted = profiled.predict(x, verbose=0).shape
    profiled.stop_training = True
names = [r.function_name for r in p.results]
print(json.dumps([names[:3], names.count("sequential.fit"), list(predicted),
                  ["call" in vars(each) for each in m.layers] + [m.stop_training]]))
""", tmp_path / "recording"))
    assert names == ["wide_forward", "narrow_forward", "sequential_forward"]
    assert (fits, predictions, left) == (1, [64, 4], [False, False, True])


def test_the_callback_measures_each_step_and_epoch_and_changes_no_log(tmp_path):
    steps, epochs, keys, peaks, kept = printed(with_tensorflow.run(MODEL + """
m = model()
callback = tfmemprof.MemoryCallback()
history = m.fit(x, y, epochs=3, batch_size=16, verbose=0, callbacks=[callback])
r = callback.profiler.get_results().function_profiles
print(json.dumps([r["train_step"]["call_count"], [e["steps"] for e in callback.epochs], sorted(history.history),
                  [e["peak_memory_mb"] for e in callback.epochs], callback.epochs[-1]["kept_memory_mb"]]))
""", tmp_path / "recording"))
    assert steps == 12 and epochs == [4, 4, 4] and keys == ["loss"]
    # Gradients of the wide layer alone are 256 * 1024 + 1024 numbers.
    assert all(peak >= (256 * 1024 + 1024) * 4 / 2**20 for peak in peaks)
    assert abs(kept) < 0.1


def test_a_whole_training_and_an_inference_under_one_profiler(tmp_path):
    training, inference, unknown = printed(with_tensorflow.run(MODEL + """
from tfmemprof import TensorFlowProfiler
profiler = TensorFlowProfiler()
training = profiler.profile_training(model(), tf.data.Dataset.from_tensor_slices((x, y)).batch(16), epochs=2)
profiler.reset()
inference = profiler.profile_inference(model(), x, batch_size=16)
def calls(result):
    return {name: sums["call_count"] for name, sums in result.function_profiles.items()}
print(json.dumps([calls(training), calls(inference), inference.peak_memory_mb > 0]))
""", tmp_path / "recording"))
    assert training == {"train_step": 8, "epoch_0": 1, "epoch_1": 1, "training": 1}
    assert inference == {"inference": 1} and unknown
