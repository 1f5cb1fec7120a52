"""What recording costs a training step on this machine's GPU: a figure of the table, which no test asserts."""

import sys

import harness
import pytest
from test_cuda_recording import cuda  # noqa: F401

pytestmark = pytest.mark.gpu
BENCH = harness.ROOT / "bench"
BOUND = 1.01


def test_the_cost_of_a_training_step_is_told(record, record_property, monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    import pairs

    program = [sys.executable, BENCH / "programs" / "cuda_transformer.py"]
    done = record([*program, "--tool", "gpumemprof", "--most-seconds", "60"], timeout=240).ok()
    (result,) = done.printed()
    taken = result["pairs"]
    assert taken and all(pair["events_per_step"] > 0 for pair in taken)
    ratio = pairs.ratio([pair["on_s"] for pair in taken], [pair["off_s"] for pair in taken])
    record_property("on_to_off", f"{ratio.median:.4f} [{ratio.low:.4f}, {ratio.high:.4f}], bound {BOUND}, {len(taken)} pairs")
