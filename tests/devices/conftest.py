"""A machine with GPUs that is none: the fake libnvidia-ml.so.1 of the build, shown one of tests/fakes/nvml/boards."""

import contextlib
import os
import subprocess
from pathlib import Path

import harness
import pytest

FAKES = Path(os.environ.get("GPUMEMPROF_FAKES", Path(harness.ROOT) / "build" / "tests" / "fakes"))
BOARDS = Path(harness.ROOT) / "tests" / "fakes" / "nvml" / "boards"


@pytest.fixture
def machine(tmp_path):
    """Makes the environment of a machine: `machine("h200")`; `pids` puts other PIDs in the place of the board's."""
    if not (FAKES / "nvml-3").is_dir():
        pytest.skip(f"no fakes in {FAKES}: `make test` builds them")

    def make(board, pids=(), generation=3):
        text = (BOARDS / f"{board}.yaml").read_text()
        for old, new in dict(pids).items():
            assert f"pid: {old}\n" in text
            text = text.replace(f"pid: {old}\n", f"pid: {new}\n")
        shown = tmp_path / "board.yaml"
        shown.write_text(text)
        return {**os.environ, "LD_LIBRARY_PATH": str(FAKES / f"nvml-{generation}"), "FAKE_NVML_BOARD": str(shown)}

    return make


# A process to be found on a GPU. It has a file of the name of NVIDIA's library mapped, as its programs do: in a container
# that is how they are told from others of the same number. With a recording it also has that mapped under its own name, as
# a recorded program has its own.
PROGRAM = """
import mmap, os, shutil, sys, time
folder, names = sys.argv[1], [sys.argv[2]]
if len(sys.argv) > 3:
    ticks = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    names.append(f"{folder}/host.{os.getpid()}.{ticks}.gmp")
    shutil.copyfile(sys.argv[3], names[1])
kept = []
for name in names:
    with open(name, "r+b") as file:
        kept.append(mmap.mmap(file.fileno(), 4096))
print("ready", flush=True)
time.sleep(120)
"""


@pytest.fixture
def start(tmp_path):
    """`start()` a process that uses a GPU; `start(recording)` one that has written this."""
    library = tmp_path / "libcuda.so.1"
    library.write_bytes(bytes(4096))
    with contextlib.ExitStack() as stack:

        def begin(*recording):
            argv = [harness.PYTHON, "-c", PROGRAM, str(tmp_path), str(library), *map(str, recording)]
            process = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout.readline() == b"ready\n"
            return process

        yield begin


@pytest.fixture
def sleeper(start):
    return start()
