"""A leak has one fix, whether its holder was found or not, in analyze and advise."""

import json

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
