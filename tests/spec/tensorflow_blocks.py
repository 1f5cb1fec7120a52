"""The guide's blocks for TensorFlow, by the line of their fence: what each is given, and what it has to have done.

Figures are compared exactly under the recorder, with sizes by arithmetic: blocks of less than 256 KB are given out as
they were asked for, and the large ones here are powers of two, which the pool does not round.
"""

import numpy
import tensorflow as tf

from tfmemprof import TFMemoryProfiler, get_profile_summaries, profile_model

FLOAT, MIB = 4, 1 << 20
FEATURES, CLASSES, BATCH, STEPS = 784, 10, 32, 4


class NeverTakenAsItIs(numpy.ndarray):
    """TensorFlow copies an array, and takes the copy as it is where that happens to lie at a multiple of 64 bytes:
    its allocator sees nothing then. The copies of this one lie 16 bytes behind such a place."""

    def copy(self, order="C"):
        room = numpy.empty(self.nbytes + 64 + 16, numpy.uint8)
        start = -room.ctypes.data % 64 + 16
        out = room[start : start + self.nbytes].view(self.dtype).reshape(self.shape)
        out[...] = self
        return out


def samples(count=BATCH * STEPS):
    generator = numpy.random.default_rng(7)
    x = generator.random((count, FEATURES), dtype=numpy.float32).view(NeverTakenAsItIs)
    return x, generator.integers(0, CLASSES, count)


def classifier():
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((FEATURES,)), layers.Dense(512, activation="relu"),
                                 layers.Dense(CLASSES, activation="softmax")])  # fmt: skip
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    return model


def given_data():
    x, y = samples()
    return {"x_train": x, "y_train": y, "optimizer": tf.keras.optimizers.SGD(0.01)}


def basic_usage(ns, printed, basis):
    results = ns["results"]
    assert results.basis == basis
    assert printed == f"Peak memory usage: {results.peak_memory_mb:.2f} MB\n"
    # The data was made tensors: 128 rows of 784 numbers, and their 128 labels.
    assert results.peak_memory_mb * MIB >= BATCH * STEPS * FEATURES * FLOAT
    assert list(results.function_profiles) == ["data_preprocessing"]
    # The decorated function is what it was, and measured.
    profiler, model, (x, y) = ns["profiler"], classifier(), samples(BATCH)
    before = [weight.numpy().copy() for weight in model.trainable_variables]
    loss = [ns["train_step"](model, x, y) for _ in range(2)][1]
    assert float(loss) > 0 and any((b != w.numpy()).any() for b, w in zip(before, model.trainable_variables))
    step = profiler.results[-1]
    assert (step.function_name, step.basis, step.error) == ("train_step", basis, None)
    if basis == "exact":
        # Alive at once: the gradients of both layers' parameters. What is left is the loss, one number.
        gradients = (FEATURES * 512 + 512 + 512 * CLASSES + CLASSES) * FLOAT
        rise = step.memory_peak.allocated_memory - step.memory_before.allocated_memory
        assert rise >= gradients and step.peak_is_exact
        assert step.memory_diff() == FLOAT
    assert profiler.get_results().peak_memory_mb >= results.peak_memory_mb


def memory_growth(ns, printed, basis):
    profiler = TFMemoryProfiler()
    assert set(profiler.memory_growth) == {f"/GPU:{i}" for i in range(len(ns["gpus"]))}
    assert not any(outcome != "on" for outcome in profiler.memory_growth.values())


def given_dataset():
    x, y = samples()
    return {"train_dataset": tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)}


def real_example(ns, printed, basis):
    results = ns["results"]
    assert results.basis == basis
    calls = {name: sums["call_count"] for name, sums in results.function_profiles.items()}
    epochs = {f"epoch_{i}": 1 for i in range(5)}
    assert calls == {"model_creation": 1, "train_step": 5 * STEPS, "train_epoch": 5, **epochs}
    parameters = (FEATURES * 512 + 512 + 512 * CLASSES + CLASSES) * FLOAT
    # Weights, their gradients, and Adam's two moments of each are there at once.
    assert results.peak_memory_mb * MIB >= 4 * parameters
    if basis == "exact":
        assert results.peak_is_exact
        by_name = {result.function_name: result for result in ns["profiler"].results}
        # The creation keeps the weights; of Adam's moments, which compile() may make, there are twice as many.
        assert parameters <= by_name["model_creation"].memory_diff() < 4 * parameters
        # An epoch that is not the first leaves nothing behind that is worth a layer.
        assert abs(by_name["epoch_4"].memory_diff()) < 512 * CLASSES * FLOAT
    text = [label.get_text() for axes in ns["_"].axes for label in [axes.xaxis.label, axes.yaxis.label, axes.title]]
    assert any(text) and any(len(line.get_xdata()) > 2 for axes in ns["_"].axes for line in axes.lines)


def given_fit():
    x, y = samples()
    return {"model": classifier(), "x_train": x, "y_train": y}


def quick_start(ns, printed, basis):
    results = ns["results"]
    assert printed.splitlines()[-1] == f"Peak memory: {results.peak_memory_mb} MB"
    parameters = (FEATURES * 512 + 512 + 512 * CLASSES + CLASSES) * FLOAT
    assert (results.basis, list(results.function_profiles)) == (basis, ["training"])
    # The model is older than the profiler; gradients and Adam's moments are not.
    assert results.peak_memory_mb * MIB >= 3 * parameters
    training = ns["profiler"].results[-1]
    if basis == "exact":
        assert training.memory_diff() >= 2 * parameters, training.basis_reason


def given_small_model():
    model = classifier()
    model(numpy.zeros((1, FEATURES), numpy.float32))
    return {"profile_model": profile_model, "model": model, "ProfiledModule": lambda model: model}


def automatic_model_profiling(ns, printed, basis):
    profiled, x = ns["profiled_model"], numpy.zeros((4, FEATURES), numpy.float32)
    assert (profiled(x).numpy() == ns["model"](x).numpy()).all()
    names = [row["name"] for row in get_profile_summaries()]
    assert [name for name in names if name.endswith("_forward")][-1] == f"{ns['model'].name}_forward"
    profiled.undo()
    assert not any("call" in vars(layer) for layer in ns["model"].layers)


# line of the fence -> (the names that it is given, its check)
BLOCKS = {
    247: (given_data, basic_usage),
    279: (lambda: {"tf": tf}, memory_growth),
    308: (given_dataset, real_example),
    494: (given_small_model, automatic_model_profiling),  # its second half is for TensorFlow
    759: (given_fit, quick_start),
}
