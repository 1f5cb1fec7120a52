"""A leak has one fix, whether its holder was found or not, in analyze and advise; and a small one comes after the peak's own remedy."""

import json
import textwrap

import harness
import nested
import pytest

pytest.importorskip("torch")

ROUNDS, ROWS, WIDTH = 30, 512, 256
FORGOTTEN = f"""
import contextlib, torch
from torch import nn
net = nn.Sequential(*(part for _ in range(4) for part in (nn.Linear({WIDTH}, {WIDTH}), nn.Tanh())), nn.Linear({WIDTH}, 8) if OPEN else nn.Softmax(-1))
kept = []
with MODE:
    for _ in range({ROUNDS}):
        out = net(torch.randn({ROWS}, {WIDTH}))
        kept.append(KEEP)
print(len(kept))
"""
NO_GRAD = "run the loop under torch.no_grad() or torch.inference_mode(): no backward pass uses the graphs"


def program_of(tmp_path, name, text):
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    return path


class Recorded:
    def __init__(self, folder):
        self.folder, report = folder, harness.analysis(folder)
        self.leaks = [one for one in report["findings"] if one["kind"] == "leak"]
        self.peak = report["devices"][0]["peak"]["requested_bytes"]
        self.text = self.said_by("analyze")
        self.next = " ".join(self.text[self.text.index("Next: ") : self.text.index("\n\nFindings")].split()) if self.leaks else ""

    def said_by(self, *command):
        return harness.execute([harness.COMMAND, command[0], self.folder, *command[1:]]).ok().stdout.decode()

    def advice(self):
        return json.loads(self.said_by("advise", "--format", "json"))["advice"]


def recorded(tmp_path, name, text, knows_holders=True):
    """Without the looks nobody knows who holds the memory, as where they took too long."""
    folder = nested.record(tmp_path / name, [harness.PYTHON, program_of(tmp_path, name, text)], ["-q"]).ok().folder
    if not knows_holders:
        for path in folder.glob("holders.*"):
            path.unlink()
    return Recorded(folder)


def forgotten(keep="out", mode="contextlib.nullcontext()", is_open=True):
    return FORGOTTEN.replace("KEEP", keep).replace("MODE", mode).replace("OPEN", str(is_open))


@pytest.mark.parametrize("knows_holders", [True, False])
def test_graphs_that_no_backward_pass_uses_have_no_grad_first_whoever_holds_them(tmp_path, knows_holders):
    told = recorded(tmp_path, "forgotten", forgotten(), knows_holders)
    (leak,) = told.leaks
    assert leak["name"] == "outputs_kept_with_graph" and leak["fix"].startswith(NO_GRAD)
    (advice,) = told.advice()
    assert advice["fix"].lower() == leak["fix"].lower()
    assert told.next == f"Next: stop the leak: {leak['fix']}."
    without = recorded(tmp_path, "no_grad", forgotten(mode="torch.no_grad()")).peak
    # Four results of Tanh a round, and the input.
    assert told.peak - without >= advice["bytes"] >= (ROUNDS - 2) * 4 * ROWS * WIDTH * 4
    if not knows_holders:
        copies = recorded(tmp_path, "copies", forgotten("out.detach().clone()")).peak
        assert leak["fix"].endswith("; or keep detached copies of the part that is needed") and copies < told.peak / 4


def test_detached_results_that_autograd_saved_are_no_graphs(tmp_path):
    (leak,) = recorded(tmp_path, "detached", forgotten("out.detach()", is_open=False), knows_holders=False).leaks
    assert "no_grad" not in leak["fix"] and "detached copies" in leak["fix"]


LIBRARY = """
def fit(model, loss_of, optimizer, loader, epochs, on_batch):
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            made = model(x)
            loss = loss_of(made, y)
            loss.backward()
            optimizer.step()
            on_batch({"x": x, "made": made, "loss": loss})
"""
BATCH, FEATURES, BATCHES, EPOCHS = 32, 784, 20, 3
BATCH_BYTES = BATCH * FEATURES * 4
TRAINED = f"""
import sys, torch
sys.path.insert(0, "PLACE")
from trainer import fit
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn({BATCH * BATCHES}, {FEATURES}), torch.randint(0, 10, ({BATCH * BATCHES},)))
model = nn.Sequential(nn.Linear({FEATURES}, 16), nn.ReLU(), nn.Linear(16, 10))
history = []
fit(model, nn.functional.cross_entropy, torch.optim.SGD(model.parameters(), 0.01), DataLoader(data, {BATCH}), {EPOCHS}, lambda told: history.append(KEEP))
print(len(history))
"""


