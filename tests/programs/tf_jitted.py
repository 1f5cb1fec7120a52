"""A function that XLA compiles, called twice, and one that it does not; compiled functions that are called inside of graphs.
The bytes of what they return, as JSON."""
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

ROWS, INNER, COLUMNS = 301, 307, 311


@tf.function(jit_compile=True)
def scaled(x, y):
    return tf.matmul(x, y) * 2.0, x + 1.0


@tf.function
def plain(x):
    return tf.fill([INNER, COLUMNS], x)


@tf.function(jit_compile=True)
def doubled(x):
    return tf.concat([x, x], 0) * 3.0


@tf.function(jit_compile=True)
def tripled(x):
    return tf.concat([x, x, x], 0) * 5.0


@tf.function
def calls_doubled(x):
    return doubled(x)


@tf.function
def outer(x):
    with tf.name_scope("here"):
        a = tripled(x)
    return a, calls_doubled(x)  # a call of a function that calls a compiled one: both calls have the same name


x, y = tf.ones([ROWS, INNER]), tf.ones([INNER, COLUMNS])
kept = [scaled(x, y), scaled(x, y), plain(tf.constant(2.0)), outer(x)]
print(json.dumps({"scaled": [ROWS * COLUMNS * 4, ROWS * INNER * 4], "plain": INNER * COLUMNS * 4,
                  "inside": {"__inference_doubled": 2 * ROWS * INNER * 4, "__inference_tripled": 3 * ROWS * INNER * 4}}))
