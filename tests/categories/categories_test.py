"""Parameters, gradients, optimizer state and activations of small models are what PyTorch itself says, to the byte.

Each program runs twice: once without a recording, with PyTorch's own hooks counting what autograd saves, and once
recorded, with no hook at all. And once more recorded under names that mean nothing.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402
import nested  # noqa: E402
from categories.renaming import renamed  # noqa: E402

PROGRAMS = Path(__file__).resolve().parent / "programs"
TRAINING = ["accumulation", "autocast", "checkpointing", "cnn", "factored", "frozen", "lstm", "mlp", "sgd_momentum",
            "tied", "transformer"]  # fmt: skip
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def counted(program):
    done = nested.execute([sys.executable, program, "count"], env=ENVIRONMENT, timeout=300).ok()
    return json.loads(done.stdout)


def recorded(folder, program):
    """The device's part of the analysis, and by the name of a moment the categories at its beginning."""
    nested.record(folder, [sys.executable, program], env=ENVIRONMENT, timeout=300).ok()
    analysis = harness.analysis(folder)
    device = next(d for d in analysis["devices"] if d["device"] == "cpu")
    moments = {}
    for index, moment in enumerate(analysis["moments"]):
        if moment["kind"] == "phase_begin":
            moments[moment["phase"]] = {
                category: column[index] for category, column in device["categories_at_moments"].items()
            }
    return device, moments


def named(name):
    """The program under its own names, and with every class and variable renamed; the second is quick for one of them."""
    is_slow = [] if name == "transformer" else [pytest.mark.slow]
    return [pytest.param(name, False, id=name), pytest.param(name, True, id=f"{name}-names that mean nothing", marks=is_slow)]


def place(name, is_renamed, folder):
    source = (PROGRAMS / f"{name}.py").read_text()
    shutil.copy(PROGRAMS / "measured.py", folder)
    path = folder / ("abc.py" if is_renamed else f"{name}.py")
    path.write_text(renamed(source, name) if is_renamed else source)
    return path


def assert_peak_is_explained(device):
    peak = device["categories_at_peak"]
    assert sum(peak.values()) == device["peak"]["allocated_bytes"]
    assert peak["unknown"] <= 0.03 * sum(peak.values()), peak
    assert device["attributed_at_peak_bytes"] >= 0.95 * sum(peak.values()), device["by_phase_at_peak"]


@pytest.mark.parametrize(("name", "is_renamed"), [case for name in TRAINING for case in named(name)])
def test_what_a_model_that_learns_holds_is_what_pytorch_says(name, is_renamed, tmp_path):
    path = place(name, is_renamed, tmp_path)
    expected = counted(path)
    device, moments = recorded(tmp_path / "recording", path)
    forward, backward = moments["end of forward"], moments["end of backward"]
    for category in ("parameter", "buffer", "optimizer state"):
        assert forward.get(category, 0) == expected[category], category
    assert backward.get("gradient", 0) == expected["gradient"]
    assert abs(forward["activation"] - expected["activation"]) <= 0.01 * expected["activation"], forward
    assert_peak_is_explained(device)


@pytest.mark.parametrize(("name", "is_renamed"), named("generation"))
def test_a_cache_of_keys_and_values_is_told_from_what_else_a_model_makes(name, is_renamed, tmp_path):
    path = place(name, is_renamed, tmp_path)
    expected = counted(path)
    device, moments = recorded(tmp_path / "recording", path)
    assert moments["end of forward"]["KV cache"] == expected["KV cache"]
    assert moments["end of forward"]["parameter"] == expected["parameter"]
    assert_peak_is_explained(device)
