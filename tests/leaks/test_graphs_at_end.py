"""What an evaluation after the last step keeps with its graph, in too few rounds for a trend."""

import harness
import nested
import pytest

pytest.importorskip("torch")

EVALUATIONS, ROWS, WIDTH = 10, 256, 256
FLOW = f"""
import torch
from torch import nn
field = nn.Sequential(nn.Linear(8, {WIDTH}), nn.Tanh(), nn.Linear({WIDTH}, {WIDTH}), nn.Tanh(), nn.Linear({WIDTH}, 8))
optimizer = torch.optim.SGD(field.parameters(), lr=1e-3)
def density(create):
    x = torch.randn({ROWS}, 8, requires_grad=True)
    made = field(x)
    (slope,) = torch.autograd.grad(made, x, torch.ones_like(made), create_graph=create)
    return made.pow(2).sum(1) - slope.sum(1)
for step in range(14):
    loss = density(True).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
kept = []
for part in range(PARTS):
    KEEP
print(len(kept))
"""
# Both layers' tanh, which their derivatives read.
LEAST_BYTES = EVALUATIONS * 2 * ROWS * WIDTH * 4


def analysis_of(tmp_path, name, keep, parts=EVALUATIONS):
    program = tmp_path / f"{name}.py"
    program.write_text(FLOW.replace("KEEP", keep).replace("PARTS", str(parts)))
    folder = nested.record(tmp_path / name, [harness.PYTHON, program], ["-q"]).ok().folder
    report = harness.analysis(folder)
    return [one for one in report["findings"] if one["kind"] == "leak"], report["devices"][0]["peak"]["requested_bytes"], folder


@pytest.mark.parametrize(("keep", "remedy", "name", "fix"), [
    ("kept.append(density(True).mean())", "kept.append(density(True).mean().item())", "loss_kept_with_graph", "loss.item()"),
    ("kept.append(density(True))", "kept.append(density(True).detach())", "activations_kept", ".detach() of the part"),
])  # fmt: skip
def test_graphs_that_live_at_the_end_are_told_with_who_holds_them(tmp_path, keep, remedy, name, fix):
    (leak,), peak, folder = analysis_of(tmp_path, "program", keep)
    none, without, _ = analysis_of(tmp_path, "remedy", remedy)
    assert none == []
    assert leak["name"] == name and leak["severity"] == "warning" and fix in leak["fix"]
    assert leak["evidence"]["holder_name"] == "kept" and leak["evidence"]["tensors"] == EVALUATIONS
    assert LEAST_BYTES <= leak["bytes"]
    # One graph at a time is there all the same.
    assert peak - without >= leak["bytes"] * (EVALUATIONS - 2) // EVALUATIONS
    said = harness.execute([harness.COMMAND, "advise", folder]).ok().stdout.decode()
    assert "No suggestion" not in said and name in said


@pytest.mark.parametrize(("keep", "parts"), [
    ("kept.append(density(False).detach())", EVALUATIONS),
    ("kept = density(True)", EVALUATIONS),  # one last call, in a variable
    ("kept.append(density(True))", 3),
])  # fmt: skip
def test_results_and_a_last_call_are_no_leak(tmp_path, keep, parts):
    leaks, _, _ = analysis_of(tmp_path, "program", keep, parts)
    assert leaks == []
