"""Line by line: figures by arithmetic on what each line allocates."""

import json
import subprocess
import sys

import harness
import pytest
import torch

from exactly import run
from gpumemprof import profile_lines

MIB = 2**20


def test_each_line_has_what_it_added_and_how_high_it_went(tmp_path):
    seen = run(
        """
        @gpumemprof.profile_lines(report=False)
        def work(n):
            big = tensor(4 * MIB)
            for i in range(n):
                last = tensor(MIB)
            del big
            tensor(2 * MIB)
            return last
        kept = work(3)
        function = next(iter(work.lines.functions.values()))
        first = function.first_line
        rows = {number - first: (r.hits, r.devices["cpu"].change_bytes // MIB, r.devices["cpu"].peak_rise_bytes // MIB)
                for number, r in function.lines.items()}
        show(rows=rows, basis=function.basis)
        """,
        tmp_path,
    )
    assert seen["basis"] == {"cpu": "exact"}
    assert seen["rows"] == {
        "2": [1, 4, 4], "3": [4, 0, 0], "4": [3, 1, 1], "5": [1, -4, 0], "6": [1, 0, 2], "7": [1, 0, 0],
    }  # fmt: skip


def test_recursion_generators_and_exceptions_keep_lines_apart(tmp_path):
    seen = run(
        """
        @gpumemprof.profile_lines(report=False)
        def down(n):
            held = tensor(MIB)
            if n:
                down(n - 1)
            return 0
        @gpumemprof.profile_lines(report=False)
        def batches():
            held = tensor(MIB)
            yield held
            del held
        @gpumemprof.profile_lines(report=False)
        def fails():
            tensor(3 * MIB)
            raise KeyError
        down(2)
        for batch in batches():
            outside = tensor(50 * MIB)
        del batch
        try:
            fails()
        except KeyError:
            pass
        def rows(f):
            function = next(iter(f.lines.functions.values()))
            return {n - function.first_line: (r.hits, r.devices["cpu"].allocated_bytes // MIB)
                    for n, r in function.lines.items()}
        show(down=rows(down), batches=rows(batches), fails=rows(fails))
        """,
        tmp_path,
    )
    assert seen["down"]["2"] == [3, 3] and seen["down"]["4"][0] == 2
    assert seen["batches"] == {"2": [1, 1], "3": [1, 0], "4": [1, 0]}
    assert seen["fails"] == {"2": [1, 3], "3": [1, 0]}


def test_a_line_that_goes_on_after_a_suspension_is_no_new_hit():
    tracer = harness.ROOT / "python" / "gpumemprof" / "_profiling" / "line_tracer.py"
    done = harness.execute([harness.PYTHON, harness.ROOT / "tests" / "pythons" / "check_lines.py", tracer])
    assert done.ok().stdout.endswith(b"9 passed, 0 failed\n")


def test_a_line_that_awaits_has_what_came_after_the_suspension(tmp_path):
    seen = run(
        """
        import asyncio
        async def load():
            await asyncio.sleep(0)
            first = tensor(64 * MIB)
            await asyncio.sleep(0)
            return first, tensor(MIB)
        @gpumemprof.profile_lines(report=False)
        async def step():
            data = await load()
            return data
        async def other():
            kept.append(tensor(5 * MIB))
        kept = []
        async def main():
            await asyncio.gather(step(), other())
        asyncio.run(main())
        @gpumemprof.profile_lines(report=False)
        def batches():
            try:
                kept.append((yield tensor(2 * MIB)) or tensor(3 * MIB))
            except KeyError:
                kept.append(tensor(7 * MIB))
        for number in range(2):
            made = batches()
            next(made)
            kept.append(tensor(50 * MIB))
            try:
                made.throw(KeyError) if number else made.send(None)
            except StopIteration:
                pass
        def rows(f):
            function = next(iter(f.lines.functions.values()))
            return {n - function.first_line:
                    (r.hits, r.devices["cpu"].allocated_bytes // MIB, r.devices["cpu"].peak_rise_bytes // MIB)
                    for n, r in function.lines.items()}
        show(step=rows(step), batches=rows(batches))
        """,
        tmp_path,
    )
    assert seen["step"] == {"2": [1, 65, 64], "3": [1, 0, 0]}
    assert seen["batches"] == {"2": [2, 0, 0], "3": [2, 7, 3], "4": [1, 0, 0], "5": [1, 7, 7]}


def test_a_line_that_is_cancelled_in_its_await_is_one_hit(tmp_path):
    seen = run(
        """
        import asyncio
        @gpumemprof.profile_lines(report=False)
        async def waits():
            await asyncio.sleep(100)
        async def main():
            task = asyncio.ensure_future(waits())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        asyncio.run(main())
        function = next(iter(waits.lines.functions.values()))
        show(hits={n - function.first_line: r.hits for n, r in function.lines.items()})
        """,
        tmp_path,
    )
    assert seen["hits"] == {"2": 1}


def test_the_report_shows_the_source(capsys):
    @profile_lines(report=False, device="cpu")
    def work():
        kept = torch.ones(4)
        return kept

    work()
    text = work.lines.report()
    assert "kept = torch.ones(4)" in text and "(cpu: host)" in text.splitlines()[0]
    assert text.splitlines()[1] == (
        "  host: resident memory of the whole process; allocated and freed are its net growth, not what was allocated, since "
        "no probe is in this process (GPUMEMPROF_NO_ATTACH is set): run the program under `gpumemprof run` or call "
        "gpumemprof.attach() for exact figures"
    )
    assert text.splitlines()[2].split() == ["Line", "Hits", "cpu", "+MiB", "cpu", "peak", "MiB", "Source"]
    assert capsys.readouterr().out == ""
    work.lines.stop()


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="has no lines"):
        profile_lines(len)


def test_a_script_is_reported_with_its_marked_functions(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, json\n@profile\ndef work():\n    held = bytearray(10)\n    return held\n"
        "work()\nprint(json.dumps(sys.argv), __name__)\nsys.exit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "gpumemprof.lines", str(script), "a", "b"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == f"{json.dumps([str(script), 'a', 'b'])} __main__" and done.returncode == 3
    assert lines[1].startswith(f"{script}:2 work (cpu: host)") and "held = bytearray(10)" in done.stdout


def test_a_missing_script_is_one_line_and_exit_2(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gpumemprof.lines", str(tmp_path / "none.py")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr == f"gpumemprof: {tmp_path / 'none.py'}: no such script\n"
