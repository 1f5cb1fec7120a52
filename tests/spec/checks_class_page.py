"""What the class page's blocks have to have done, in the page's order. Sizes by arithmetic, as for the guide's."""

from given import GPU, HELD_BYTES, MIB

FLOAT = 4


def function(ran):
    weight, bias, output = 1000 * 1000 * FLOAT, 1000 * FLOAT, 32 * 1000 * FLOAT
    result = ran["result"]
    ran.has_basis(ran["profiler"], result)
    ran.exactly(result.memory_diff(), weight + bias + FLOAT)
    ran.at_least(result.memory_diff(), weight)
    # At the peak: what was there before, the output, the gradients.
    ran.at_least(result.peak_memory_usage(), weight + bias + output + weight)
    assert ran.number("Memory allocated:") == round(result.memory_allocated / MIB, 2) > 0
    assert ran.number("Peak memory:") == round(result.peak_memory_usage() / MIB, 2) > 0
    return {"peak_bytes": result.peak_memory_usage()}


def context(ran):
    (result,) = ran["profiler"].results
    square = 1000 * 1000 * FLOAT
    assert result.function_name == "data_loading"
    ran.exactly(result.memory_diff(), 3 * square)
    ran.exactly(result.tensors_created or 0, 3)
    ran.at_least(result.memory_diff(), 3 * square * 0.9)


def monitoring(ran):
    # Ten epochs of at least 50 ms, a snapshot every 100 ms: five, and room for a slow machine.
    count = int(ran.number("Collected"))
    assert count == len(ran["profiler"].snapshots) >= 3
    assert all(s.allocated_memory > 0 for s in ran["profiler"].snapshots[1:])


def options(ran):
    profiler = ran["profiler"]
    assert (profiler.track_tensors, profiler.track_cpu_memory, profiler.collect_stack_traces) == (True, True, False)


def result(ran):
    result = ran["result"]
    ran.has_basis(result)
    ran.exactly(result.memory_diff(), MIB)  # what it returned lives until the result is made
    ran.exactly(result.memory_allocated, HELD_BYTES + MIB)
    ran.exactly(result.memory_freed, HELD_BYTES)
    ran.exactly(result.memory_peak.allocated_memory - result.memory_before.allocated_memory, HELD_BYTES)
    counts = (result.tensors_created, result.tensors_deleted)
    assert counts == ((2, 1) if ran.basis == "exact" else counts)
    assert result.execution_time > 0


def snapshot(ran):
    snapshot = ran["snapshot"]
    assert snapshot is ran["result"].memory_after
    assert snapshot.reserved_memory >= snapshot.allocated_memory > 0
    assert snapshot.cpu_memory > HELD_BYTES and snapshot.timestamp > 1.7e9
    assert snapshot.device_id == (0 if GPU else -1)


def summary(ran):
    summary = ran["summary"]
    assert (summary["total_functions_profiled"], summary["total_function_calls"]) == (2, 24)
    for name, size in (("small", MIB), ("large", 4 * MIB)):
        (stats,) = [s for n, s in summary["function_summaries"].items() if n.split(".")[-1] == name]
        assert stats["call_count"] == 12
        ran.exactly(stats["avg_memory_allocated"], size)
        ran.exactly(stats["peak_memory"], size)
    ran.exactly(summary["net_memory_change"], 0)
    assert ran.number("Peak memory usage:") == round(summary["peak_memory_usage"] / MIB, 2) > 0


def peak(ran):
    ran.exactly(ran["peak"], HELD_BYTES)
    ran.at_least(ran["peak"], HELD_BYTES)


def error(ran):
    last = ran["profiler"].results[-1]
    assert last.error and "ValueError" in last.error
    ran.exactly(last.memory_peak.allocated_memory, HELD_BYTES)
    ran.at_least(last.memory_peak.allocated_memory, HELD_BYTES)
    assert "Function failed but memory was tracked\n" in ran.printed


def clear(ran):
    profiler = ran["profiler"]
    assert (profiler.results, profiler.snapshots, profiler.get_summary()["total_function_calls"]) == ([], [], 0)


def tensors(ran):
    made = ran["result"].tensors_created, ran["result"].tensors_deleted
    assert made == ((10, 10) if ran.basis == "exact" else made)
    assert f"Tensors created: {made[0]}\nTensors deleted: {made[1]}\n" == ran.printed


def devices(ran):
    assert str(ran["profiler"].device).startswith("cuda" if GPU else "cpu")
