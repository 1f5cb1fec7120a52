"""Steps of TensorFlow, timed: `tf_steps.py function|eager|fit …`. One thread an operation and one between
them, so that a second core's load is not in the figures."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import blocks
import keras
import numpy
import tensorflow as tf

FEATURES, WIDTH, CLASSES, BATCH = 64, 128, 10, 64


def network_step():
    """Six layers forward and back, with SGD written out."""
    weights = [tf.Variable(tf.random.stateless_normal([WIDTH, WIDTH], [i, 7])) for i in range(6)]
    x = tf.random.stateless_normal([BATCH, WIDTH], [1, 1])

    def step():
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = tf.nn.relu(tf.matmul(h, w) * 0.05)
            loss = tf.reduce_mean(h * h)
        for w, gradient in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(1e-6 * gradient)
        return loss

    return step


def fit_step(batches=20):
    """`batches` steps of a Keras training: what a program calls is fit(), so that is the unit."""
    model = keras.Sequential([keras.layers.Input((FEATURES,))]
                             + [keras.layers.Dense(WIDTH, activation="relu") for _ in range(4)]
                             + [keras.layers.Dense(CLASSES)])
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    chance = numpy.random.default_rng(1)
    x = chance.random((BATCH * batches, FEATURES), dtype="float32")
    y = chance.integers(0, CLASSES, BATCH * batches)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    return lambda: model.fit(data, epochs=1, verbose=0)


STEPS = {
    "function": (lambda: tf.function(network_step()),
                 {"pairs": 60, "block_steps": 200, "warm_steps": 20, "first_steps": 100}),
    "eager": (network_step, {"pairs": 60, "block_steps": 20, "warm_steps": 3, "first_steps": 20}),
    "fit": (fit_step, {"pairs": 60, "block_steps": 2, "warm_steps": 1, "first_steps": 3}),
}

if __name__ == "__main__":
    name = sys.argv.pop(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    make, defaults = STEPS[name]
    blocks.main(f"tf_{name}", make(), defaults)
