"""A recorded TensorFlow program is followed from outside: its allocators on one device are one memory."""

import json
import subprocess
import time

import harness
import with_tensorflow

PROGRAM = """
import sys, time
import tensorflow as tf
large = [tf.ones([1 << 20]) for _ in range(3)]  # 4 MiB each, from one allocator
small = [tf.ones([256]) for _ in range(100)]  # 1 KiB each, from another
del small[:10]
print("begun", flush=True)
sys.stdin.readline()
"""


def test_large_and_small_blocks_are_one_series_with_one_exact_figure(tmp_path):
    script, output = tmp_path / "program.py", tmp_path / "samples.json"
    script.write_text(PROGRAM)
    argv = harness.run_argv(tmp_path / "r", [with_tensorflow.python(), script], ["--quiet"])
    pipe = subprocess.PIPE
    env = with_tensorflow.environment()
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=env) as program:
        assert program.stdout.readline() == "begun\n"
        (recording,) = harness.files(tmp_path / "r")
        pid = recording.name.split(".")[-3]
        time.sleep(0.2)
        watch = ["monitor", "--pid", pid, "--duration", "0.5", "--interval", "0.1", "--output", output]
        harness.execute([harness.COMMAND, *watch]).ok()
        program.communicate("\n", timeout=60)
    samples = [e for e in json.loads(output.read_text()) if e["event_type"] == "sample"]
    assert len({e["timestamp_ns"] for e in samples}) == len(samples) >= 3
    assert {(e["device_id"], e["collector"]) for e in samples} == {(-1, "tfmemprof.memory_tracker")}
    assert {e["metadata"]["device"] for e in samples} == {"tensorflow:cpu"}
    (live,) = {e["allocator_allocated_bytes"] for e in samples}
    assert 3 * (4 << 20) + 90 * 1024 <= live < 3 * (4 << 20) + 300 * 1024  # TensorFlow holds some blocks of its own
    assert all(e["metadata"]["peak_bytes"] >= live for e in samples)
    assert {e["allocator_change_bytes"] for e in samples} == {0}
