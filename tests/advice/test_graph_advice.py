"""Graphs that no backward pass comes for, and what only looks like one: data that every step reads."""

import json

import harness
import nested
import pytest

pytest.importorskip("torch")


def recorded(tmp_path, code, name="program"):
    """What advise says, and the peak."""
    program = tmp_path / f"{name}.py"
    program.write_text(code)
    folder = nested.record(tmp_path / name, [harness.PYTHON, program], ["-q"]).ok().folder
    said = json.loads(harness.execute([harness.COMMAND, "advise", folder, "--format", "json"]).ok().stdout)
    (device,) = harness.analysis(folder)["devices"]
    return {one["kind"]: one for one in said["advice"]}, device["peak"]["requested_bytes"]


DATA = """
import torch
from torch import nn
x = torch.randn(4096, 128)
weight = torch.randn(128, 1, requires_grad=True)
net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(0, LAST, 64):
    part = x[i : i + 64]
    (net(part) + part @ weight).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("last", [64, 4096], ids=["one_step", "many_steps"])
def test_data_that_is_there_before_the_first_step_is_no_graph(tmp_path, last):
    """Its views are saved in every step, from the first on, and it stays to the end."""
    advice, peak = recorded(tmp_path, DATA.replace("LAST", str(last)))
    assert 20 * 4096 * 128 * 4 > peak and "graph_kept" not in advice


ROLLOUTS = """
import contextlib, torch
from torch import nn
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(128, 512), nn.Tanh(), nn.Linear(512, 128)) for _ in range(3))
    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x
def scores(model, x):
    return model(x).log_softmax(-1)[:, 0]
policy = Policy()
optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
for _ in range(4):
    buffer = []
    for _ in range(3):
        x = torch.randn(1024, 128)
        with CONTEXT:
            old = scores(policy, x)
        buffer.append((x, old))
    for x, old in buffer:
        ratio = (scores(policy, x) - old.detach()).exp()
        optimizer.zero_grad()
        ratio.mean().backward()
        optimizer.step()
"""


def test_rollouts_with_a_graph_that_other_passes_go_by_are_told(tmp_path):
    """The same modules are trained meanwhile, so that backward passes run through them, and end."""
    advice, peak = recorded(tmp_path, ROLLOUTS.replace("CONTEXT", "contextlib.nullcontext()"))
    _, without = recorded(tmp_path, ROLLOUTS.replace("CONTEXT", "torch.no_grad()"), "without")
    first = next(iter(advice.values()))
    assert first["kind"] == "graph_not_needed" and "checkpointing" not in advice
    assert first["title"].startswith("activations made at program.py:21 are stored for a backward() that never runs")
    assert 0.8 * (peak - without) < first["bytes"] <= peak - without


KEPT_FOR_TWO = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(p for _ in range(4) for p in (nn.Linear(128, 128), nn.Tanh())))
    def forward(self, x):
        return self.layers(x)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
features = []
for _ in range(6):
    first = net(torch.randn(2048, 128)).square().mean()
    second = net(torch.randn(64, 128))
    optimizer.zero_grad()
    BACKWARD
    optimizer.step()
"""


@pytest.mark.parametrize("backward", [
    "first.backward(retain_graph=True); second.mean().backward(); first.backward()",
    "second.square().mean().backward(); features.append(second); first.backward()",
])  # fmt: skip
def test_graphs_that_wait_for_a_pass_while_another_one_ends_are_needed(tmp_path, backward):
    advice, _ = recorded(tmp_path, KEPT_FOR_TWO.replace("BACKWARD", backward))
    assert "graph_not_needed" not in advice and "graph_kept" not in advice
