"""A machine whose driver is the fake libcuda.so.1, and programs recorded on it."""

import subprocess
import sys
import textwrap
from pathlib import Path

import harness
import pytest
from fake_machine import Recorded, environment

HERE = Path(__file__).parent
NAMES = ("libcudart.so.12", "libcublas.so.12", "libcudnn.so.9", "libnccl.so.2", "libc10_cuda.so", "libmine.so")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """A folder with the same caller under the names of several libraries."""
    folder = tmp_path_factory.mktemp("libraries")
    for name in NAMES:
        argv = ["gcc", "-O1", "-shared", "-fPIC", "-o", folder / name, HERE / "caller.c"]
        subprocess.run(argv, check=True)
    return folder


@pytest.fixture
def machine(tmp_path):
    """The environment of a machine with a driver; without one where `driver` is false."""
    def make(board="a100-80gb", driver=True, management=True):
        return environment(tmp_path, board, driver, management)

    return make


@pytest.fixture
def record(tmp_path, libraries, machine):
    """`record(code)` runs a piece of Python under `gpumemprof run`; `options` are run's."""

    def run(code, *options, env=None, name="recording"):
        program = tmp_path / "program.py"
        program.write_text("from driver_calls import *\n" + textwrap.dedent(code))
        folder, env = tmp_path / name, env or machine()
        argv = [harness.COMMAND, "run", "-o", str(folder), *options, "--", sys.executable, str(program), str(libraries)]
        done = harness.execute(argv, env=env)
        assert done.rc == 0, repr(done)
        return Recorded(folder, done, env)

    return run
