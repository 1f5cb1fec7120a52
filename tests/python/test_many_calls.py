"""Profiling every call of a long run: memory stays bounded, and the statistics stay those of all calls."""

import exactly
import harness
import pytest

CALLS = """
profiler = GPUMemoryProfiler("cpu")
kept = []

def step(size_bytes):
    tensor(size_bytes)

call = profiler.wrap(step, "step")

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

for _ in range(1000):
    call(4096)
before = resident_bytes()
for _ in range(COUNT - 1000):
    call(4096)
grown = resident_bytes() - before
summary = profiler.get_summary()
show(grown=grown, calls=summary["total_function_calls"], basis=profiler.basis,
     results=len(profiler.results), allocated=summary["total_memory_allocated"])
"""


def check(count, tmp_path):
    values = exactly.run(CALLS.replace("COUNT", str(count)), tmp_path, "attach", timeout_s=900, execute=harness.execute)
    assert values["basis"] == "exact"
    assert values["calls"] == count
    assert values["allocated"] == 4096 * count
    assert values["grown"] <= 50 * 10**6


def test_two_hundred_thousand_calls_are_all_counted_in_bounded_memory(tmp_path):
    check(200_000, tmp_path)


@pytest.mark.slow
def test_ten_million_calls_are_all_counted_in_bounded_memory(tmp_path):
    check(10_000_000, tmp_path)
