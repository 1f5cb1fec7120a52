"""Runs scripts as `gpumemprof estimate` does, to look at their traces."""

import os
import sys
from pathlib import Path

import harness
import nested

SCRIPTS = Path(__file__).resolve().parent / "scripts"
TOOL = Path(os.environ.get("GPUMEMPROF_BUILD", harness.ROOT / "build")) / "bench" / "estimate_traces"


# As the package's .pth file does where PyTorch is not there yet.
BEGIN = """
import os, runpy, sys
os.environ.update(zip(("GPUMEMPROF_ESTIMATE", "GPUMEMPROF_ESTIMATE_TARGET", "GPUMEMPROF_ESTIMATE_BATCH"), sys.argv[1:4]))
sys.argv[:] = sys.argv[4:]
sys.path[0] = os.path.dirname(sys.argv[0])
import gpumemprof._children.estimate.armed
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def trace(folder, words, batch=0, target="meta"):
    """The path of the trace of one script."""
    folder.mkdir(parents=True)
    argv = [sys.executable, "-c", BEGIN, folder, target, batch, *words]
    done = nested.execute(argv, env={**os.environ, "TORCHDYNAMO_DISABLE": "1"})
    found = list(folder.glob("*.trace"))
    reasons = [path.read_text() for path in folder.glob("*.error")]
    assert len(found) == 1, (done, reasons)
    return found[0]


def events(path):
    """The lines of a trace but for its facts."""
    return [line for number, line in enumerate(path.read_text().splitlines()) if number != 1]
