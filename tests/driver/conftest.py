"""A machine whose driver is the fake libcuda.so.1, and programs recorded on it."""

import subprocess
import sys
import textwrap
from pathlib import Path

import harness
import pytest
from fake_machine import FAKES, Recorded, environment, hip_environment, ze_environment

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


def callers(folder, names, source, fake, library):
    """The same caller under several names, linked to a run time of ours."""
    if not (FAKES / fake).is_dir():
        pytest.skip(f"no fake of {fake} in {FAKES}: `make test` builds it")
    for name in names:
        subprocess.run(["gcc", "-O1", "-w", "-shared", "-fPIC", "-o", folder / name, HERE / source,
                        f"-L{FAKES / fake}", f"-l:{library}"], check=True)  # fmt: skip
    return folder


def recorder(tmp_path, callers_folder, code, options, env, name):
    program = tmp_path / "program.py"
    program.write_text("from hip_calls import *\n" + textwrap.dedent(code))
    folder = tmp_path / name
    argv = [harness.COMMAND, "run", "-o", str(folder), *options, "--", sys.executable, str(program), str(callers_folder)]
    return Recorded(folder, harness.execute(argv, env=env).ok(), env)


@pytest.fixture(scope="session")
def hip_libraries(tmp_path_factory):
    names = ("libc10_hip.so", "librccl.so.1", "librocblas.so.4")
    return callers(tmp_path_factory.mktemp("hip"), names, "hip_caller.c", "hip", "libamdhip64.so.6")


@pytest.fixture
def record_hip(tmp_path, hip_libraries):
    def run(code, *options, env=None, name="recording"):
        return recorder(tmp_path, hip_libraries, code, options, env or hip_environment(tmp_path), name)

    return run


@pytest.fixture(scope="session")
def ze_libraries(tmp_path_factory):
    names = ("libc10_xpu.so", "libur_adapter.so")
    return callers(tmp_path_factory.mktemp("ze"), names, "ze_caller.c", "level_zero", "libze_loader.so.1")


@pytest.fixture
def record_ze(tmp_path, ze_libraries):
    def run(code, *options, machine="machine", **more):
        env = {**ze_environment(tmp_path, machine), **more}
        return recorder(tmp_path, ze_libraries, code, options, env, f"recording of {machine}")

    return run
