"""Memory that oneDNN asks for itself is a workspace in a recording with native stacks, and nothing else is."""

import os
import sys

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402

PROGRAM = """
import torch
from torch import nn
model = nn.Sequential(nn.Conv2d(8, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1))
for step in range(2):
    model(torch.randn(4, 8, 64, 64)).sum().backward()
"""


def native_part(stack):
    """Function names between the allocator and the first frame of Python."""
    names = []
    for line in stack:
        if ".py:" in line or line.startswith("<string>"):
            return names
        names.append(line)
    return names


def test_what_onednn_copies_for_itself_is_a_workspace(tmp_path):
    program = tmp_path / "convolve.py"
    program.write_text(PROGRAM)
    recording = tmp_path / "recording"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    harness.record(recording, [sys.executable, program], ("--stacks", "both"), env=environment, timeout=300).ok()
    (device,) = [d for d in harness.analysis(recording)["devices"] if d["device"] == "cpu"]
    held = device["holders_at_peak"]
    copies = [h for h in held if any("reorder_if_differ_in" in name for name in native_part(h["stack"]))]
    if not copies:
        pytest.skip("this processor's convolutions need no other layout, or libtorch has no symbols")
    assert {h["category"] for h in copies} == {"workspace"}
    assert device["categories_at_peak"]["workspace"] == sum(h["bytes"] for h in copies)
