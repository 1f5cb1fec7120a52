"""The profiler's options, every field of a result and of a snapshot, tensor counts, and functions that fail."""

from expect import MIB, basis, device, exactly, touched

from gpumemprof import GPUMemoryProfiler

profiler = GPUMemoryProfiler(device=device, track_tensors=True, track_cpu_memory=True, collect_stack_traces=False)
assert not GPUMemoryProfiler(enable_tensor_tracking=False).track_tensors


def make_ten():
    """Ten pieces, one at a time, and one that is handed back."""
    for _ in range(10):
        touched(3)
    return touched(1)


def fail():
    touched(7)
    raise ValueError("no luck")


result = profiler.profile_function(make_ten)
assert result.execution_time > 0
exactly(result.memory_allocated, 31 * MIB)
exactly(result.memory_freed, 30 * MIB)
exactly(result.memory_diff(), MIB)
exactly(result.peak_memory_usage() - result.memory_before.allocated_memory, 3 * MIB)
if basis == "exact":
    assert (result.tensors_created, result.tensors_deleted) == (11, 10)
    assert result.own_peak_bytes >= 3 * MIB and result.peak_is_exact

after = result.memory_after
assert after.reserved_memory >= after.allocated_memory > 0
assert after.active_memory > 0 and after.inactive_memory >= 0 and after.cpu_memory > 0
assert after.timestamp >= result.memory_before.timestamp
assert after.device_id == (-1 if device == "cpu" else 0)
assert after.operation is None or "make_ten" in after.operation
assert after.gpu_memory_mb == after.allocated_memory / MIB

try:
    profiler.profile_function(fail)
    raise SystemExit("the function's own exception did not come through")
except ValueError:
    failed = profiler.results[-1]
exactly(failed.memory_peak.allocated_memory - failed.memory_before.allocated_memory, 7 * MIB)
assert "ValueError" in failed.error
assert failed.memory_peak.allocated_memory > 0
