"""What a training holds now, by category, while it stands still: by the arithmetic of its layers."""

import subprocess

import harness
import pytest
from commands.programs_for_commands import recorded_pid
from live_helpers import picture, serving

# One layer of 512 × 256 and a bias, Adam with its two moments, and a step; then the gradients stay.
TRAINING = """
import sys, torch
model = torch.nn.Linear(256, 512)
optimizer = torch.optim.Adam(model.parameters())
kept = torch.ones(1024, 256)
for _ in range(2):
    optimizer.zero_grad(set_to_none=True)
    model(kept).square().mean().backward()
    optimizer.step()
print("ready", flush=True)
sys.stdin.readline()
"""
LAYER = (512 * 256 + 512) * 4


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("training") / "recording"
    argv = harness.run_argv(folder, [harness.PYTHON, "-c", TRAINING], ["--quiet"])
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield folder
        process.communicate("\n", timeout=60)


def test_top_tells_them(training):
    (recording,) = [one for one in picture()["recordings"] if one["pid"] == recorded_pid(training)]
    (device,) = recording["devices"]
    kinds = {one["category"]: one["bytes"] for one in device["categories"]}
    assert kinds["parameter"] == LAYER and kinds["gradient"] == LAYER
    assert kinds["optimizer state"] == 2 * LAYER + 2 * 4  # each of two tensors counts its steps in a scalar
    assert sum(kinds.values()) == device["allocated_bytes"]
    assert sum(one["count"] for one in device["categories"]) == device["live_blocks"]


def test_the_metrics_tell_them_too(training):
    with serving() as server:
        _, text = server.get("/metrics")
    pid = recorded_pid(training)
    labels = f'pid="{pid}",program="python -c",device="cpu",category="parameter"'
    assert f"gpumemprof_recording_category_bytes{{{labels}}} {LAYER}\n" in text
