"""The environment of a machine with the fake driver."""

import os
from pathlib import Path

import harness
import pytest

HERE = Path(__file__).parent
FAKES = Path(os.environ.get("GPUMEMPROF_FAKES", Path(harness.ROOT) / "build" / "tests" / "fakes"))
BOARDS = Path(harness.ROOT) / "tests" / "fakes" / "nvml" / "boards"


def environment(folder, board="a100-80gb", driver=True, management=True):
    """Its state lies in `folder`; without a driver where `driver` is false."""
    if not (FAKES / "cuda").is_dir():
        pytest.skip(f"no fakes in {FAKES}: `make test` builds them")
    folders = [FAKES / "cuda"] if driver else []
    if management:
        folders.append(FAKES / "nvml-3")
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(map(str, folders)),
        "FAKE_NVML_BOARD": str(BOARDS / f"{board}.yaml"),
        "FAKE_GPU_STATE": str(folder / "machine"),
        "PYTHONPATH": str(HERE),
        "TMPDIR": str(folder),
    }
