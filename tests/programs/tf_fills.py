"""100 tensors inside a tf.function, each of a size of its own; their sizes and the line that makes them, as JSON.

An argument is the folder to record into by attaching, after five tensors were made.
"""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


def primes(count, start, apart):
    """Far enough apart that no two of them are the same when they are rounded to 256 bytes."""
    found = []
    n = start | 1
    while len(found) < count:
        if all(n % d for d in range(3, int(n**0.5) + 1, 2)):
            found.append(n)
            n += apart
        n += 2
    return found


SIZES = primes(100, 70_000, 128)


@tf.function
def fills(value):
    return [tf.fill([size], value) for size in SIZES]  # THE LINE


def attach(folder):
    import ctypes

    probe = ctypes.CDLL(os.environ["GPUMEMPROF_PROBE"])
    probe.gpumemprof_attach_error.restype = ctypes.c_char_p
    assert probe.gpumemprof_attach(folder.encode(), 0) == 1, probe.gpumemprof_attach_error()
    try:
        from gpumemprof._recorded import tf_graphs
    except ImportError:
        return
    tf_graphs.arm(folder)


old = [tf.ones([3_000 + i]) for i in range(5)]
if len(sys.argv) > 1:
    attach(sys.argv[1])
del old
kept = fills(tf.constant(1.0))
with open(__file__, encoding="utf-8") as file:
    line = next(i for i, text in enumerate(file, 1) if text.endswith("# THE LINE\n"))
print(json.dumps({"bytes": [4 * size for size in SIZES], "line": line, "sum": float(sum(t[0] for t in kept))}))
