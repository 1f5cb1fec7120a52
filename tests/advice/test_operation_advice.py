"""What an operation keeps at the peak, by the shapes of its tensors, however the program calls it."""

import json

import harness
import nested
import pytest

pytest.importorskip("torch")

LENGTH, HEADS, WIDTH = 1024, 2, 64
SCORES = HEADS * LENGTH * LENGTH * 4
ATTENTION = f"""
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear({WIDTH}, 3 * {WIDTH})

    def forward(self, x):
        q, k, v = self.qkv(x).view(1, {LENGTH}, 3, {HEADS}, {WIDTH // HEADS}).permute(2, 0, 3, 1, 4)
        weights = q @ k.transpose(-2, -1)
        weights = SOFTMAX
        return (weights @ v).transpose(1, 2).reshape(1, {LENGTH}, {WIDTH})

model = nn.Sequential(Attention(), Attention())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    model(torch.randn(1, {LENGTH}, {WIDTH})).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("softmax", ["weights.softmax(-1)", "torch.softmax(weights, -1)", "nn.functional.softmax(weights, -1)"])
def test_scores_of_attention_are_told_however_softmax_is_called(tmp_path, softmax):
    """Both layers' scores, and the gradient of those whose backward pass runs."""
    program = tmp_path / "attention.py"
    program.write_text(ATTENTION.replace("SOFTMAX", softmax))
    done = nested.record(tmp_path / "r", [harness.PYTHON, program], ["-q"]).ok()
    report = json.loads(harness.execute([harness.COMMAND, "advise", done.folder, "--format", "json"]).ok().stdout)
    (found,) = [one for one in report["advice"] if one["kind"] == "fused_attention"]
    assert found["bytes"] == 3 * SCORES and found["title"].startswith("attention keeps its scores (attention.py:13): ")


TOO_LARGE = """
import resource, torch
from torch import nn
model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(4)))
optimizer = torch.optim.Adam(model.parameters())
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20),) * 2)
batch = 1024
while True:
    model(torch.randn(batch, 512)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    batch *= 2
"""


def test_a_program_that_ran_out_of_memory_is_told_what_half_a_batch_saves(tmp_path):
    program = tmp_path / "too_large.py"
    program.write_text(TOO_LARGE)
    folder = harness.record(tmp_path / "r", [harness.PYTHON, program], ["-q"]).folder
    said = json.loads(harness.execute([harness.COMMAND, "advise", folder, "--format", "json"]).ok().stdout)
    (advice,) = [one for one in said["advice"] if one["kind"] == "smaller_batch"]
    # Each layer keeps its ReLU's result, which is the next layer's input: a checkpoint would keep the same.
    assert "checkpointing" not in [one["kind"] for one in said["advice"]]
    assert advice["title"].endswith("The step ended there: its rest may need more")
    (device,) = harness.analysis(folder)["devices"]
    held = device["categories_at_peak"]
    of_batch = sum(held.get(name, 0) for name in ("activation", "input", "temporary"))
    weights = 4 * (512 * 512 + 512) * 4
    assert of_batch == device["peak"]["allocated_bytes"] - sum(
        held.get(name, 0) for name in ("parameter", "optimizer state", "gradient", "unknown"))
    # The gradient of the loss, which autograd makes before its passes: there where the backward pass was refused.
    of_no_phase = of_batch - advice["evidence"]["held_bytes"]
    assert of_no_phase in (0, 4)
    assert held["parameter"] == weights and advice["bytes"] == (of_batch - of_no_phase) // 2 and advice["basis"] == "at stake"


TOO_LONG = """
import resource, torch
from torch import nn
model = nn.Linear(512, 512)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20),) * 2)
def scores(x):
    return x @ x.T
for length in *[1024] * 5, LONG:
    scores(model(torch.randn(length, 512))).square().mean().backward()
"""


