"""Runs scripts as `gpumemprof estimate` does, to look at their traces."""

import os
import subprocess
import sys
from pathlib import Path

import harness

SCRIPTS = Path(__file__).resolve().parent / "scripts"
TOOL = Path(os.environ.get("GPUMEMPROF_BUILD", harness.ROOT / "build")) / "bench" / "estimate_traces"


def trace(folder, words, batch=0, target="meta"):
    """The path of the trace of one script."""
    folder.mkdir(parents=True)
    environment = {
        **os.environ,
        "GPUMEMPROF_ESTIMATE": str(folder),
        "GPUMEMPROF_ESTIMATE_TARGET": target,
        "GPUMEMPROF_ESTIMATE_BATCH": str(batch),
    }
    done = subprocess.run(
        [sys.executable, *map(str, words)], env=environment, capture_output=True, text=True, timeout=120
    )
    found = list(folder.glob("*.trace"))
    reasons = [path.read_text() for path in folder.glob("*.error")]
    assert len(found) == 1, (done, reasons)
    return found[0]


def events(path):
    """The lines of a trace but for its facts."""
    return [line for number, line in enumerate(path.read_text().splitlines()) if number != 1]
