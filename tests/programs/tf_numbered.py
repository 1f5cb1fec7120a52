"""A function called some times, each call with tensors of sizes of its own that are kept; after each call what
TensorFlow's own counters say. The pool for all blocks, so that these count every one."""
import json
import os

os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

MARK = 1_000_003  # elements of one byte: between two calls


@tf.function(reduce_retracing=True)
def pair(size):
    return tf.fill([size], 1.0), tf.fill([size + 1000], 2.0)


def live():
    return tf.config.experimental.get_memory_info("CPU:0")["current"]


one = tf.constant(1, tf.uint8)
kept, said = [pair(tf.constant(5_000))], []
for call in range(8):
    mark = tf.fill([MARK + call], one)
    kept.append(pair(tf.constant(10_000 + 3_000 * call)))
    said.append({"mark": MARK + call, "bytes": [4 * (10_000 + 3_000 * call), 4 * (11_000 + 3_000 * call)]})
    last = tf.fill([MARK + 100 + call], one)
    said[-1]["current"] = live()
    said[-1]["end"] = MARK + 100 + call
    del mark, last
print(json.dumps(said))
