"""Profiling is exact where allocator events are counted: every figure is arithmetic on the sizes of tensors."""

import pytest

from exactly import run

MIB = 2**20


@pytest.mark.parametrize("how", ["attach", "run"])
def test_a_function_that_drops_64_mib_and_keeps_1_kib(tmp_path, how):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        kept = []
        def work():
            big = tensor(64 * MIB)
            del big
            kept.append(tensor(1024))
        r = profiler.profile_function(work)
        show(rise=rise(r), own=r.own_peak_bytes, allocated=r.memory_allocated, freed=r.memory_freed,
             diff=r.memory_diff(), created=r.tensors_created, deleted=r.tensors_deleted, basis=r.basis,
             exact=r.peak_is_exact, name=r.function_name)
        """,
        tmp_path,
        how,
    )
    assert seen == {
        "rise": 67_108_864, "own": 67_108_864, "allocated": 67_109_888, "freed": 67_108_864, "diff": 1024,
        "created": 2, "deleted": 1, "basis": "exact", "exact": True, "name": "work",
    }  # fmt: skip


def test_ten_made_and_ten_dropped_is_ten_and_ten(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        def work():
            for _ in range(10):
                tensor(4096)
        r = profiler.profile_function(work)
        show(created=r.tensors_created, deleted=r.tensors_deleted, rise=rise(r))
        """,
        tmp_path,
    )
    assert seen == {"created": 10, "deleted": 10, "rise": 4096}


def test_what_was_made_before_and_dropped_within_is_freed(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        held = [tensor(3 * MIB)]
        r = profiler.profile_function(held.clear)
        show(deleted=r.tensors_deleted, freed=r.memory_freed, diff=r.memory_diff(), own=r.own_tensors_deleted)
        """,
        tmp_path,
    )
    assert seen == {"deleted": 1, "freed": 3 * MIB, "diff": -3 * MIB, "own": 0}


def test_an_inner_block_leaves_the_outer_peak_as_it_is(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        with profiler.profile_context("outer") as outer:
            tensor(10 * MIB)
            with profiler.profile_context("inner") as inner:
                tensor(2 * MIB)
        show(outer=rise(outer), inner=rise(inner), names=[r.function_name for r in profiler.results])
        """,
        tmp_path,
    )
    assert seen == {"outer": 10 * MIB, "inner": 2 * MIB, "names": ["inner", "outer"]}


def test_threads_at_once_have_peaks_of_their_own(tmp_path):
    seen = run(
        """
        import threading
        profiler = GPUMemoryProfiler()
        meet, results = threading.Barrier(2), {}
        def work(size):
            meet.wait()
            held = tensor(size)
            meet.wait()     # now both are there
            del held
            meet.wait()
        def thread(size):
            results[size] = profiler.profile_function(work, size)
        threads = [threading.Thread(target=thread, args=(n * MIB,)) for n in (3, 5)]
        [t.start() for t in threads]; [t.join() for t in threads]
        show(own=[results[n * MIB].own_peak_bytes for n in (3, 5)], device=[rise(results[n * MIB]) for n in (3, 5)],
             own_created=[results[n * MIB].own_tensors_created for n in (3, 5)])
        """,
        tmp_path,
    )
    assert seen == {"own": [3 * MIB, 5 * MIB], "device": [8 * MIB, 8 * MIB], "own_created": [1, 1]}


def test_a_function_that_raises_keeps_its_peak(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        def work():
            held = tensor(7 * MIB)
            del held
            raise KeyError("x")
        try:
            profiler.profile_function(work)
        except KeyError as error:
            caught = str(error)
        r = profiler.results[-1]
        errors = profiler.get_summary()["function_summaries"]["work"]["error_count"]
        show(rise=rise(r), caught=caught, error=r.error, errors=errors)
        """,
        tmp_path,
    )
    assert seen == {"rise": 7 * MIB, "caught": "'x'", "error": "KeyError", "errors": 1}


def test_out_of_memory_keeps_what_was_reached(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        def work():
            held = [tensor(4 * MIB) for _ in range(3)]
            tensor(1 << 60)
        try:
            profiler.profile_function(work)
        except RuntimeError as error:
            caught = "memory" in str(error)
        show(rise=rise(profiler.results[-1]), caught=caught)
        """,
        tmp_path,
    )
    assert seen == {"rise": 12 * MIB, "caught": True}


