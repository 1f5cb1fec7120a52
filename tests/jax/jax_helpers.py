"""What the tests with JAX share: a Python that has it, and the environment of recorded programs."""

import functools
import os
import sys

import pytest

import harness

VENV = harness.ROOT / "build" / "venvs" / "jax" / "bin" / "python"


@functools.cache
def find():
    """The interpreter's path: GPUMEMPROF_JAX_PYTHON's, that of build/venvs/jax, or this one; None where none has jax."""
    named = os.environ.get("GPUMEMPROF_JAX_PYTHON")
    for path in filter(None, [named, str(VENV) if VENV.exists() else None, sys.executable]):
        if harness.has(path, "jax"):
            return path
    return None


def python(*modules):
    """Skips the test where there is no JAX, or one of the modules is not beside it."""
    path = find()
    if path is None:
        pytest.skip(f"needs jax: neither this Python nor {VENV} has it (pip install jax)")
    for module in modules:
        if not harness.has(path, module):
            pytest.skip(f"needs {module} beside jax in {path}")
    return path


def environment(folder, **more):
    """That of a program which has our packages: `folder` stands in for the .pth file of an environment."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text((harness.ROOT / "python" / "gpumemprof.pth").read_text())
    path = os.pathsep.join([str(site), str(harness.ROOT / "python")])
    quiet = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    return dict(os.environ, PYTHONPATH=path, **quiet, **more)
