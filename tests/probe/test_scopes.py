"""Scopes against arithmetic on tensor sizes: nested, in threads, tasks, generators, with exceptions, across forks."""
import json
import os

import pytest

import harness
from probe import exact

MIB = 1 << 20
MODES = ["preload", "attach"]


def own(scope):
    """(allocations, frees, bytes allocated, bytes freed, peak) of a scope's own."""
    assert scope["untracked_count"] == 0
    return tuple(scope["own_" + name] for name in ("alloc_count", "free_count", "alloc_bytes", "free_bytes", "peak_bytes"))


def device_peak(scope):
    return scope["peak_live_bytes"] - scope["start_live_bytes"]


@pytest.mark.parametrize("mode", MODES)
def test_64_mib_made_and_dropped_and_1_kib_kept_have_a_peak_of_67108864(programs, mode):
    scope = programs("simple", mode)["drop_then_keep"]
    assert device_peak(scope) == 67_108_864
    assert own(scope) == (2, 1, 67_108_864 + 1024, 67_108_864, 67_108_864)
    assert scope["end_live_bytes"] - scope["start_live_bytes"] == 1024


@pytest.mark.parametrize("mode", MODES)
def test_what_is_kept_before_adds_to_the_peak(programs, mode):
    scope = programs("simple", mode)["keep_then_drop"]
    assert device_peak(scope) == scope["own_peak_bytes"] == 67_108_864 + 1024


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_scope_is_all_zeros_and_its_peak_is_what_is_live(programs, mode):
    scope = programs("simple", mode)["empty"]
    assert own(scope) == (0, 0, 0, 0, 0)
    assert scope["start_live_bytes"] == scope["peak_live_bytes"] == scope["end_live_bytes"] == 2048


@pytest.mark.parametrize("mode", MODES)
def test_inner_scopes_leave_the_outer_ones_peak_alone(programs, mode):
    result = programs("nested", mode)
    assert device_peak(result["outer"]) == 12 * MIB
    assert own(result["outer"]) == (4, 4, 16 * MIB, 16 * MIB, 12 * MIB)
    # Inside: 2 MiB beside the 10 that were there, then 3 after these were dropped. The 10 are not its own.
    assert result["inner"]["peak_live_bytes"] == 12 * MIB and result["inner"]["end_live_bytes"] == 3 * MIB
    assert own(result["inner"]) == (2, 1, 5 * MIB, 2 * MIB, 3 * MIB)
    assert own(result["second"]) == (1, 1, MIB, MIB, MIB)
    assert device_peak(result["second"]) == MIB


@pytest.mark.parametrize("mode", MODES)
def test_every_level_of_a_recursion_counts_itself_and_what_is_below(programs, mode):
    result = programs("recursion", mode)
    for depth in range(10):
        below = depth + 1
        assert own(result[str(depth)]) == (below, below, below * MIB, below * MIB, below * MIB)
        assert result[str(depth)]["peak_live_bytes"] == 10 * MIB


@pytest.mark.parametrize("mode", MODES)
def test_a_scope_that_an_exception_leaves_has_its_peak(programs, mode):
    result = programs("raising", mode)
    assert own(result["raises"]) == (1, 1, 5 * MIB, 5 * MIB, 5 * MIB)
    assert own(result["out_of_memory"]) == (1, 0, MIB, 0, MIB)  # what was refused was never allocated


@pytest.mark.parametrize("mode", MODES)
def test_concurrent_threads_count_their_own(programs, mode):
    result = programs("threads", mode)
    for number, scope in enumerate(result["threads"]):
        size = 1000 + number
        total = 8 * MIB + 2000 * size
        assert own(scope) == (2001, 2001, total, total, 8 * MIB + size)
        # While all held theirs: at least those, and a small block of some of the four.
        assert 32 * MIB + size <= scope["peak_live_bytes"] <= 32 * MIB + 1000 + 1001 + 1002 + 1003
    assert own(result["all"]) == (0, 0, 0, 0, 0)
    assert result["all"]["peak_live_bytes"] == max(scope["peak_live_bytes"] for scope in result["threads"])


@pytest.mark.parametrize("mode", MODES)
def test_tasks_that_take_turns_on_one_thread_count_their_own(programs, mode):
    result = programs("tasks", mode)
    for number in range(3):
        held, small = 10 * 1000 * (number + 1), number + 1
        assert own(result["tasks"][str(number)]) == (20, 20, held + 10 * small, held + 10 * small, held + small)
        assert own(result["nested"][str(number)]) == (1, 1, small, small, small)
        assert result["tasks"][str(number)]["status"] == 1
    assert own(result["all"])[:2] == (61, 61)
    assert own(result["base"]) == (1, 1, 77, 77, 77)  # outside the tasks


@pytest.mark.parametrize("mode", MODES)
def test_a_context_is_followed_into_what_it_is_and_not_into_copies(programs, mode):
    result = programs("contexts", mode)
    assert own(result["base"]) == (3, 3, 1011, 1011, 1000)  # before and after the thread's first context object
    assert own(result["thread"]) == (2, 2, 101, 101, 100)  # without a context: all that the thread does
    assert own(result["inside"]) == own(result["other_thread"]) == (2, 2, 505, 505, 500)


@pytest.mark.parametrize("mode", MODES)
def test_generators_count_while_they_run(programs, mode):
    first, second = programs("generators", mode)["generators"]
    assert own(first) == (5, 5, 5000, 5000, 5000)
    assert own(second) == (5, 0, 150_000, 0, 150_000)
    everything = programs("generators", mode)["all"]
    assert own(everything) == (15, 15, 155_035, 155_035, 155_007)


@pytest.mark.parametrize("mode", MODES)
def test_a_fork_leaves_the_parents_scope_to_the_parent(programs, mode):
    result = programs("fork", mode)
    assert result["status"] == 0
    assert own(result["parent"]) == (1, 1, 5 * MIB, 5 * MIB, 5 * MIB)
    assert result["child"]["parents_scope"] == 0
    assert own(result["child"]["scope"]) == (1, 1, 3 * MIB, 3 * MIB, 3 * MIB)
    assert result["child"]["scope"]["peak_live_bytes"] == 3 * MIB


@pytest.mark.parametrize("mode", MODES)
def test_forked_workers_of_a_dataloader_count_their_own(programs, mode):
    assert programs("workers", mode) == [[MIB, 1]] * 8


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_contexts_are_those_of_each_python(light, version):
    python = harness.pythons().get(version)
    if not python:
        pytest.skip(f"no Python {version} here")
    here = os.path.dirname(__file__)
    env = dict(light.env, LD_PRELOAD=exact.library(), PYTHONPATH=str(harness.PROGRAMS))
    result = json.loads(harness.execute([python, f"{here}/exact.py", f"{here}/exact_programs.py", "contexts_and_tasks",
                                         "preload"], env=env).ok().stdout)
    task, inside = result["tasks"]["tasks"]["1"], result["contexts"]["inside"]
    assert own(result["generators"]["all"]) == (15, 15, 155_035, 155_035, 155_007)
    assert task["status"] == inside["status"] == 1
    assert own(task) == (20, 20, 20_020, 20_020, 20_002)
    assert own(inside) == (2, 2, 505, 505, 500)
    assert own(result["contexts"]["base"]) == (3, 3, 1011, 1011, 1000)