@pytest.mark.parametrize("keep", ['told["x"]', "told"])
@pytest.mark.parametrize("knows_holders", [True, False])
def test_batches_that_are_kept_are_told_as_batches_with_where_the_library_made_them(tmp_path, keep, knows_holders):
    place = tmp_path / "site-packages"
    place.mkdir()
    (place / "trainer.py").write_text(textwrap.dedent(LIBRARY))
    text = TRAINED.replace("PLACE", str(place))
    told = recorded(tmp_path, "batches", text.replace("KEEP", keep), knows_holders)
    leak = told.leaks[0]
    assert leak["title"].endswith("with every step: batches of every step are kept")
    assert leak["fix"] == "cap how many batches are kept, or keep numbers or paths instead of them"
    assert leak["evidence"]["made_in"].startswith("collate.py:")
    assert f"Made in a library: {leak['evidence']['made_in']}" in told.text
    # With the batch ten outputs a row, and a loss.
    assert BATCH_BYTES <= leak["evidence"]["bytes_a_step"] <= BATCH_BYTES + BATCH * 10 * 4 + 64
    assert told.next == f"Next: stop the leak: {leak['fix']}."
    first = told.advice()[0]
    assert first["kind"] == "inputs_kept" and first["fix"].lower() == leak["fix"].lower()
    without = recorded(tmp_path, "numbers", text.replace("KEEP", 'told["loss"].item()'))
    assert without.leaks == []
    # The loop's variable has a batch while the next is made.
    assert told.peak - without.peak + BATCH_BYTES >= first["bytes"] >= (BATCHES * EPOCHS - 2) * BATCH_BYTES


POINTS, IMAGES, SIDE = 50, 8, 32
ATTRIBUTED = f"""
import torch
from torch import nn
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 15 * 15, 10))
def slopes(images):
    images = images.requires_grad_()
    (slope,) = torch.autograd.grad(model(images)[:, 0].sum(), images)
    return slope
def attribute(images):
    scales = torch.linspace(0, 1, {POINTS}).view(-1, 1, 1, 1, 1)
    points = (scales * images).flatten(0, 1)
    return sum(slopes(part).view(-1, *images.shape).sum(0) for part in points.split(PART))
report = []
for _ in range(14):
    report.append(attribute(torch.randn({IMAGES}, 3, {SIDE}, {SIDE})))
print(len(report))
"""


def test_of_a_leak_that_is_a_small_part_of_the_peak_the_peaks_own_remedy_comes_first(tmp_path):
    told = recorded(tmp_path, "attributed", ATTRIBUTED.replace("PART", str(POINTS * IMAGES)))
    (leak,) = told.leaks
    kept = 14 * IMAGES * 3 * SIDE * SIDE * 4
    assert leak["severity"] == "warning" and leak["bytes"] <= kept + 4096 < told.peak / 20
    first, then = told.next.split(" Then ")
    assert "leak" not in first and "attributed.py" in first, "what has the peak"
    assert then.startswith("stop the leak (") and then.endswith(f"of it in this peak): {leak['fix']}.")
    parts = recorded(tmp_path, "parts", ATTRIBUTED.replace("PART", str(2 * IMAGES)))
    assert parts.peak < told.peak / 2
    summary = harness.record(tmp_path / "run", [harness.PYTHON, tmp_path / "attributed.py"]).ok().stderr.decode()
    assert "gpumemprof: Leak, " in summary and " peak: " in summary[summary.index("gpumemprof: Leak, ") :]


SPENT = f"""
import torch
net = torch.nn.Sequential(torch.nn.Linear({WIDTH}, {WIDTH}), torch.nn.Tanh(), torch.nn.Linear({WIDTH}, 100))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
history = []
for step in range({ROUNDS}):
    optimizer.zero_grad()
    out = net(torch.randn({ROWS}, {WIDTH}))
    out.square().mean().backward()
    optimizer.step()
    history.append(KEEP)
"""


def test_of_results_whose_graphs_were_used_up_only_fewer_or_smaller_ones_save(tmp_path):
    told = recorded(tmp_path, "spent", SPENT.replace("KEEP", "out"))
    (leak,) = told.leaks
    assert leak["fix"] == "remove old entries, or keep numbers (.item()) or a copy of the part that is needed"
    result = ROWS * 100 * 4
    assert leak["evidence"]["bytes_a_step"] == result
    assert abs(told.peak - recorded(tmp_path, "detached", SPENT.replace("KEEP", "out.detach()")).peak) <= result
    assert recorded(tmp_path, "part", SPENT.replace("KEEP", "out[:4].detach().clone()")).peak < told.peak - (ROUNDS - 2) * result
