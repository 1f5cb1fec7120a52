"""TFMemoryProfiler on TensorFlow itself: exact peaks under the recorder, and what it leaves alone."""

import pytest
import with_tensorflow
from programs_of_package import BEGIN, printed

MIB = 1 << 20


def recorded(tmp_path, program):
    return printed(with_tensorflow.run(BEGIN + program, tmp_path / "recording"))


def test_a_nested_block_leaves_the_outer_peak_true(tmp_path):
    figures = recorded(tmp_path, """
p = TFMemoryProfiler()
with p.profile_context("outer"):
    large = ones(64)
    del large
    with p.profile_context("inner"):
        small = ones(16)
    del small
print(json.dumps([[r.function_name, rise(r), r.memory_diff(), r.memory_allocated, r.memory_freed, r.tensors_created,
                   r.peak_is_exact, r.basis] for r in p.results]))
""")
    inner, outer = figures
    # tf.ones makes one block more: the number that it fills with, of 4 bytes.
    assert inner[:4] == ["inner", 16 * MIB + 4, 16 * MIB, 16 * MIB + 4] and inner[6:] == [True, "exact"]
    assert outer[:2] == ["outer", 64 * MIB + 4] and outer[6:] == [True, "exact"]
    assert outer[2:6] == [0, 80 * MIB + 8, 80 * MIB + 8, 4]


def test_the_peak_of_a_call_that_raises_is_that_before_it_was_unwound(tmp_path):
    error, peak, diff = recorded(tmp_path, """
p = TFMemoryProfiler()
@p.profile_function
def fails():
    held = ones(32)
    raise ValueError("gone wrong")
try:
    fails()
except ValueError:
    pass
r = p.results[-1]
print(json.dumps([r.error, rise(r), p.get_results().function_profiles["fails"]["error_count"]]))
""")
    assert (error, peak, diff) == ("ValueError", 32 * MIB + 4, 1)


def test_a_tf_function_is_measured_at_each_call_and_keeps_its_own_methods(tmp_path):
    figures = recorded(tmp_path, """
p = TFMemoryProfiler()
@p.profile_function
@tf.function
def step(x):
    return tf.reduce_sum(tf.concat([x, x], 0))
x = ones(8)
step(x); step(x)
print(json.dumps([[r.function_name, rise(r) >= 16 * MIB, r.memory_diff()] for r in p.results]
                 + [step.__name__, step.experimental_get_tracing_count()]))
""")
    # Both calls hold the concatenation, twice the input; the second leaves nothing but what it returned and dropped.
    assert figures[0][:2] == ["step", True] and figures[1] == ["step", True, 4]
    assert figures[2:] == ["step", 1]


def test_below_a_tf_function_autograph_still_rewrites_the_function_and_only_tracing_is_measured(tmp_path):
    names, positive, negative = recorded(tmp_path, """
p = TFMemoryProfiler()
@tf.function
@p.profile_function
def choose(x):
    if tf.reduce_sum(x) > 0:  # only a rewritten function can branch on a tensor
        with p.profile_context("inside"):
            return x + 1
    return x - 1
out = [float(choose(tf.constant(v))) for v in (2.0, -2.0)]
print(json.dumps([sorted({r.function_name for r in p.results}), *out]))
""")
    assert names == ["choose (graph tracing)", "inside (graph tracing)"]
    assert (positive, negative) == (3.0, -3.0)


def test_attaching_late_makes_an_existing_profiler_exact():
    before, after, peak, reason = printed(with_tensorflow.run(BEGIN + """
p = TFMemoryProfiler("/CPU:0")
before = p.basis
tfmemprof.attach()
with p.profile_context("held"):
    held = ones(32)
r = p.results[-1]
print(json.dumps([before, p.basis, rise(r), r.basis_reason]))
"""))
    assert (before, after, peak) == ("host", "exact", 32 * MIB + 4)
    assert "PyTorch" not in reason  # the figures are TensorFlow's


def test_without_a_probe_the_peak_is_of_the_process_and_never_zero():
    basis, reason, peak, total = printed(with_tensorflow.run(BEGIN + """
p = TFMemoryProfiler("/CPU:0")
with p.profile_context("held"):
    held = ones(64)
r = p.results[-1]
print(json.dumps([r.basis, r.basis_reason, rise(r), p.get_results().peak_memory_mb]))
"""))
    assert basis == "host" and "small CPU blocks" in reason
    assert peak >= 60 * MIB and total >= 64


