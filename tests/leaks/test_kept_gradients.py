"""Gradients that stay allocated from step to step."""

import pytest

import harness
import nested

pytest.importorskip("torch")


def test_kept_gradients_of_a_few_bytes_are_not_told(tmp_path):
    """4,100 bytes beside batches of 16 MiB: less than 0.1 % of the peak."""
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "model = torch.nn.Linear(1024, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 1e-3)\n"
        "for step in range(12):\n"
        "    model(torch.randn(4096, 1024)).sum().backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad(set_to_none=False)\n"
    )
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program]).ok().folder
    assert [one["name"] for one in harness.analysis(folder)["findings"] if one["kind"] == "leak"] == []