def test_recursion_counts_once(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        @profiler.profile_function
        def down(n):
            held = tensor(MIB)
            return 0 if n == 0 else 1 + down(n - 1)
        depth = down(4)
        stats = profiler.get_summary()["function_summaries"]["down"]
        total = stats["total_memory_allocated"]
        show(depth=depth, calls=stats["call_count"], total=total, rise=rise(profiler.results[0]))
        """,
        tmp_path,
    )
    assert seen == {"depth": 4, "calls": 1, "total": 5 * MIB, "rise": 5 * MIB}


def test_a_generator_is_measured_while_it_runs(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        @gpumemprof.profile_function(profiler=profiler)
        def batches(n):
            held = []
            for _ in range(n):
                held.append(tensor(MIB))
                got = yield len(held)
            return "end"
        sizes, outside = [], []
        for size in batches(3):
            sizes.append(size)
            outside.append(tensor(50 * MIB))
        r = profiler.results[0]
        show(sizes=sizes, created=r.tensors_created, allocated=r.memory_allocated, own=r.own_peak_bytes,
             n=len(profiler.results))
        """,
        tmp_path,
    )
    assert seen == {"sizes": [1, 2, 3], "created": 3, "allocated": 3 * MIB, "own": 3 * MIB, "n": 1}


def test_coroutines_that_take_turns_count_their_own(tmp_path):
    seen = run(
        """
        import asyncio
        profiler = GPUMemoryProfiler()
        @gpumemprof.profile_function(profiler=profiler)
        async def work(name, size):
            held = []
            for _ in range(3):
                held.append(tensor(size))
                await asyncio.sleep(0)
            return name
        async def main():
            return await asyncio.gather(work("a", MIB), work("b", 10 * MIB))
        names = asyncio.run(main())
        show(names=names, own=sorted(r.own_peak_bytes for r in profiler.results),
             allocated=sorted(r.memory_allocated for r in profiler.results),
             created=[r.tensors_created for r in profiler.results], is_coroutine=asyncio.iscoroutinefunction(work))
        """,
        tmp_path,
    )
    assert seen == {
        "names": ["a", "b"], "own": [3 * MIB, 30 * MIB], "allocated": [3 * MIB, 30 * MIB], "created": [3, 3],
        "is_coroutine": True,
    }  # fmt: skip


def test_blocks_of_two_tasks_count_their_own(tmp_path):
    seen = run(
        """
        import asyncio
        profiler = GPUMemoryProfiler()
        async def work(size):
            with profiler.profile_context("block") as block:
                held = [tensor(size)]
                await asyncio.sleep(0.01)
                held.append(tensor(size))
                await asyncio.sleep(0.01)
            return block.result.own_peak_bytes
        async def main():
            return await asyncio.gather(work(MIB), work(10 * MIB))
        show(own=asyncio.run(main()))
        """,
        tmp_path,
    )
    assert seen == {"own": [2 * MIB, 20 * MIB]}


def test_what_others_do_while_a_coroutine_waits_is_said(tmp_path):
    seen = run(
        """
        import asyncio
        profiler = GPUMemoryProfiler()
        keep = []
        @gpumemprof.profile_function(profiler=profiler)
        async def idle():
            await asyncio.sleep(0.1)
        async def block():
            with profiler.profile_context("block"):
                await asyncio.sleep(0.1)
        async def alone():
            with profiler.profile_context("alone"):
                keep.append(tensor(MIB))
        async def other():
            await asyncio.sleep(0.02)
            keep.append(tensor(8 * MIB))
        async def main(*work):
            await asyncio.gather(*(one() for one in work))
        asyncio.run(main(idle, block, other))
        asyncio.run(main(alone))
        show(**{r.function_name: [r.memory_allocated, r.own_allocated_bytes, r.memory_diff(), r.basis_reason.split("; ")[2:]]
                for r in profiler.results})
        """,
        tmp_path,
    )
    assert seen == {
        "idle": [0, 0, 8 * MIB, ["after and the peak include what others allocated or freed while it was suspended"]],
        "block": [8 * MIB, 0, 8 * MIB, ["in a coroutine: all figures include what other tasks did while it waited", "own_* does not"]],
        "alone": [MIB, MIB, MIB, []],
    }  # fmt: skip


def test_an_asynchronous_generator_is_measured_while_it_runs(tmp_path):
    seen = run(
        """
        import asyncio
        profiler = GPUMemoryProfiler()
        @gpumemprof.profile_function(profiler=profiler)
        async def numbers():
            for n in range(3):
                held = tensor(MIB)
                await asyncio.sleep(0)
                yield n
        async def main():
            got = []
            async for n in numbers():
                got.append(n)
                keep.append(tensor(20 * MIB))
            return got
        keep = []
        got = asyncio.run(main())
        r = profiler.results[0]
        show(got=got, created=r.tensors_created, allocated=r.memory_allocated, n=len(profiler.results))
        """,
        tmp_path,
    )
    assert seen == {"got": [0, 1, 2], "created": 3, "allocated": 3 * MIB, "n": 1}


