"""C++ exceptions of the program under native stacks. What they cost is a benchmark; what makes them dear is shown here: a
preloaded library that brings libunwind's _Unwind_* with it takes over every exception of the program."""
import json
import subprocess
import sys

import harness
import pytest

THROW_CATCH = harness.ROOT / "bench" / "throw_catch.cc"
PROGRAM = harness.ROOT / "bench" / "programs" / "throw_catch.py"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    out = tmp_path_factory.mktemp("exceptions") / "libthrow_catch.so"
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", str(THROW_CATCH), "-o", str(out)], check=True)
    return out


@pytest.mark.parametrize("stacks", ["python", "native", "both"])
def test_exceptions_stay_with_the_unwinder_that_they_had(library, tmp_path, stacks):
    argv = [sys.executable, str(PROGRAM), "--library", str(library), "--torch", "--blocks", "1", "--throws", "10"]
    plain = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)["unwinder"]
    run = subprocess.run([harness.COMMAND, "run", "-o", str(tmp_path / "r"), "--stacks", stacks, "--", *argv],
                         capture_output=True, check=True)
    assert "libgcc_s" in plain
    assert json.loads(run.stdout)["unwinder"] == plain
