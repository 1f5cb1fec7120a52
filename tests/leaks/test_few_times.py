"""What comes a few times, many steps apart, may be needed: it is told once, as an info, with what it keeps and how often."""

import harness
import nested
import pytest

pytest.importorskip("torch")

PARAMETER_BYTES = 4 * (128 * 384 + 384 + 384 * 384 + 384 + 384 + 1)
MODEL = """
import copy, torch, gpumemprof
import torch.nn as nn
import torch.nn.functional as F
model = nn.Sequential(nn.Linear(128, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
def train(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SNAPSHOTS = MODEL + """
kept = []
for epoch in range(24):
    for i in range(32):
        train(model(torch.randn(64, 128)).pow(2).mean())
    if epoch % 3 == 2:
        kept.append(copy.deepcopy(model))
with torch.no_grad():
    print(sum(one(torch.randn(64, 128)).sum() for one in kept))
"""
PENALTIES = MODEL + """
def main(tasks):
    weights, anchors = [], []
    for task in range(tasks):
        for i in range(15):
            loss = model(torch.randn(64, 128)).pow(2).mean()
            for of_task, anchor in zip(weights, anchors):
                loss = loss + sum((of_task[name] * (one - anchor[name]) ** 2).sum() for name, one in model.named_parameters())
            train(loss)
        of_task = {name: torch.zeros_like(one) for name, one in model.named_parameters()}
        for _ in range(5):
            model.zero_grad()
            model(torch.randn(64, 128)).pow(2).mean().backward()
            for name, one in model.named_parameters():
                of_task[name] += one.grad ** 2 / 5
        weights.append(of_task)
        anchors.append({name: one.detach().clone() for name, one in model.named_parameters()})
main(5)
"""


def analysis_of(tmp_path, text, *options):
    program = tmp_path / "program.py"
    program.write_text(text)
    return harness.analysis(nested.record(tmp_path / "r", [harness.PYTHON, program], ["-q", *options]).ok().folder)


def test_snapshots_are_told_by_their_line_alone_with_bytes_and_steps_of_one(tmp_path):
    findings = analysis_of(tmp_path, SNAPSHOTS, "--explain-leaks")["findings"]
    (told,) = [one for one in findings if one["kind"] in ("leak", "growth_in_loop", "steady_growth")]
    assert (told["kind"], told["severity"]) == ("growth_in_loop", "info")
    assert (told["evidence"]["times"], told["evidence"]["steps_apart"]) == (8, 96)
    assert told["bytes"] == 8 * PARAMETER_BYTES
    assert f"keeps {PARAMETER_BYTES / 1024:.0f} KiB more once in 96 steps, 8 times" in told["title"]


ON_THE_LINE_OF_A_MODEL = """
import torch, gpumemprof
model = torch.nn.Linear(128, 128)
optimizer = torch.optim.SGD(model.parameters(), 0.02)
kept = []
for i in range(60):
    model(torch.randn(64, 128)).sum().backward(); optimizer.step(); optimizer.zero_grad(); kept.append(torch.ones(1 << 16))
"""


def test_a_plain_tensor_that_is_kept_on_the_line_of_a_model_is_no_activation(tmp_path):
    findings = analysis_of(tmp_path, ON_THE_LINE_OF_A_MODEL)["findings"]
    (told,) = [one for one in findings if one["kind"] == "leak"]
    assert (told["name"], told["evidence"]["bytes_a_step"]) == ("activations_kept", 4 << 16)
    assert told["title"].endswith("keeps 256 KiB more with every step: tensors of every step are kept")
    assert told["evidence"]["holder_name"] == "kept"


def test_what_a_penalty_reads_in_later_steps_is_no_leak_of_batches(tmp_path):
    report = analysis_of(tmp_path, PENALTIES)
    assert [one["title"] for one in report["findings"] if one["severity"] != "info"] == []
    assert not any("batches" in (one["fix"] or "") for one in report["findings"])
