"""The bytes a step that a finding tells are those of the tensors that are kept, and what `diff --steps` of the same
recording says between two steps that are whole bursts apart."""

import json
import subprocess

import pytest
from leaks import judge, told
from leaks.shapes import table
from leaks.shapes.text import indented

EPOCHS, STEPS, BATCHES = 5, 8, 6
TRAIN = told.TRAIN.split("\n", 1)[0] + "\n"
STEP = "l = m(torch.randn(8, 64)).mean()\no.zero_grad()\nl.backward()\no.step()\n"
ROWS_BYTES = 4 * 16 * 64
CNN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(8 * 8 * 8, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def evaluate():
    m.eval()
    for _ in range(%d):
        x, y = torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))
        kept.append(functional.cross_entropy(m(x), y))
    m.train()


m = Net()
"""
CNN_STEP = STEP.replace("torch.randn(8, 64)", "torch.randn(4, 3, 16, 16)")
# Of one image, what the graph saves for a backward pass that never comes: the image; what the convolution makes, for
# the normalisation; what the activation makes, for itself and the pooling; indices and values of the pooling; then the
# logarithm of the softmax. Of a batch, the labels, the loss and the weight that it is divided by.
IMAGE_BYTES = 4 * (3 * 16 * 16 + 2 * 8 * 16 * 16 + 8 * 8 * 8 + 10) + 8 * 8 * 8 * 8
CNN_BYTES = 4 * IMAGE_BYTES + 4 * 8 + 2 * 4


def epochs(step, validation):
    return f"for epoch in range({EPOCHS}):\n    for _ in range({STEPS}):\n{indented(step, 2)}{indented(validation)}"


def burst(body):
    return "k = 0\n" + f"for k in range({12 * STEPS}):\n{indented(STEP)}    if k % {STEPS} == {STEPS - 1}:\n{indented(body, 2)}"


# (program, bytes a step by the sizes of what it keeps, the two steps of diff)
GROWTHS = {
    "in each step": (
        told.MODEL + TRAIN + "kept = []\n" + f"for k in range(60):\n{indented(STEP)}    kept.append(torch.randn(16, 64))\n",
        ROWS_BYTES, (20, 50)),
    "in bursts": (
        told.MODEL + TRAIN + "kept = []\n" + burst("for _ in range(3):\n    kept.append(torch.randn(16, 64))\n"),
        3 * ROWS_BYTES / STEPS, (3 * STEPS, 10 * STEPS)),
    "at the validation of each epoch": (
        told.MODEL + TRAIN + "kept = []\n"
        + epochs(STEP, f"for _ in range({BATCHES}):\n    kept.append(m(torch.randn(8, 64)).pow(2).mean())\n"),
        BATCHES * told.GRAPH_BYTES / STEPS, (STEPS, 4 * STEPS)),
    "in few long steps": (
        told.MODEL + TRAIN + "kept = []\n"
        + "for k in range(10):\n    for _ in range(12):\n        m(torch.randn(8, 64)).mean().backward()\n"
          "        kept.append(torch.randn(16, 64))\n    o.step()\n    o.zero_grad()\n",
        12 * ROWS_BYTES, (4, 8)),
    "at the validation of each epoch, through convolutions": (
        CNN % BATCHES + "o = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9)\nkept = []\n" + epochs(CNN_STEP, "evaluate()\n"),
        BATCHES * CNN_BYTES / STEPS, (STEPS, 4 * STEPS)),
}  # fmt: skip


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("growths")
    programs = {name: folder / f"p{number}.py" for number, name in enumerate(GROWTHS)}
    for name, path in programs.items():
        path.write_text(told.text(GROWTHS[name][0]))
    recorded = table.record(folder / "recorded", [str(path) for path in programs.values()])
    return {name: recorded[str(path)] for name, path in programs.items()}


def live_bytes_between(recording, first, last):
    """What was live at the end of the second step more than at that of the first, by `gpumemprof diff --steps`."""
    argv = [table.COMMAND, "diff", recording, "--steps", str(first), str(last), "--format", "json"]
    return json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)["end"]["delta_bytes"]


@pytest.mark.parametrize("name", GROWTHS)
def test_bytes_a_step_are_arithmetic_and_what_diff_says_between_two_steps(recordings, name):
    _, bytes_a_step, (first, last) = GROWTHS[name]
    (leak,) = (f for f in table.findings(recordings[name]) if judge.grows(f))
    assert live_bytes_between(recordings[name], first, last) == bytes_a_step * (last - first)
    assert leak["evidence"]["bytes_a_step"] == pytest.approx(bytes_a_step, rel=0.05)
