"""Models of libraries that PyTorch's own call of a module never runs: their classes have a __call__ of their own, and
functions of autograd's compute."""

import harness
import pytest
from advice.test_graph_advice import recorded

POINTS, BATCHES, BATCH = 400, 60, 100
KERNELS = """
import torch
from torch import nn

def squared(x, y):
    return (x * x).sum(1, keepdim=True) + (y * y).sum(1) - 2 * x @ y.T

class Distance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, scale):
        distance = squared(x, y)
        value = (distance * -scale).exp()
        ctx.save_for_backward(distance.mul_(value))
        return value

    @staticmethod
    def backward(ctx, gradient):
        (derivative,) = ctx.saved_tensors
        return None, None, -(gradient * derivative).sum()

class Module(nn.Module):
    def __call__(self, *inputs):
        return self.forward(*inputs)

class Kernel(Module):
    def __init__(self):
        super().__init__()
        self.scale, self.height = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(1.0))

    def forward(self, x, y):
        return Distance.apply(x, y, self.scale) * self.height

class Prediction:
    def __init__(self, cross, solved, y):
        self.cross, self.solved, self.mean = cross, solved, y @ solved

    def variance(self):
        return 1 - (self.cross.T * self.solved).sum(0)

class Process(Module):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y, self.kernel, self.factor = x, y, Kernel(), None

    def forward(self, x):
        return self.kernel(x, x)

    def __call__(self, x):
        if self.training:
            return super().__call__(x)
        if self.factor is None:
            self.factor = torch.linalg.cholesky(self.kernel(self.x, self.x) + 0.1 * torch.eye(len(self.x)))
        cross = self.kernel(x, self.x)
        return Prediction(cross, torch.cholesky_solve(cross.T, self.factor), self.y)
"""
FITTED = f"""
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
import torch, kernels
x, y = torch.rand({POINTS}, 4), torch.rand({POINTS})
model = kernels.Process(x, y)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    loss = torch.linalg.solve(model(x) + 0.1 * torch.eye({POINTS}), y).dot(y)
    loss.backward()
    optimizer.step()
"""
PREDICTED = f"""
model.eval()
kept = []
with torch.no_grad():
    for _ in range({BATCHES}):
        predicted = model(torch.rand({BATCH}, 4))
        kept.append(KEPT)
print(len(kept))
"""


@pytest.fixture(autouse=True)
def kernels(tmp_path):
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "kernels.py").write_text(KERNELS)


def test_what_a_function_of_autograds_computes_is_no_input(tmp_path):
    """The derivative by the scale is all that it saves, as large as the kernel's matrix."""
    recorded(tmp_path, FITTED, "fitted")
    (device,) = harness.analysis(tmp_path / "fitted")["devices"]
    kinds = device["categories_at_peak"]
    assert kinds["input"] <= POINTS * 4 * 4 + POINTS * 4
    assert kinds["activation"] >= POINTS * POINTS * 4


def test_what_predictions_keep_is_results_and_no_data(tmp_path):
    """A prediction keeps two blocks of a batch by all points; the factor is made once and is no data of files."""
    advice, peak = recorded(tmp_path, FITTED + PREDICTED.replace("KEPT", "predicted"), "kept")
    _, without = recorded(tmp_path, FITTED + PREDICTED.replace("KEPT", "(predicted.mean, predicted.variance())"), "without")
    assert "data_in_memory" not in advice
    told, of_batch = advice["results_kept"], BATCH * POINTS * 4
    assert told["title"].startswith(f"{told['evidence']['blocks']} results of kept.py:18 are live together: ")
    # The last call has operands of its own.
    assert (2 * BATCHES - 2) * of_batch <= told["evidence"]["kept_bytes"] <= (2 * BATCHES + 6) * of_batch
    assert 0.8 * (peak - without) < told["bytes"] <= peak - without
