"""Reports have the advice of `advise`; what could not be read for it is said."""

import json

import harness
import nested
import pytest
from carried_page import CarriedPage

pytest.importorskip("torch")

# Gradients of 1 MiB that stay while a step needs as much for its activations.
PROGRAM = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 512, bias=False), torch.nn.ReLU())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad(set_to_none=False)
    net(torch.ones(1024, 512)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    (folder / "net.py").write_text(PROGRAM)
    return nested.record(folder / "recording", [harness.PYTHON, folder / "net.py"]).ok().folder


def command(*words):
    return harness.execute([harness.COMMAND, *words]).ok().stdout.decode()


def test_the_analysis_has_what_advise_says(recording):
    advised = json.loads(command("advise", recording, "--format", "json"))
    found = json.loads(command("analyze", recording, "--format", "json"))["advice"]
    assert found == advised and [one["kind"] for one in found["advice"]] == ["gradients_kept"]
    assert found["advice"][0]["basis"] == "simulated"
    page = CarriedPage(command("analyze", recording, "--format", "html")).text
    assert "What to change" in page and "simulated on the recorded trace" in page
    assert "1 suggestion\n" in command("analyze", recording, "--advice") and "suggestion" not in command("analyze", recording)
    # Under other names the trace is another one.
    assert "advice" not in json.loads(command("analyze", recording, "--format", "json", "--anonymize"))


def test_holders_that_cannot_be_read_are_told(recording):
    broken = recording / "holders.1.1.json"
    broken.write_text("{")
    try:
        text = command("advise", recording)
        (line,) = [line for line in text.splitlines() if line.startswith("Not checked: holders ")]
        assert broken.name in line
        assert broken.name in json.loads(command("advise", recording, "--format", "json"))["unknown"]["holders"]
    finally:
        broken.unlink()
