"""A few operations under TensorFlow's own profiler, and what that says of every allocation, as JSON."""
import glob
import json
import os
import shutil
import tempfile

os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

FIRST, LAST = 1_234_567, 2_345_677  # elements of one byte


def sentinel(size):
    return tf.fill([size], tf.constant(1, tf.uint8))


@tf.function
def step(x):
    y = tf.nn.relu(tf.matmul(x, x, name="product"), name="positive")
    return tf.reduce_sum(tf.exp(y - tf.reduce_max(y)))


def allocations(folder):
    """(address, bytes, op) in order of time, as XPlane has them."""
    (path,) = glob.glob(folder + "/plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    found = []
    for plane in space.planes:
        def value(stat):
            kind = stat.WhichOneof("value")
            v = getattr(stat, kind)
            return plane.stat_metadata[v].name if kind == "ref_value" else v
        for line in plane.lines:
            for event in line.events:
                if plane.event_metadata[event.metadata_id].name != "MemoryAllocation":
                    continue
                stats = {plane.stat_metadata[s.metadata_id].name: value(s) for s in event.stats}
                when = line.timestamp_ns * 1000 + event.offset_ps
                sizes = [int(stats[name]) for name in ("addr", "allocation_bytes", "requested_bytes")]
                op = stats.get("tf_op", "")
                found.append((when, *sizes, "" if op == "(null)" else op))  # 2.16 prints a null pointer
    return [one[1:] for one in sorted(found)]


x = tf.random.normal([300, 300])
step(x)
folder = tempfile.mkdtemp()
options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, device_tracer_level=0)
tf.profiler.experimental.start(folder, options=options)
first = sentinel(FIRST)
for _ in range(3):
    total = step(x)
    eager = tf.square(x) + 1.0
last = sentinel(LAST)
info = tf.config.experimental.get_memory_info("CPU:0")
tf.profiler.experimental.stop()
print(json.dumps({"xplane": allocations(folder), "info": info, "first": FIRST, "last": LAST}))
shutil.rmtree(folder)
