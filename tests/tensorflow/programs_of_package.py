"""What the programs of these tests begin with. Sizes are powers of two, which TensorFlow's pool does not round."""

BEGIN = """
import json, sys
import tensorflow as tf
import tfmemprof
from tfmemprof import TFMemoryProfiler
MIB = 1 << 20
def ones(mib):
    return tf.ones([mib * MIB // 4])
def rise(result):
    return result.memory_peak.allocated_memory - result.memory_before.allocated_memory
ones(1)  # TensorFlow makes its devices
"""


def printed(done):
    """The last line that a program printed, as JSON."""
    import json

    return json.loads(done.stdout.decode().splitlines()[-1])
