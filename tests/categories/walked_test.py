"""Whose memory it is at the end of every step of many programs: what PyTorch's objects say, to the byte, or unknown.

Each program of walked/ walks its parameters, buffers, gradients, optimizer state, copies of weights, data and whatever
else it keeps whenever an optimizer has stepped. No byte may be under a category that it does not have.
"""

import json
import os
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402
import nested  # noqa: E402

WALKED = Path(__file__).resolve().parent / "walked"
ROLES = ["parameter", "buffer", "gradient", "optimizer state"]
# What a reader may honestly call a tensor that a program keeps for reasons of its own.
KEPT = ["activation", "framework other", "unknown"]
QUICK = {"plain", "tied_weights_and_token_ids", "master_weights", "the_best_weights", "predictions_of_an_evaluation"}


def programs(file):
    names = re.findall(r"^def (\w+)\(\):", (WALKED / f"{file}.py").read_text(), re.MULTILINE)
    return [pytest.param(file, n, id=n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in names]


def step_ends(analysis):
    """The number of the walk before each end of a step, and the bytes by category there."""
    device = max((d for d in analysis["devices"] if d["device"] == "cpu"), key=lambda d: d["events"]["alloc"])
    columns, walk = device["categories_at_moments"], None
    for index, moment in enumerate(analysis["moments"]):
        if moment["kind"] == "phase_begin":
            walk = int(moment["phase"].removeprefix("walk "))
        elif moment["kind"] == "step_end" and walk is not None:
            yield walk, {kind: column[index] for kind, column in columns.items()}


def compared(truth, told):
    """Bytes that are right, bytes that are unknown, and bytes under a category that they do not have."""
    wrong = sum(max(0, told.get(kind, 0) - truth[kind]) for kind in (*ROLES, "weight copy", "input"))
    right = sum(min(truth[kind], told.get(kind, 0)) for kind in (*ROLES, "weight copy", "input"))
    missing = sum(truth[kind] - min(truth[kind], told.get(kind, 0)) for kind in (*ROLES, "weight copy", "input"))
    room = sum(told.get(kind, 0) for kind in KEPT)
    wrong += max(0, missing + truth["kept"] - room) if wrong == 0 else 0
    return right, missing, wrong


def measured(folder, file, name):
    """One row a step's end."""
    out = folder / "walks.json"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    program = [sys.executable, WALKED / f"{file}.py", name, out]
    nested.record(folder / "recording", program, env=environment, timeout=300).ok()
    walks, ends = json.loads(out.read_text()), step_ends(harness.analysis(folder / "recording"))
    return [(walks[walk], told, compared(walks[walk], told)) for walk, told in ends]


@pytest.mark.parametrize(("file", "name"), [*programs("training"), *programs("copies"), *programs("others")])
def test_at_every_steps_end_a_byte_is_what_pytorch_says_or_unknown(file, name, tmp_path):
    rows = measured(tmp_path, file, name)
    assert rows
    for number, (truth, told, (_, _, wrong)) in enumerate(rows):
        assert wrong == 0, (number, truth, {kind: size for kind, size in told.items() if size})