def test_awaiting_profile_function_gives_the_result(tmp_path):
    seen = run(
        """
        import asyncio
        profiler = GPUMemoryProfiler()
        async def work(size):
            held = tensor(size)
            await asyncio.sleep(0)
        async def main():
            return await profiler.profile_function(work, 6 * MIB)
        r = asyncio.run(main())
        show(rise=rise(r), name=r.function_name)
        """,
        tmp_path,
    )
    assert seen == {"rise": 6 * MIB, "name": "work"}


def test_the_summary_knows_a_peak_that_nobody_profiled(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        tensor(33 * MIB)
        first = profiler.get_summary()
        profiler.clear_results()
        second = profiler.get_summary()
        show(first=first["peak_memory_usage"] - first["baseline_memory_usage"], exact=first["peak_is_exact"],
             second=second["peak_memory_usage"] - second["baseline_memory_usage"])
        """,
        tmp_path,
    )
    assert seen == {"first": 33 * MIB, "exact": True, "second": 0}


def test_a_profiler_older_than_attach_becomes_exact(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        before = profiler.basis
        gpumemprof.attach()
        r = profiler.profile_function(tensor, 2 * MIB)
        show(before=before, after=r.basis, rise=rise(r), again=gpumemprof.attach())
        """,
        tmp_path,
        "plain",
    )
    assert seen == {"before": "host", "after": "exact", "rise": 2 * MIB, "again": None}


def test_a_forked_child_profiles_its_own(tmp_path):
    seen = run(
        """
        import os
        profiler = GPUMemoryProfiler()
        held = tensor(5 * MIB)
        read, write = os.pipe()
        with profiler.profile_context("around the fork") as around:
            pid = os.fork()
            if pid == 0:
                r = profiler.profile_function(tensor, MIB)
                os.write(write, f"{r.basis} {rise(r)}".encode())
                os._exit(0)
            os.waitpid(pid, 0)
        show(child=os.read(read, 100).decode(), parent=around.tensors_created)
        """,
        tmp_path,
    )
    assert seen == {"child": f"exact {MIB}", "parent": 0}


def test_a_forked_child_that_leaves_its_parents_block_has_what_it_did_itself(tmp_path):
    seen = run(
        """
        import os
        profiler = GPUMemoryProfiler()
        read, write = os.pipe()
        block = profiler.profile_context("around the fork")
        block.__enter__()
        held = tensor(5 * MIB)
        pid = os.fork()
        if pid == 0:
            kept = tensor(2 * MIB)
            tensor(MIB)
            block.__exit__(None, None, None)
            r = block.result
            said = [r.memory_diff(), r.memory_allocated, r.memory_freed, r.tensors_created, r.peak_is_exact, r.own_peak_bytes]
            os.write(write, json.dumps([*said, "the process forked within" in r.basis_reason]).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        for _ in range(2):  # the second time nothing
            block.__exit__(None, None, None)
        show(child=json.loads(os.read(read, 1000)), parent=block.result.memory_diff(), results=len(profiler.results))
        """,
        tmp_path,
    )
    child = [2 * MIB, 3 * MIB, MIB, 2, False, None, True]
    assert seen == {"child": child, "parent": 5 * MIB, "results": 1}


def test_attaching_to_a_second_folder_is_an_error_that_names_the_first(tmp_path):
    seen = run(
        """
        import os, sys
        os.chdir(sys.path[0])
        os.symlink("first", "link")
        gpumemprof.attach("first")
        gpumemprof.attach("first")
        gpumemprof.attach("link")
        gpumemprof.attach()
        try:
            gpumemprof.attach("second")
        except RuntimeError as error:
            show(error=str(error), made=os.path.exists("second"), first=os.path.abspath("first"))
        """,
        tmp_path,
        "plain",
    )
    assert seen["error"] == f"cannot attach: this process records already, into {seen['first']}"
    assert seen["made"] is False


def test_under_run_a_folder_to_attach_to_changes_nothing(tmp_path):
    seen = run(
        """
        import os
        gpumemprof.attach("second")
        show(made=os.path.exists("second"))
        """,
        tmp_path,
        "run",
    )
    assert seen == {"made": False}


def test_sums_stay_exact_and_results_bounded(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler(max_results=100)
        call = profiler.wrap(tensor, "call")
        for _ in range(2000):
            call(512)
        stats = profiler.get_summary()
        show(calls=stats["total_function_calls"], total=stats["total_memory_allocated"],
             kept=len(profiler.results) <= 100, sum=len(profiler.results) + stats["results_dropped"])
        """,
        tmp_path,
    )
    assert seen == {"calls": 2000, "total": 2000 * 512, "kept": True, "sum": 2000}
