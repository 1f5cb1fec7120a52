"""A machine with GPUs that is none: the fake libnvidia-ml.so.1 of the build, shown one of tests/fakes/nvml/boards."""

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


@pytest.fixture
def sleeper(tmp_path):
    """A process to be found on a GPU. It has a file of the name of NVIDIA's library mapped, as its programs do: in a
    container that is how they are told from others of the same number."""
    library = tmp_path / "libcuda.so.1"
    library.write_bytes(bytes(4096))
    program = (
        "import mmap, sys, time\n"
        "file = open(sys.argv[1], 'rb')\n"
        "kept = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)\n"
        "print('ready', flush=True)\n"
        "time.sleep(120)\n"
    )
    with subprocess.Popen([harness.PYTHON, "-c", program, str(library)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()
