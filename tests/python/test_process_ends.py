"""The end of a process of multiprocessing is told of once, whether it returns or raises, however its Python is watched."""

import sys

import harness
import pytest

PROGRAM = """
import multiprocessing, sys
from gpumemprof._core import process_errors

def returns():
    pass

def raises():
    raise ValueError("x")

if __name__ == "__main__":
    if sys.argv[1] == "wrapped":  # as from Python 3.13 on
        process_errors._wrap_bootstrap(multiprocessing.process.BaseProcess)
    else:
        import multiprocessing.util
        process_errors.tell_of_processes(lambda error, where: None)
    process_errors._listeners.append(lambda error, where: print(repr(error), where, flush=True))
    process_errors.at_end_of_processes(lambda: print("end", flush=True))
    for target in (returns, raises):
        process = multiprocessing.get_context("fork").Process(target=target, name=target.__name__)
        process.start()
        process.join()
        print(process.exitcode, flush=True)
"""


@pytest.mark.parametrize("how", ["wrapped", "finalized"])
def test_an_end_is_told_of_once_and_after_its_error(tmp_path, how):
    if how == "finalized" and sys.version_info >= (3, 13):
        pytest.skip("this Python runs its finalizers after the error is gone")
    program = tmp_path / "ends.py"
    program.write_text(PROGRAM)
    done = harness.execute([harness.PYTHON, program, how]).ok()
    error = "ValueError('x') uncaught in process raises"
    assert done.stdout.decode().splitlines() == ["end", "0", error, "end", "1"]
