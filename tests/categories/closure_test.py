"""What a closure runs within an optimizer's step is forward and backward, and holds what the same code holds in a loop."""

import functools
import sys

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402
import nested  # noqa: E402

PROGRAM = harness.PROGRAMS / "closure_step.py"
DATA, HIDDEN, RESULT = 4 * 256 * 64, 4 * 256 * 256, 4 * 256 * 8
PARAMETERS = 4 * (64 * 256 + 256 + 256 * 8 + 8)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Recorded once for each set of arguments."""
    return functools.cache(lambda *arguments: analysed(tmp_path_factory.mktemp("closure") / "recording", *arguments))


def analysed(folder, *arguments):
    nested.record(folder, [sys.executable, PROGRAM, *arguments], timeout=300).ok()
    analysis = harness.analysis(folder)
    device = next(d for d in analysis["devices"] if d["device"] == "cpu")
    moments = {}
    for index, moment in enumerate(analysis["moments"]):
        if moment["kind"] == "phase_begin":
            kinds = {kind: column[index] for kind, column in device["categories_at_moments"].items() if column[index]}
            moments.setdefault(moment["phase"], []).append(kinds)
    return analysis, harness.allocs(harness.events(folder)), moments


@pytest.mark.parametrize("how", ["plain", "closure", "lbfgs"])
def test_a_closures_work_has_its_own_phases(how, recorded):
    _, allocations, moments = recorded(how)
    allocations = [e for e in allocations if "phase" in e]
    in_node = [e for e in allocations if any(line.startswith("<torch backward>") for line in e["stack"])]
    assert {e["phase"] for e in in_node} == {"backward"}
    assert {e["phase"] for e in allocations if "module" in e and e not in in_node} == {"forward"}
    assert {e["phase"] for e in allocations} == {"forward", "backward", "optimizer"}
    forward, backward = moments["end of forward"], moments["end of backward"]
    assert len(forward) >= 5
    assert {kinds["input"] for kinds in forward} == {DATA}
    # Tanh keeps what it returns, for its own backward and the next layer's weight's; the loss keeps the result.
    assert {kinds["activation"] for kinds in forward} == {HIDDEN + RESULT}
    assert {kinds["parameter"] for kinds in forward} == {PARAMETERS}
    assert {kinds["gradient"] for kinds in backward} == {PARAMETERS}
    assert "gradient" not in forward[1]
    if how != "lbfgs":
        assert [kinds.get("optimizer state", 0) for kinds in forward] == [0] + [PARAMETERS] * (len(forward) - 1)


def test_a_closure_has_the_categories_of_the_same_code_in_a_loop(recorded):
    (_, _, plain), (_, _, closure) = recorded("plain"), recorded("closure")
    assert closure == plain


@pytest.mark.parametrize("how", ["closure", pytest.param("lbfgs", marks=pytest.mark.slow)])
def test_what_a_closure_keeps_is_no_optimizers_state(how, recorded):
    analysis, _, _ = recorded(how, "keep")
    (leak,) = [f for f in analysis["findings"] if f["kind"] == "leak"]
    assert "optimizer" not in leak["name"] + leak["title"] + leak["fix"], leak
    assert any("closure_step.py" in frame for frame in leak["stack"])
