"""Runs a piece of Python under `gpumemprof run` or after attach(), and gives what it printed as JSON."""

import os
import sys
import textwrap

import nested

PREAMBLE = """
import json, sys
import torch
import gpumemprof
from gpumemprof import GPUMemoryProfiler
MIB = 2**20

def tensor(size_bytes):
    return torch.empty(size_bytes, dtype=torch.uint8)

def rise(result):
    return result.memory_peak.allocated_memory - result.memory_before.allocated_memory

def show(**values):
    print(json.dumps(values))
"""


def run(code, tmp_path, how="attach", timeout_s=120, execute=nested.execute):
    """The values that the code gave to show(), under `how`: "attach", "run" or "plain"."""
    start = "gpumemprof.attach()\n" if how == "attach" else ""
    script = tmp_path / "program.py"
    script.write_text(PREAMBLE + start + textwrap.dedent(code))
    argv = [sys.executable, script]
    popen = {"timeout": timeout_s, "env": dict(os.environ, OMP_NUM_THREADS="1")}
    done = nested.record(tmp_path / "recording", argv, **popen) if how == "run" else execute(argv, **popen)
    return done.ok().printed()[-1]
