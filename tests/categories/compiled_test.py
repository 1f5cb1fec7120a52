"""Of a model that torch.compile made, forward is forward where it is trained, and evaluation without gradients."""

import shutil
import sys

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402

DATA, HIDDEN, RESULT = 4 * 256 * 64, 4 * 256 * 256, 4 * 256 * 8


def is_of_call(event, function):
    """In the compiled function that is one of autograd's, after it was compiled (PyTorch's own tensors of that are small)."""
    lines = event.get("stack", [])
    return any("/torch/_functorch/" in line and line.endswith(function) for line in lines) and event["size_bytes"] >= RESULT


@pytest.mark.slow
@pytest.mark.parametrize("backend", [
    "aot_eager",
    pytest.param("inductor", marks=pytest.mark.skipif(not shutil.which("g++"), reason="inductor needs a compiler")),
])  # fmt: skip
def test_a_compiled_forward_has_the_phase_of_what_it_is_for(backend, tmp_path):
    program = [sys.executable, harness.PROGRAMS / "compiled_training.py", backend]
    harness.record(tmp_path / "recording", program, timeout=300).ok()
    events = harness.allocs(harness.events(tmp_path / "recording"))
    trained = [e for e in events if is_of_call(e, "CompiledFunction.forward")]
    # The program's own phase, where one is open, has the place of the others: none is open in a call.
    assert len(trained) >= 16 and {e.get("phase") for e in trained} == {"forward"}
    assert {e.get("phase") for e in events if is_of_call(e, "CompiledFunction.backward")} == {"backward"}
    ends = [n for n, e in enumerate(events) if e.get("phase") == "optimizer"]
    assert {e["phase"] for e in events[ends[-1]:] if "module" in e} == {"evaluation"}
    analysis = harness.analysis(tmp_path / "recording")
    device = next(d for d in analysis["devices"] if d["device"] == "cpu")
    for index, moment in enumerate(analysis["moments"]):
        if moment["kind"] == "phase_begin" and moment["step"] is None and moment["phase"] == "end of forward 7":
            kinds = {kind: column[index] for kind, column in device["categories_at_moments"].items()}
    # What the graph of the compiled function saved: at least what GELU was given; the result is saved by the loss later.
    assert kinds["activation"] >= HIDDEN + RESULT and kinds["input"] == DATA
    assert "without gradients" not in analysis["explanation"], analysis["explanation"]
