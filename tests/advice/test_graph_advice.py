"""Graphs that no backward pass comes for, and what only looks like one: data that every step reads."""

import json

import harness
import nested
import pytest

pytest.importorskip("torch")


def recorded(tmp_path, code, name="program", options=("-q",)):
    """What advise says, and the peak."""
    program = tmp_path / f"{name}.py"
    program.write_text(code)
    folder = nested.record(tmp_path / name, [harness.PYTHON, program], options).ok().folder
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
with torch.no_grad():
    print(net(x).mean())
del x, part
"""


@pytest.mark.parametrize("last", [64, 4096], ids=["one_step", "many_steps"])
def test_data_that_is_there_before_the_first_step_is_no_graph(tmp_path, last):
    """Its views are saved in every step, from the first on, and the end reads all of it."""
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


RESULTS = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
data = torch.randn(320, 64)
results = []
for begin in range(0, 320, 32):
    results.append(model(data[begin:begin + 32]).softmax(-1))
"""


def test_data_that_a_graph_saved_is_none_of_its_activations(tmp_path):
    advice, _ = recorded(tmp_path, RESULTS)
    told = advice["graph_not_needed"]
    # The peak is in the last batch: its hidden layer is there, its softmax is not.
    assert told["evidence"]["activation_bytes"] == 4 * 32 * (10 * 256 + 9 * 8)
    assert told["title"].startswith("activations made at program.py:8 and other lines are stored for")


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


DISTILLED = """
import sys, torch
from torch import nn
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
    def forward(self, x):
        return torch.relu(x + self.b(torch.relu(self.a(x))))
class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stem, self.head = nn.Linear(32, width), nn.Linear(width, 8)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
    def forward(self, x):
        x = torch.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x)
teacher, student, project = Net(128, 5), Net(32, 2), nn.Linear(32, 128)
seen = {}
for key, block in (("teacher", teacher.blocks[4]), ("student", student.blocks[1])):
    block.register_forward_hook(lambda module, given, made, key=key: seen.__setitem__(key, made))
teacher.requires_grad_(WANTS)
optimizer = torch.optim.SGD([*student.parameters(), *project.parameters()], lr=0.01, momentum=0.9)
for _ in range(5):
    x = torch.randn(2048, 32)
    known = teacher(x)
    made = student(x)
    loss = nn.functional.mse_loss(made, known)
    if FEATURES:
        loss = loss + nn.functional.mse_loss(project(seen["student"]), seen["teacher"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("features", [True, False])
def test_a_teacher_with_gradients_is_told_also_where_its_features_are_compared(tmp_path, features):
    """Its first layer's result, of the model's own forward, is the teacher's, too. The saving is at least what is said."""
    code = DISTILLED.replace("FEATURES", str(features))
    advice, peak = recorded(tmp_path, code.replace("WANTS", "True"))
    _, frozen = recorded(tmp_path, code.replace("WANTS", "False"), "frozen")
    assert next(iter(advice)) == "gradients_unused" and "checkpointing" not in advice
    assert (peak - frozen) // 2 < advice["gradients_unused"]["bytes"] <= peak - frozen


ADAPTERS = """
import torch
from torch import nn
class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.a, self.b = base, nn.Parameter(torch.randn(128, 4)), nn.Parameter(torch.zeros(4, 128))
    def forward(self, x):
        return self.base(x) + (x @ self.a @ self.b) * 0.5
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.first = nn.LayerNorm(128), Adapter(nn.Linear(128, 128))
        self.mlp = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))
    def forward(self, x):
        return x + self.mlp(self.first(self.norm(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.blocks = nn.Embedding(4096, 128), nn.ModuleList(Block() for _ in range(3))
    def forward(self, ids):
        x = self.table(ids)
        for block in self.blocks:
            x = block(x)
        return x
net = Net()
adapters = [p for block in net.blocks for p in (block.first.a, block.first.b)]
net.requires_grad_(WANTS)
for p in adapters:
    p.requires_grad_(True)
optimizer = torch.optim.Adam(adapters)
for _ in range(5):
    net(torch.randint(4096, (64,))).square().mean().backward()
    optimizer.step()
    net.zero_grad()
"""


