"""A program under `gpumemprof run`, in its three forms: waited for, started, in a terminal."""

import os
import subprocess
import textwrap

import pytest
from launching import BIN, PYTHON, STAND_IN, Terminal, compile_c


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("probe"), "libgpumemprof_probe.so", STAND_IN, "-shared", "-fPIC")


@pytest.fixture
def env(probe, tmp_path):
    loaded = tmp_path / "loaded"
    loaded.mkdir()
    result = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMPROF_", "LD_"))}
    return result | {"GPUMEMPROF_PROBE": probe, "STAND_IN_DIR": str(loaded), "LC_ALL": "C.UTF-8"}


@pytest.fixture
def run(env, tmp_path):
    """Runs a program under `gpumemprof run` and waits for it."""

    def call(*command, options=(), folder="rec", more_env=None, **kwargs):
        kwargs.setdefault("capture_output", True)
        words = [BIN, "run", "-o", str(tmp_path / folder), *options, "--", *command]
        return subprocess.run(words, env=env | (more_env or {}), timeout=60, **kwargs)

    return call


@pytest.fixture
def start(env, tmp_path):
    """Starts a Python program under `gpumemprof run`; it says "ready" when it is."""
    processes = []

    def call(source, *, options=(), **kwargs):
        words = [BIN, "run", "-o", str(tmp_path / "rec"), *options, "--", PYTHON, "-c", textwrap.dedent(source)]
        process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        processes.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield call
    for process in processes:
        process.terminate()  # goes on to the program
        process.communicate()


@pytest.fixture
def terminal(env, tmp_path):
    made = []

    def call(source, options=("-q",)):
        words = [BIN, "run", *options, "-o", str(tmp_path / "rec"), "--", PYTHON, "-c", textwrap.dedent(source)]
        made.append(Terminal(words, env))
        return made[-1]

    yield call
    for one in made:
        one.close()
