"""Results and telemetry with known numbers, as the real classes hold them: arithmetic, no measurement."""

from gpumemprof import MemorySnapshot, ProfileResult

MIB = 2**20
START_S = 1_700_000_000.0


def snapshot(time_s, allocated, reserved=None, device_id=-1):
    reserved = allocated if reserved is None else reserved
    return MemorySnapshot(time_s, allocated, reserved, allocated, reserved, allocated, 0, 0, device_id, basis="exact")


def result(name, start_s, seconds, before, peak, after, **fields):
    """One call that begins `start_s` after the start; bytes of the device before, at its peak, and after."""
    begin = START_S + start_s
    fields = {"basis": "exact", "peak_is_exact": True, **fields}
    return ProfileResult(
        function_name=name, execution_time=seconds, memory_before=snapshot(begin, before),
        memory_after=snapshot(begin + seconds, after), memory_peak=snapshot(begin + seconds, peak),
        memory_allocated=peak - before, memory_freed=peak - after, tensors_created=3, tensors_deleted=2, **fields,
    )  # fmt: skip


def training(epochs=12, leak_bytes=0):
    """load_batch keeps 32 MiB that train_step gives back, but for `leak_bytes` a step; every fourth time an
    evaluation."""
    level, time_s, results = 200 * MIB, 0.0, []
    for epoch in range(epochs):
        results.append(result("load_batch", time_s, 0.05, level, level + 40 * MIB, level + 32 * MIB))
        after = level + leak_bytes
        peak = level + (300 + epoch) * MIB
        results.append(result("train_step", time_s + 0.05, 0.2, level + 32 * MIB, peak, after))
        level, time_s = after, time_s + 0.26
        if epoch % 4 == 3:
            results.append(result("evaluate", time_s, 0.12, level, level + 120 * MIB, level))
            time_s += 0.13
    return results


def samples(allocated, used=None, reserved=None, total=None, rank=0, inactive=None, interval_s=0.1):
    """Telemetry records of one rank, a sample every `interval_s`; `allocated` and `used` are lists of bytes."""
    reserved = [max(allocated)] * len(allocated) if reserved is None else reserved
    return [
        {
            "schema_version": 2, "timestamp_ns": int((START_S + i * interval_s) * 1e9), "event_type": "sample",
            "collector": "test", "sampling_interval_ms": int(interval_s * 1000), "pid": 1, "host": "h", "job_id": None,
            "rank": rank, "local_rank": rank, "world_size": 8, "device_id": 0, "allocator_allocated_bytes": bytes_now,
            "allocator_reserved_bytes": reserved[i], "allocator_active_bytes": bytes_now,
            "allocator_inactive_bytes": inactive, "allocator_change_bytes": 0,
            "device_used_bytes": used[i] if used else 0, "device_free_bytes": None, "device_total_bytes": total,
            "context": None, "metadata": {} if used else {"unknown": {"device_used_bytes": "made without one"}},
        }
        for i, bytes_now in enumerate(allocated)
    ]  # fmt: skip