def test_what_adapters_need_of_layers_that_are_not_trained_stays(tmp_path):
    """Their gradients pass through the layers behind them. The embedding, which is not trained, needs no sparse gradient."""
    advice, peak = recorded(tmp_path, ADAPTERS.replace("WANTS", "True"))
    _, frozen = recorded(tmp_path, ADAPTERS.replace("WANTS", "False"), "frozen")
    told = advice["gradients_unused"]
    # The norms lie beside adapters: they may be frozen in part on purpose.
    weights = 4096 * 128 + 3 * (128 * 128 + 128 + 2 * 128 * 512 + 512 + 128)
    assert told["evidence"]["gradient_bytes"] == 4 * weights and "sparse_gradient" not in advice
    assert (peak - frozen) // 2 < told["bytes"] <= peak - frozen


Q_LEARNING = """
import torch
from torch import nn
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.target = self.made(), self.made()
    def made(self):
        features = nn.Linear(64, 256)
        return nn.Sequential(features, nn.Tanh(), nn.Linear(features(torch.ones(1, 64)).shape[1], 256), nn.Tanh(), nn.Linear(256, 4))
policy = Policy()
optimizer = torch.optim.Adam(policy.net.parameters())
for _ in range(6):
    with torch.no_grad():
        wanted = policy.target(torch.randn(16, 64))
    optimizer.zero_grad()
    (policy.net(torch.randn(16, 64)) - wanted).square().mean().backward()
    optimizer.step()
"""


def test_a_network_that_is_trained_beside_a_target_is_not_to_be_frozen(tmp_path):
    """The policy has called a part of itself while it was set up: it was a model without parts at its first name."""
    advice, _ = recorded(tmp_path, Q_LEARNING)
    assert "gradients_unused" not in advice


GAN = """
import torch
from torch import nn
def layers(*widths):
    return nn.Sequential(*(p for a, b in zip(widths, widths[1:]) for p in (nn.Linear(a, b), nn.Tanh())))
generator, critic = layers(16, 64, 64, 128), layers(128, 256, 256, 256, 1)
of_generator, of_critic = (torch.optim.SGD(model.parameters(), lr=1e-3) for model in (generator, critic))
for _ in range(6):
    fake = generator(torch.randn(1024, 16))
    d_loss = critic(torch.randn(1024, 128)).mean() - critic(GIVEN).mean()
    of_critic.zero_grad()
    d_loss.backward(RETAIN)
    of_critic.step()
    g_loss = critic(fake).mean()
    of_generator.zero_grad()
    g_loss.backward()
    of_generator.step()
"""


def test_a_graph_that_its_pass_retained_for_another_one_is_told_with_what_detaching_saves(tmp_path):
    """The critic's graph of d_loss, which the second pass does not run through: three tanh of two calls, 1,024 x 256 each."""
    advice, peak = recorded(tmp_path, GAN.replace("GIVEN", "fake").replace("RETAIN", "retain_graph=True"))
    healthy, without = recorded(tmp_path, GAN.replace("GIVEN", "fake.detach()").replace("RETAIN", ""), "without")
    told = advice["graph_kept"]
    assert "which retained the graph" in told["title"] and ".detach()" in told["fix"]
    # The peak without it is in the next pass.
    assert 0.7 * (peak - without) < told["bytes"] <= peak - without
    assert told["evidence"]["activation_bytes"] >= 2 * 3 * 1024 * 256 * 4
    assert "graph_kept" not in healthy


def test_a_graph_that_two_losses_need_is_not_kept(tmp_path):
    code = GAN.replace("GIVEN", "fake.detach()").replace("RETAIN", "")
    code = code.replace("    d_loss.backward()", "    d_loss.backward(retain_graph=True)\n    d_loss.square().backward()")
    advice, _ = recorded(tmp_path, code)
    assert "graph_kept" not in advice


PARTS = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 256), nn.Linear(256, 64)
    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(16, 64), nn.Linear(64, 4)
        self.blocks = nn.ModuleList(Block() for _ in range(6))
def main():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(4):
        x = model.embed(torch.randn(1024, 16))
        for block in model.blocks:
            x = CALL
        optimizer.zero_grad()
        model.head(x).square().mean().backward()
        optimizer.step()
main()
"""


def test_blocks_that_a_loop_calls_are_layers_to_checkpoint(tmp_path):
    """No forward() of the model calls them: the list that they are in is known by the loop's variables."""
    advice, peak = recorded(tmp_path, PARTS.replace("CALL", "block(x)"))
    _, without = recorded(tmp_path, PARTS.replace("CALL", "checkpoint(block, x, use_reentrant=False)"), "checkpointed")
    told = advice["checkpointing"]
    assert told["title"].startswith("the 6 layers blocks.* keep ")
    assert 0.5 * (peak - without) < told["bytes"] <= peak - without
