"""Two sets of weights at a hand-off are told with their bytes; two models that stay, and a model that is filled in place, are not."""

import sys

import harness
import nested
import pytest

pytest.importorskip("torch")

LAYERS, WIDTH = 12, 1024
SET_BYTES = LAYERS * (WIDTH * WIDTH + WIDTH) * 4
BEGIN = f"""
import time

import torch
from torch import nn

torch.set_num_threads(1)

def build():
    return nn.Sequential(*[nn.Linear({WIDTH}, {WIDTH}) for _ in range({LAYERS})])

def use(model):
    with torch.no_grad():
        for _ in range(5):
            model(torch.randn(2, {WIDTH}))
            time.sleep(0.1)

model = build()
use(model)
"""
PROGRAMS = {
    "hand_off": "new = build(); new.load_state_dict(model.state_dict()); model = new; del new; use(model)",
    "in_place": "state = {k: v.half() for k, v in model.state_dict().items()}; model.load_state_dict(state); del state; use(model)",
    "teacher_and_student": "student = build(); use(student); use(model)",
    "one_after_the_other": "del model; model = build(); use(model)",
}


def told(folder, name):
    program = folder / f"{name}.py"
    program.write_text(BEGIN + PROGRAMS[name] + "\n")
    nested.record(folder / name, [sys.executable, program]).ok()
    return [f for f in harness.analysis(folder / name)["findings"] if f["kind"] == "double_weights_in_phase"]


@pytest.mark.parametrize("name", ["hand_off"])
def test_two_sets_at_a_hand_off_are_told_with_their_bytes(tmp_path, name):
    (finding,) = told(tmp_path, name)
    assert finding["bytes"] == SET_BYTES
    assert finding["evidence"]["parameters"] == 2 * LAYERS and finding["evidence"]["left_bytes"] == SET_BYTES


@pytest.mark.parametrize("name", ["in_place", "teacher_and_student", "one_after_the_other"])
def test_what_only_looks_like_it_is_not(tmp_path, name):
    assert told(tmp_path, name) == []
