"""What modules made and the program keeps, with gradients on: arithmetic on the sizes of programs/kept_outputs.py."""

import collections
import sys

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402
import nested  # noqa: E402

STEPS, OUTPUT, BETWEEN = 12, 4 * 64 * 10, 4 * 64 * 128


def at_end(folder, kept):
    nested.record(folder / kept, [sys.executable, harness.PROGRAMS / "kept_outputs.py", kept], timeout=300).ok()
    analysis = harness.analysis(folder / kept)
    device = next(d for d in analysis["devices"] if d["device"] == "cpu")
    (end,) = [i for i, m in enumerate(analysis["moments"]) if m["kind"] == "phase_begin" and m["phase"] == "end"]
    kinds = collections.Counter({kind: column[end] for kind, column in device["categories_at_moments"].items()})
    return kinds, analysis


@pytest.mark.parametrize(("kept", "size"), [("outputs", OUTPUT), pytest.param("between", BETWEEN, marks=pytest.mark.slow)])
def test_what_each_step_makes_in_a_module_and_is_kept_is_an_activation(kept, size, tmp_path):
    kinds, analysis = at_end(tmp_path, kept)
    assert kinds["framework other"] == 0
    assert kinds["activation"] == STEPS * size and kinds["temporary"] == 0
    assert "reason unknown" not in analysis["explanation"] and "framework's own" not in analysis["explanation"]


def test_what_a_module_makes_once_and_keeps_is_none(tmp_path):
    kinds, _ = at_end(tmp_path, "once")
    assert kinds["framework other"] == OUTPUT and kinds["activation"] == 0


CLEARED_AT_EXIT = """
import atexit, sys, types
kept = []
atexit.register(kept.clear)
sys.modules["IPython"] = types.ModuleType("IPython")
import torch, gpumemprof
gpumemprof.step()
kept.extend(torch.ones(256, 1024) for _ in range(30))
"""


def test_what_the_exit_handler_of_ipython_drops_is_no_temporary(tmp_path):
    """A stand-in for it, which has the variables of a notebook."""
    harness.record(tmp_path / "r", [harness.PYTHON, "-c", CLEARED_AT_EXIT]).ok()  # what is there when torch is imported counts
    (device,) = [d for d in harness.analysis(tmp_path / "r")["devices"] if d["device"] == "cpu"]
    kinds = device["categories_at_peak"]
    assert (kinds["unknown"], kinds["temporary"]) == (30 * 256 * 1024 * 4, 0)


@pytest.mark.slow
def test_where_nothing_is_kept_nothing_is_left(tmp_path):
    kinds, _ = at_end(tmp_path, "nothing")
    assert kinds["framework other"] == kinds["activation"] == kinds["temporary"] == 0
