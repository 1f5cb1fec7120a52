"""Phases and steps where nothing is recorded: nothing happens, and what is decorated stays what it was."""

import asyncio
import inspect
import subprocess
import sys

import pytest

import gpumemprof


def test_a_block_runs_and_its_exceptions_come_through():
    with pytest.raises(KeyError, match="own"):
        with gpumemprof.phase("a"), gpumemprof.phase("b"):
            raise KeyError("own")
    gpumemprof.step()


def test_one_object_can_be_entered_again_inside_itself():
    again = gpumemprof.phase("again")
    with again, again:
        pass
    with again:
        pass


def test_functions_of_every_kind_do_as_before():
    @gpumemprof.phase("plain")
    def plain(a, *, b=2):
        "its text"
        return a + b

    @gpumemprof.phase("generator")
    def generator():
        try:
            got = yield 1
            yield got
        except ValueError:
            yield "thrown"
        return "end"

    @gpumemprof.phase("coroutine")
    async def coroutine():
        await asyncio.sleep(0)
        raise LookupError

    @gpumemprof.phase("asynchronous")
    async def asynchronous():
        for i in range(3):
            yield i

    assert plain(1, b=3) == 4 and plain.__doc__ == "its text" and plain.__name__ == "plain"
    assert inspect.isgeneratorfunction(generator) and inspect.iscoroutinefunction(coroutine)
    run = generator()
    assert [next(run), run.send("sent"), run.throw(ValueError())] == [1, "sent", "thrown"]
    with pytest.raises(StopIteration) as stop:
        next(run)
    assert stop.value.value == "end"
    with pytest.raises(LookupError):
        asyncio.run(coroutine())

    async def collect():
        return [i async for i in asynchronous()]

    assert asyncio.run(collect()) == [0, 1, 2]


def test_without_a_recording_nothing_is_loaded_for_it():
    program = (
        "import gpumemprof, sys\nwith gpumemprof.phase('x'): gpumemprof.step()\n"
        "assert not [m for m in sys.modules if m.startswith('gpumemprof._marks') or m == 'gpumemprof._native']"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
