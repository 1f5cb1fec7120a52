"""GPUMemoryProfiler in a program that has JAX: whose memory its figures are."""
import json
import subprocess

import pytest

from jax_helpers import environment, python

BEGIN = """
import json, jax, jax.numpy as jnp, gpumemprof
jnp.ones((1024, 1024)).block_until_ready()  # the first call compiles
gpumemprof.attach()
def tell(call):
    profiler = gpumemprof.GPUMemoryProfiler("cpu")
    result = profiler.profile_function(call)
    reason = result.basis_reason.rpartition("; ")[2]
    return [result.basis, result.peak_memory_usage(), reason]
"""
ALLOCATES = "lambda: jnp.ones((1024, 1024)).block_until_ready()"
ITS_ONE = 4  # a float32, live while it becomes an array of ones
OF_JAX = "only JAX's memory: the program had not imported PyTorch"
OF_TORCH = "only PyTorch's memory: JAX is recorded by gpumemprof run"


@pytest.mark.parametrize("before, call, expected", [
    ("", ALLOCATES, ["exact", 1024 * 1024 * 4 + ITS_ONE, OF_JAX]),
    ("import torch", ALLOCATES, ["exact", 0, OF_TORCH]),
    ("import torch", "lambda: torch.ones(1000)", ["exact", 4000, OF_TORCH]),
], ids=["jax alone", "jax beside pytorch", "pytorch beside jax"])  # fmt: skip
def test_figures_of_the_host_are_jaxs_where_the_program_has_no_pytorch(tmp_path, before, call, expected):
    argv = [python(*before.split()[1:]), "-c", f"{BEGIN}\n{before}\nprint(json.dumps(tell({call})))"]
    env = environment(tmp_path)
    env.pop("GPUMEMPROF_DIR", None)
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == expected
