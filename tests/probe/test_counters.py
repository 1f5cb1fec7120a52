"""Exact counters against arithmetic on tensor sizes, a model in Python and PyTorch's own profiler.

Every test runs preloaded and attached: what is counted must not depend on how the library came in.
"""
import json
import os

import pytest

import harness
from probe import exact

MIB = 1 << 20
MODES = ["preload", "attach"]
NOTHING = dict.fromkeys([name for name, _ in exact.Counters._fields_], 0)


@pytest.mark.parametrize("mode", MODES)
def test_counting_begins_with_zeros_and_knows_no_gpu_that_never_spoke(programs, mode):
    result = programs("simple", mode)
    assert result["first"] == NOTHING
    assert result["gpu"] is None


@pytest.mark.parametrize("mode", MODES)
def test_a_hundred_tensors_of_known_sizes_are_a_hundred_allocations_and_frees(programs, mode):
    before, after = programs("simple", mode)["hundred"]
    difference = {name: after[name] - before[name] for name in after}
    assert difference == NOTHING | {"alloc_count": 100, "free_count": 100,
                                    "alloc_bytes": sum(range(1, 101)), "free_bytes": sum(range(1, 101))}


@pytest.mark.parametrize("mode", MODES)
def test_live_bytes_are_those_allocated_less_those_freed(programs, mode):
    last = programs("simple", mode)["last"]
    assert last["live_bytes"] == last["alloc_bytes"] - last["free_bytes"] == 2048
    assert last["alloc_count"] - last["free_count"] == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_million_tensors_in_random_order_agree_with_a_model(programs, mode):
    result = programs("million", mode)
    model, scope, counters = result["model"], result["scope"], result["counters"]
    assert counters == NOTHING | {
        "live_bytes": model["live"], "alloc_count": 1_000_000, "free_count": model["freed"],
        "alloc_bytes": model["bytes"], "free_bytes": model["bytes"] - model["live"]}
    assert scope["peak_live_bytes"] == scope["own_peak_bytes"] == model["peak"]
    assert (scope["own_alloc_count"], scope["own_free_count"]) == (1_000_000, model["freed"])


@pytest.mark.parametrize("mode", MODES)
def test_training_steps_are_counted_as_pytorchs_profiler_counts_them(programs, mode):
    result = programs("profiled", mode)
    events, scope = result["events"], result["scope"]
    made = [size for size in events if size > 0]
    assert len(made) > 200, "too few events to prove anything"
    assert scope["own_alloc_count"] == len(made)
    assert scope["own_free_count"] == len(events) - len(made)
    assert scope["own_alloc_bytes"] == sum(made)
    assert scope["own_alloc_bytes"] - scope["own_free_bytes"] == sum(events)
    assert scope["own_peak_bytes"] == result["peak"]
    assert scope["peak_live_bytes"] - scope["start_live_bytes"] == result["peak"]


@pytest.mark.parametrize("mode", MODES)
def test_a_forked_child_counts_from_zero(programs, mode):
    child = programs("fork", mode)["child"]
    assert child["first"] == NOTHING
    assert child["last"] == NOTHING | {"alloc_count": 1, "free_count": 1, "alloc_bytes": 3 * MIB, "free_bytes": 3 * MIB,
                                       "unknown_free_count": 1}  # of the parent's block


@pytest.mark.parametrize("mode", MODES)
def test_shared_memory_counts_as_the_cpus(programs, mode):
    """4,096 bytes of the tensor and as many of the file that it moves into."""
    scope = programs("simple", mode)["shared_memory"]
    assert (scope["own_alloc_count"], scope["own_alloc_bytes"], scope["own_free_bytes"]) == (2, 8192, 8192)


def test_devices_are_counted_apart_with_their_own_sign(tmp_path):
    """A program that calls all that we stand in for, with a libc10 of our own; counters.c prints at its end."""
    here = os.path.dirname(__file__)
    link = [f"-L{tmp_path}", "-lc10", f"-Wl,-rpath,{tmp_path}"]
    for argv in (["g++", "-fPIC", "-shared", f"{here}/fake_c10.cc", "-o", tmp_path / "libc10.so"],
                 ["g++", f"{here}/call_c10.cc", "-o", tmp_path / "call", *link],
                 ["gcc", "-Wall", "-Werror", "-fPIC", "-shared", f"-I{harness.ROOT}/include", f"{here}/counters.c",
                  "-o", tmp_path / "counters.so"]):
        harness.execute([*argv, "-O1"]).ok()
    env = dict(os.environ, LD_PRELOAD=f"{exact.library()} {tmp_path}/counters.so")
    done = harness.execute([tmp_path / "call"], env=env).ok()
    cuda0, cuda1, npu, cpu, same, *unknown = [
        dict(zip(NOTHING, values)) if values else None for values in json.loads(done.stderr)]
    assert cuda0 == NOTHING | {"live_bytes": 512, "alloc_count": 2, "free_count": 1,
                               "alloc_bytes": 512 + 214748364800, "free_bytes": 214748364800}
    assert cuda1 == NOTHING | {"live_bytes": 1024, "alloc_count": 1, "alloc_bytes": 1024}
    assert npu == NOTHING | {"live_bytes": 1536, "alloc_count": 1, "alloc_bytes": 1536}
    # Two blocks of alloc_cpu, one of shared memory; what the CPU allocator reports again is not counted twice.
    assert cpu == same == NOTHING | {"alloc_count": 3, "free_count": 3, "alloc_bytes": 333 + 444 + 777,
                                     "free_bytes": 333 + 444 + 777}
    assert unknown == [None, None, None]


def test_a_recorded_program_counts_what_its_recording_shows(record, tmp_path):
    here = os.path.dirname(__file__)
    done = record([harness.PYTHON, f"{here}/exact.py", f"{here}/exact_programs.py", "nested", "preload"]).ok()
    outer = json.loads(done.stdout)["outer"]
    cpu = [event for event in harness.events(done.folder) if event["device"] == "cpu"]
    assert harness.NaivePeak(cpu).peak_bytes == outer["peak_live_bytes"] == 12 * MIB
    assert len(harness.allocs(cpu)) == outer["own_alloc_count"]
