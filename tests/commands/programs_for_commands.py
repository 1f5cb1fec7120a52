"""A recorded program that stands still while a test looks at it."""
import contextlib
import json
import subprocess

import harness

# Four tensors that stay, one that came and went: live 10 MiB, peak 74 MiB, 5 allocations and 1 free.
STANDING = """
import sys, torch
kept = [torch.empty(n * 2**20, dtype=torch.uint8) for n in (1, 2, 3, 4)]
torch.empty(64 * 2**20, dtype=torch.uint8)
print("ready", flush=True)
sys.stdin.readline()
"""
LIVE_BYTES, PEAK_BYTES, ALLOCATIONS = 10 * 2**20, 74 * 2**20, 5


@contextlib.contextmanager
def standing_program(folder, recorded=True):
    """Yields the Popen of a program that stands still; `folder` is its recording where it is recorded."""
    argv = [harness.PYTHON, "-c", STANDING]
    if recorded:
        argv = harness.run_argv(folder, argv, ["--quiet"])
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.communicate("\n", timeout=60)


def recorded_pid(folder):
    """The PID of the one process that a recording's folder has a file of."""
    (file,) = harness.files(folder)
    return int(file.name.split(".")[-3])


def telemetry(path):
    """The events of a JSON file, read with Python's own parser."""
    return json.loads(path.read_text())
