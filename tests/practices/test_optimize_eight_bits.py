"""An optimizer in eight bits where a library for it is installed: what it saves is arithmetic."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = Path(__file__).parent / "programs" / "optimize_eight_bits.py"
WEIGHTS = 1024 * 1024
STEP = 4  # the count of steps, a number of four bytes
WHOLE = 2 * WEIGHTS * 4 + STEP


def optimized(library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed: scripts/setup optimizers installs it")
    env = dict(os.environ, OMP_NUM_THREADS="1")
    words = [sys.executable, PROGRAM, library]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_torchao_keeps_two_bytes_a_weight():
    """Moments of a byte a weight, a scale of four bytes for 256 of them, and a table of 256 values."""
    said = optimized("torchao")
    state = 2 * (WEIGHTS + WEIGHTS // 256 * 4 + 256 * 4) + STEP
    assert said["applied"] and said["kind"] == "torchao" and said["moved"] and said["state"] == state
    # Its compiled step has scratch memory of its own, some pages of it.
    assert 0 <= WHOLE - state - said["saved"] <= 64 << 10
    assert "trains differently" in said["reason"] and "decoupled_weight_decay" not in said["reason"]


@pytest.mark.slow
def test_what_saves_nothing_is_measured_and_taken_back():
    """On a CPU bitsandbytes makes its moments whole in each step: the peak is not lower for it."""
    said = optimized("bitsandbytes")
    assert said["applied"] == (said["saved"] > 0)
    if not said["applied"]:
        assert said["kind"] == "torch" and said["reason"] == "saves nothing" and said["state"] == WHOLE
