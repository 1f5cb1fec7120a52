"""A Python that has TensorFlow: GPUMEMPROF_TENSORFLOW_PYTHON's, that of build/venvs/tensorflow, or this one."""

import functools
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import harness
import nested
import pytest

VENV = harness.ROOT / "build" / "venvs" / "tensorflow" / "bin" / "python"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "Agg"}


@functools.cache
def find():
    """The interpreter's path; None where there is none."""
    named = os.environ.get("GPUMEMPROF_TENSORFLOW_PYTHON")
    if named:
        return named
    if VENV.exists():
        return str(VENV)
    spec = importlib.util.find_spec("tensorflow")  # the folder of that name beside this file is none
    return sys.executable if spec is not None and spec.origin is not None else None


def python(*modules):
    """The interpreter's path; skips the test where TensorFlow, or one of the modules, is not installed."""
    path = find()
    if path is None:
        pytest.skip(f"needs tensorflow: neither this Python nor {VENV} has it")
    for module in modules:
        if not harness.has(path, module):
            pytest.skip(f"needs {module} beside tensorflow in {path}")
    return path


def environment(**more):
    """Of a program that imports the packages of this tree."""
    paths = [str(harness.ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return dict(os.environ, PYTHONPATH=os.pathsep.join(paths), **QUIET, **more)


def run(program, folder=None, *arguments, **popen):
    """Runs Python text, under the recorder where `folder` is given; what it printed, once it has ended well."""
    popen = {"timeout": 120, "env": environment(), **popen}
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "program.py"  # AutoGraph wants to read the source
        file.write_text(program)
        argv = [python(), file, *arguments]
        popen["imports"] = ("tensorflow",)
        return (nested.record(folder, argv, **popen) if folder else nested.execute(argv, **popen)).ok()
