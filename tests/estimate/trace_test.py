"""Traces of small loops: what holds for any batch, and without memory as with it."""

import subprocess

import pytest
from estimate import tracing

pytest.importorskip("torch")
LOOPS = ["convolutions", "attention", "recurrent"]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")

    def made(name, batch, target="meta"):
        place = folder / f"{name}.{batch}.{target}"
        found = list(place.glob("*.trace"))
        return found[0] if found else tracing.trace(place, [tracing.SCRIPTS / "loops.py", name, batch], batch, target)

    return made


@pytest.mark.parametrize("name", LOOPS)
def test_two_small_traces_make_the_trace_at_another_batch_event_by_event(traces, name):
    if not tracing.TOOL.exists():
        pytest.skip("estimate_traces is not built (GPUMEMPROF_BENCH is off)")
    done = subprocess.run(
        [tracing.TOOL, "equal", traces(name, 2), traces(name, 4), traces(name, 7)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split()[0]) > 50


def test_tensors_without_memory_live_and_die_as_real_ones(traces):
    assert tracing.events(traces("convolutions", 2)) == tracing.events(traces("convolutions", 2, "cpu"))


def test_tied_parameters_are_one_storage(traces):
    lines = tracing.events(traces("attention", 2))
    sizes = [int(line.split()[2]) for line in lines if line.startswith("a ") and line.split()[4] == "p"]
    assert sizes.count(100 * 32 * 4) == 1