def test_it_does_not_make_tensorflows_devices_so_threads_and_growth_can_still_be_set():
    threads, peak, basis = printed(with_tensorflow.run("""
import json, tensorflow as tf, tfmemprof
p = tfmemprof.TFMemoryProfiler()
p.get_results(); p.capture_snapshot("before"); tfmemprof.MemoryTracker(0.01).get_current_memory()
tf.config.threading.set_inter_op_parallelism_threads(3)  # RuntimeError once the devices are made
print(json.dumps([tf.config.threading.get_inter_op_parallelism_threads(), p.get_results().peak_memory_mb, p.basis]))
"""))
    assert threads == 3 and basis == "host" and peak > 0


def test_a_gpu_that_is_not_there_is_said_once_and_the_cpu_is_measured():
    done = with_tensorflow.run(BEGIN + """
if tf.config.list_physical_devices("GPU"):
    print(json.dumps(["has one"])); sys.exit()
profilers = [TFMemoryProfiler("/GPU:0") for _ in range(3)]
tfmemprof.MemoryTracker(device="GPU:0")
print(json.dumps([p.device for p in profilers] + ["/GPU:0 does not exist" in profilers[0].basis_reason]))
""")
    if printed(done) == ["has one"]:
        pytest.skip("this machine has a GPU")
    assert printed(done) == ["/CPU:0"] * 3 + [True]
    assert done.stderr.decode().count("/GPU:0 does not exist") == 1


@pytest.mark.parametrize(("word", "error"), [("'/TPU:0'", "ValueError"), ("True", "TypeError"), ("1.5", "TypeError")])
def test_what_names_no_device_is_an_error(word, error):
    done = with_tensorflow.run(BEGIN + f"""
try:
    TFMemoryProfiler({word})
except (ValueError, TypeError) as error:
    print(json.dumps([type(error).__name__]))
""")
    assert printed(done) == [error]


def test_blocks_of_nested_calls_are_counted_once(tmp_path):
    r = recorded(tmp_path, """
p = TFMemoryProfiler()
for _ in range(2):
    with p.profile_context("outer"), p.profile_context("inner"):
        kept = ones(4)
r, only = p.get_results(), TFMemoryProfiler()
for _ in range(2):
    with only.profile_context("one"):
        kept = ones(4)
o = only.get_results()
print(json.dumps([r.total_allocations, o.total_allocations, r.function_profiles["inner"]["call_count"]]))
""")
    assert r == [4, 4, 2], "two blocks a call, as above"


def test_results_have_the_documented_fields_with_figures_that_agree(tmp_path):
    r = recorded(tmp_path, """
p = TFMemoryProfiler()
kept = []
@p.profile_function
def grow():
    kept.append(ones(4))
for _ in range(8):
    grow()
r = p.get_results()
entry = p.tensor_tracker.track_tensor(kept[0], "first")
shot = p.capture_snapshot("now")
out = r.to_dict()
out["tracked_bytes"], out["shot"] = entry.size_bytes, [shot.name, shot.gpu_memory_mb]
out["leaks"] = [leak["type"] for leak in tfmemprof.MemoryAnalyzer().detect_memory_leaks(r)]
out["growth"] = r.memory_growth_rate > 0 and r.duration > 0
print(json.dumps(out, default=str))
""")
    grow = r["function_profiles"]["grow"]
    assert (grow["call_count"], grow["total_memory_allocated"]) == (8, 8 * (4 * MIB + 4))
    assert r["total_allocations"] == 16 and r["total_deallocations"] == 8
    assert r["peak_memory_mb"] * MIB == r["snapshots"][-1]["allocated_memory"] + 4
    assert r["min_memory_mb"] < r["average_memory_mb"] < r["peak_memory_mb"]
    assert r["memory_fragmentation"] is None and r["basis"] == "exact"
    assert r["tracked_bytes"] == 4 * MIB and r["shot"] == ["now", r["snapshots"][-1]["allocated_memory"] / MIB]
    assert "monotonic_increase" in r["leaks"] and r["growth"]
