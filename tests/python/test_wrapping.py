"""Profiled functions in copied contexts, and profile_function on functions without parameters of every kind."""

import asyncio
import contextvars
import gc
import threading
import weakref

import pytest

from gpumemprof import GPUMemoryProfiler, ProfileResult, profile_function
from gpumemprof._profiling import wrapping


@pytest.fixture
def profiler():
    return GPUMemoryProfiler("cpu")


def names(profiler):
    return [result.function_name for result in profiler.results]


def test_a_timer_that_sets_itself_again_is_recorded_each_time(profiler):
    left = [5]

    async def main():
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        @profile_function(profiler=profiler)
        def tick():
            left[0] -= 1
            depths.append(len(wrapping._inside.get()))
            if left[0]:
                loop.call_soon(tick)
            else:
                over.set_result(None)

        tick()
        await over

    depths = []
    asyncio.run(main())
    # One entry each time: what the copied contexts bring along does not pile up.
    assert names(profiler) == ["tick"] * 5 and depths == [1] * 5


def test_tasks_of_a_recursive_coroutine_are_calls_of_their_own(profiler):
    @profile_function(profiler=profiler)
    async def tree(depth):
        if depth:
            await asyncio.gather(tree(depth - 1), tree(depth - 1))

    asyncio.run(tree(3))
    assert names(profiler) == ["tree"] * (1 + 2 + 4 + 8)


def test_what_a_recursive_coroutine_awaits_itself_is_a_part_of_it(profiler):
    @profile_function(profiler=profiler)
    async def down(depth):
        await asyncio.sleep(0)
        if depth:
            await down(depth - 1)

    asyncio.run(down(3))
    assert names(profiler) == ["down"]


def test_a_call_in_another_thread_is_its_own_whatever_context_it_got(profiler):
    @profile_function(profiler=profiler)
    def work(depth):
        if depth:
            context = contextvars.copy_context()
            thread = threading.Thread(target=lambda: context.run(work, depth - 1))
            thread.start()
            thread.join()

    work(2)
    assert names(profiler) == ["work"] * 3


def test_a_copied_context_run_below_the_call_is_recursion(profiler):
    @profile_function(profiler=profiler)
    def work(depth):
        if depth:
            contextvars.copy_context().run(work, depth - 1)

    work(2)
    assert names(profiler) == ["work"]


def test_a_generator_that_is_suspended_does_not_hide_another(profiler):
    @profile_function(profiler=profiler)
    def count(n):
        yield from range(n)

    first = count(3)
    next(first)
    copied = contextvars.copy_context()
    assert copied.run(lambda: list(count(2))) == [0, 1] and list(first) == [1, 2]
    assert names(profiler) == ["count", "count"] and wrapping._inside.get() == ()


def test_a_profiler_that_cannot_be_made_leaves_nothing_behind(profiler):
    refuse = [True]

    def which():
        if refuse[0]:
            raise RuntimeError("no device")
        return profiler

    call = wrapping.profiled(lambda: "value", "call", which)
    with pytest.raises(RuntimeError, match="no device"):
        call()
    assert wrapping._inside.get() == ()
    refuse[0] = False
    assert call() == "value" and names(profiler) == ["call"]


def test_a_generator_function_below_the_method_can_be_iterated(profiler):
    log = []

    @profiler.profile_function
    def gen():
        log.append("begun")
        yield 1
        yield 2

    assert isinstance(gen, ProfileResult) and log == ["begun"]
    assert [x for x in gen()] == [1, 2] and list(gen()) == [1, 2]
    assert names(profiler) == ["gen"] * 3 and log == ["begun"] * 3


def test_a_coroutine_function_below_the_method_can_be_called_and_awaited(profiler):
    log = []

    @profiler.profile_function
    async def main():
        "Says hello."
        log.append("ran")
        await asyncio.sleep(0)
        return "hello"

    assert log == [] and (main.__name__, main.__doc__) == ("main", "Says hello.")
    assert asyncio.run(main()) == "hello" and asyncio.run(main()) == "hello"
    assert names(profiler) == ["main", "main"]

    async def outer():
        return await main

    result = asyncio.run(outer())
    assert isinstance(result, ProfileResult) and result.function_name == "main" and log == ["ran"] * 3


def test_what_the_method_gives_for_a_coroutine_function_is_taken_for_a_coroutine(profiler):
    async def work():
        await asyncio.sleep(0)

    async def both():
        task = asyncio.create_task(profiler.profile_function(work))
        return await asyncio.gather(task, profiler.profile_function(work))

    results = [asyncio.run(profiler.profile_function(work)), *asyncio.run(both())]
    assert [r.function_name for r in results] == names(profiler) == ["work"] * 3

    async def fail():
        raise KeyError("no luck")

    with pytest.raises(KeyError):
        asyncio.run(profiler.profile_function(fail))
    assert profiler.results[-1].error == "KeyError"


@pytest.mark.filterwarnings("error")
def test_a_decorated_coroutine_function_that_nobody_calls_warns_of_nothing(profiler):
    async def work(): ...

    profiler.profile_function(work)
    gc.collect()
    assert names(profiler) == []


def test_an_asynchronous_generator_function_is_run_to_its_end(profiler):
    log = []

    @profiler.profile_function
    async def items():
        for i in range(3):
            await asyncio.sleep(0)
            log.append(i)
            yield i

    async def main():
        return await items, [i async for i in items()]

    result, values = asyncio.run(main())
    assert values == [0, 1, 2] and log == [0, 1, 2] * 2
    assert isinstance(result, ProfileResult) and names(profiler) == ["items"] * 2

    async def given(n):
        for i in range(n):
            log.append("given")
            yield i

    assert asyncio.run(profiler.profile_function(given, 2)).function_name == "given"
    assert log[6:] == ["given"] * 2


def test_what_was_cleared_is_not_kept(profiler):
    sources = []
    for _ in range(50):
        profiler.profile_function(lambda: None)
        sources.append(weakref.ref(profiler._source))
        profiler.clear_results()
    gc.collect()
    assert [ref() for ref in sources] == [None] * 50
    before, old = profiler.wrap(lambda: None, "new"), profiler.begin("old")
    before()
    profiler.clear_results()
    profiler.finish(old)
    before()
    assert names(profiler) == ["old", "new"] and profiler.results[0].basis == profiler.basis


def test_what_is_no_function_is_refused_when_it_is_decorated(profiler):
    class Kind:
        pass

    for decorate in (profile_function, profile_function(profiler=profiler), profiler.wrap):
        with pytest.raises(TypeError, match="Kind is a class: profile its methods"):
            decorate(Kind)
    for decorate in (profile_function, profiler.wrap, profiler.profile_function):
        with pytest.raises(TypeError, match="not of str: to name the calls, write name='step'"):
            decorate("step")
    assert profiler.profile_function(Kind).function_name == "Kind"  # one call of it


def test_a_compiled_function_is_profiled_as_one_call(profiler):
    torch = pytest.importorskip("torch")

    @profile_function(profiler=profiler)
    @torch.compile(backend="eager", fullgraph=True)
    def doubled(x):
        return x * 2

    assert doubled(torch.ones(1024)).sum() == 2048
    (result,) = profiler.results
    assert result.memory_allocated >= 4096
