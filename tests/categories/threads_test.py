"""Models that other threads call, while the main one waits for them: their parameters have their names all the same."""

import sys

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402
import nested  # noqa: E402

BYTES = 4  # of a float
SERVER = """
import threading
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1024, 256)
        self.second = nn.Linear(256, 64)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Service:
    def __init__(self):
        self.net = Net().eval()

    def answer(self):
        with torch.no_grad():
            for _ in range(50):
                self.last = self.net(torch.randn(8, 1024))


def main():
    service = Service()
    threads = [threading.Thread(target=service.answer) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


%s
"""
# In a variable of the main thread's function, or of the module.
PLACES = {"a function's variable": "main()", "a module's variable": "service = Service()\nmain = service.answer\n"
          "thread = threading.Thread(target=main)\nthread.start()\nthread.join()"}  # fmt: skip


@pytest.mark.parametrize("where", PLACES)
def test_parameters_of_a_model_that_threads_call_are_named(where, tmp_path):
    program = tmp_path / "serve.py"
    program.write_text(SERVER % PLACES[where])
    nested.record(tmp_path / "recording", [sys.executable, program], timeout=300).ok()
    device = next(d for d in harness.analysis(tmp_path / "recording")["devices"] if d["device"] == "cpu")
    parameters = BYTES * ((1024 + 1) * 256 + (256 + 1) * 64)
    assert device["categories_at_peak"]["parameter"] == parameters
    modules = {m["module"] for m in device["by_module_at_peak"]}
    assert {"first", "second"} <= modules, modules