def told_of_too_long(tmp_path, length):
    program = tmp_path / "too_long.py"
    program.write_text(TOO_LONG.replace("LONG", str(length)))
    done = harness.record(tmp_path / "r", [harness.PYTHON, program], [])
    said = json.loads(harness.execute([harness.COMMAND, "advise", done.folder, "--format", "json"]).ok().stdout)
    (refused,) = harness.analysis(done.folder)["end"]["refused"]
    assert refused["requested_bytes"] == length**2 * 4 and refused["largest_served_bytes"] == 1024**2 * 4
    assert "The largest request that was served with that stack was 4.00 MiB." in done.stderr.decode()
    return said, refused["address_space_limit_bytes"] - refused["address_space_bytes"]


def test_where_what_was_left_held_less_than_half_of_the_refused_request_a_smaller_part_is_told(tmp_path):
    said, left = told_of_too_long(tmp_path, 20_000)
    parts = -(-(20_000**2 * 4) // left)
    (advice,) = [one for one in said["advice"] if one["kind"] == "smaller_batch"]
    held = advice["evidence"]["held_bytes"]
    assert parts > 2 and advice["fix"].startswith(f"Use at most 1/{parts} of the batch") and advice["bytes"] == held - held // parts


def test_where_what_was_left_held_no_part_of_the_refused_request_none_is_suggested(tmp_path):
    said, left = told_of_too_long(tmp_path, 60_000)
    assert 60_000**2 * 4 // 16 >= left
    assert [one for one in said["advice"] if one["kind"] == "smaller_batch"] == []
    assert said["unknown"]["smaller_batch"] == "what was left would not have held a sixteenth of the refused request"


BLOCKS = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.widen, self.narrow = nn.Linear(128, 512), nn.Linear(512, 128)
    def forward(self, x):
        return x + self.narrow(torch.tanh(self.widen(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(8))
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net(torch.randn(2048, 128)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_blocks_whose_own_code_keeps_activations_can_be_checkpointed(tmp_path):
    program = tmp_path / "blocks.py"
    program.write_text(BLOCKS)
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["-q"]).ok().folder
    said = json.loads(harness.execute([harness.COMMAND, "advise", folder, "--format", "json"]).ok().stdout)
    (advice,) = [one for one in said["advice"] if one["kind"] == "checkpointing"]
    wide, narrow = 2048 * 512 * 4, 2048 * 128 * 4  # of a block: tanh's result, and its output but for the last one
    kept = 8 * wide + 7 * narrow
    assert advice["evidence"] == {"activation_bytes": kept, "blocks": 8}
    assert advice["bytes"] == kept - (8 * narrow + wide)  # each keeps its input, and one block all


OUTPUTS = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 16))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
history = []
for _ in range(30):
    out = net(torch.randn(512, 512))
    optimizer.zero_grad()
    out.square().mean().backward()
    optimizer.step()
    history.append(out)
"""


def test_a_graph_that_a_leak_keeps_is_told_as_the_leak_alone(tmp_path):
    program = tmp_path / "outputs.py"
    program.write_text(OUTPUTS)
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["-q"]).ok().folder
    said = json.loads(harness.execute([harness.COMMAND, "advise", folder, "--format", "json"]).ok().stdout)
    assert [(one["kind"], one["evidence"]["kept_bytes"] % (512 * 16 * 4)) for one in said["advice"]] == [("activations_kept", 0)]


PARTS, ROWS, COLUMNS = 6, 4096, 64
TANH = ROWS * COLUMNS * 4
ACCUMULATING = f"""
import torch
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear({COLUMNS}, {COLUMNS}), nn.Tanh(), nn.Linear({COLUMNS}, {COLUMNS}), nn.Tanh(), nn.Linear({COLUMNS}, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(4):
    total = 0
    for part in range({PARTS}):
        x = torch.randn({ROWS}, {COLUMNS})
        loss = model(x).square().mean() / {PARTS}
        ENDS
    DONE
    optimizer.step()
    optimizer.zero_grad()
"""


def accumulated(tmp_path, ends, done):
    program = tmp_path / "parts.py"
    program.write_text(ACCUMULATING.replace("ENDS", ends).replace("DONE", done))
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["-q"]).ok().folder
    advice = json.loads(harness.execute([harness.COMMAND, "advise", folder, "--format", "json"]).ok().stdout)["advice"]
    return [one for one in advice if one["kind"] == "late_backward"]


def test_parts_whose_losses_are_added_up_keep_all_their_graphs(tmp_path):
    """Each saves what two Tanh made, and the last layer's result for square(), which the one in backward has freed."""
    (found,) = accumulated(tmp_path, "total = total + loss", "total.backward()")
    held = found["evidence"]["graph_bytes"]
    assert found["evidence"]["calls"] == PARTS and PARTS * 2 * TANH <= held <= PARTS * (2 * TANH + ROWS * 4)
    assert found["bytes"] == held // PARTS * (PARTS - 1) and found["basis"] == "at stake" and found["cost"]
    assert found["title"].startswith(f"graphs of {PARTS} calls at parts.py:11 wait for one backward pass: ")


def test_parts_with_a_backward_pass_each_are_no_late_one(tmp_path):
    assert accumulated(tmp_path, "loss.backward()", "pass") == []


def advised(tmp_path, code):
    program = tmp_path / "program.py"
    program.write_text(code)
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["-q"]).ok().folder
    return json.loads(harness.execute([harness.COMMAND, "advise", folder, "--format", "json"]).ok().stdout), folder


SAMPLES = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 1))
x = torch.randn(512, 64)
{}
kept = [net(x) for _ in range(8)]
print(len(kept))
"""
TRAINING = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    (net(x).square().mean() + net(-x).square().mean()).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("before", "others", "fix"), [
    ("", 4, "run what is not trained under torch.no_grad() or inference_mode()"),
    (TRAINING, 13, "stop the leak: run the loop under torch.no_grad() or torch.inference_mode()"),  # more than any step had
], ids=["prediction", "after_training"])  # fmt: skip
def test_graphs_that_a_program_keeps_to_its_end_are_not_needed(tmp_path, before, others, fix):
    """Of each sample the result of ReLU, and the mask and the result of Dropout, twice; nothing is ever computed again for them."""
    said, folder = advised(tmp_path, SAMPLES.format(before))
    part = 512 * 512 * 4
    (advice,) = [one for one in said["advice"] if one["kind"] in ("graph_not_needed", "checkpointing")]
    assert advice["kind"] == "graph_not_needed" and advice["evidence"]["activation_bytes"] == 8 * 6 * part
    # Two parts are live at a time, and what the operation between them frees again; in training those of two calls.
    assert (8 * 6 - others) * part <= advice["bytes"] <= (8 * 6 - 2) * part
    text = harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode()
    assert f"Next: {fix}" in " ".join(text.split())


def test_layers_of_one_operation_are_not_checkpointed(tmp_path):
    """The input of ReLU would stay instead of its result, and what Dropout makes is kept for the next layer."""
    layers = "nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.5), " * 4
    code = SAMPLES.format(TRAINING).split("kept =")[0]
    code = code.replace(code.splitlines()[3], f"net = nn.Sequential({layers}nn.Linear(512, 1))").replace("512, 64)", "512, 512)")
    said, _ = advised(tmp_path, code)
    assert said["applies"] and "checkpointing" not in {one["kind"] for one in said["advice"]}


def test_blocks_of_the_model_itself_are_named_by_their_numbers_and_keep_the_input_of_each_call(tmp_path):
    blocks = "nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh()), " * 4
    said, _ = advised(
        tmp_path,
        f"""
import torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 256), {blocks}nn.Linear(256, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    (net(torch.randn(2048, 256)).mean() + net(torch.randn(2048, 256)).mean()).backward()
    optimizer.step()
""",
    )
    (advice,) = [one for one in said["advice"] if one["kind"] == "checkpointing"]
    part = 2048 * 256 * 4
    # Two calls, two results each.
    assert advice["evidence"] == {"activation_bytes": 4 * 2 * 2 * part, "blocks": 4}
    assert advice["title"].startswith("the 4 layers Sequential.{1-4} keep ")
    # Of four each block keeps two, and one block keeps all. Backward makes gradients of up to two parts beside them.
    assert 3 * 2 * part - 3 * part <= advice["bytes"] <= 3 * 2 * part


DERIVATIVES = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters())
x = torch.rand(4096, 2, requires_grad=True)
def derivative(y):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]
for _ in range(3):
    optimizer.zero_grad()
    derivative(derivative(net(x))).square().mean().backward()
    optimizer.step()
"""


def test_what_backward_makes_for_a_derivative_is_not_checkpointed(tmp_path):
    said, folder = advised(tmp_path, DERIVATIVES)
    assert "checkpointing" not in {one["kind"] for one in said["advice"]}
    text = " ".join(harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode().split())
    assert "Next: a smaller batch. " in text and "or checkpointing" not in text


RELOADS = """
import os, tempfile, torch
from torch import nn
net = nn.Linear(1024, 512, bias=False)
optimizer = torch.optim.Adam(net.parameters())
path = os.path.join(tempfile.mkdtemp(), "last.pt")
for epoch in range(6):
    optimizer.zero_grad()
    net(torch.randn(8, 1024)).square().mean().backward()
    optimizer.step()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
    if epoch % 2:
        saved = torch.load(path)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
"""


def test_of_a_checkpoint_that_is_loaded_again_the_copy_of_the_weights_is_kept(tmp_path):
    """The optimizer takes its state over. While the next one is loaded, the weights of both are live, and one is needed."""
    said, _ = advised(tmp_path, RELOADS)
    (advice,) = [one for one in said["advice"] if one["kind"] == "checkpoint_file_kept"]
    weights = 1024 * 512 * 4
    assert advice["evidence"] == {"loaded_bytes": 2 * weights} and advice["bytes"] == weights
    assert advice["title"].endswith(": 4.00 MiB at the peak, with the one that was being loaded")
    # The optimizer has stepped, and the file is written again.
    assert advice["fix"] == "Del the dictionary as soon as it is copied into the model"


TOKENS, VOCABULARY = 512, 8192
LOSS = f"""
import torch
from torch import nn
from torch.nn import functional
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding({VOCABULARY}, 32), nn.Linear(32, {VOCABULARY}, bias=False)
    def forward(self, ids):
        return self.head(self.embed(ids))
model, reference = Net(), Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    with torch.no_grad():
        ids = torch.randint({VOCABULARY}, (REFERENCE,))
        known = functional.log_softmax(reference(ids), -1).mean()
    ids = torch.randint({VOCABULARY}, ({TOKENS},))
    (functional.cross_entropy(model(ids), ids) + known).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(("reference", "blocks", "title"), [
    (4 * TOKENS, 4, "without gradients, one call makes log-probabilities of all tokens (loss.py:16): "),
    (1, 3, "the loss holds log-probabilities and gradients of logits (loss.py:18): "),
])  # fmt: skip
def test_the_loss_is_told_with_what_its_blocks_are(tmp_path, reference, blocks, title):
    """Log-probabilities and, of what is trained, their gradient and that of the logits while the backward pass runs."""
    program = tmp_path / "loss.py"
    program.write_text(LOSS.replace("REFERENCE", str(reference)))
    done = nested.record(tmp_path / "r", [harness.PYTHON, program], ["-q"]).ok()
    report = json.loads(harness.execute([harness.COMMAND, "advise", done.folder, "--format", "json"]).ok().stdout)
    (found,) = [one for one in report["advice"] if one["kind"] == "chunked_loss"]
    assert found["bytes"] // (TOKENS * VOCABULARY * 4) == blocks and found["title"].startswith(title), found
    assert ("checkpoint" in found["fix"]) == (reference == 1)
