"""A program may have packages called gpumemprof and tfmemprof of its own: it gets these, and is recorded all the same."""

import pytest

import harness

PROGRAM = """
import sys
import torch
import gpumemprof, tfmemprof
print(gpumemprof.WHOSE, tfmemprof.WHOSE)
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 16)).sum().backward()
optimizer.step()
torch.empty(1 << 60)
"""


def test_a_programs_own_packages_of_our_names(tmp_path):
    pytest.importorskip("torch")
    for name in ("gpumemprof", "tfmemprof"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("WHOSE = 'its own'\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = harness.record(tmp_path / "r", [harness.PYTHON, "program.py"], cwd=tmp_path)
    assert (done.rc, done.stdout) == (1, b"its own its own\n")
    summary = done.stderr.partition(b"gpumemprof: ")
    assert b"RuntimeError" in summary[0] and b"gpumemprof" not in summary[0].replace(bytes(tmp_path), b"")
    # What needs our own modules is there: names of modules, and what an uncaught error leaves.
    frames = {frame for event in harness.events(tmp_path / "r") for frame in event.get("stack", [])}
    assert "<torch module> Linear" in frames
    (bundle,) = (tmp_path / "r" / "oom_dumps").glob("oom_dump_*")
    assert f"gpumemprof: What held the memory is in {bundle}\n" in done.stderr.decode()
    assert b'"basis": "exact"' in (bundle / "live_memory.json").read_bytes()
