"""Jobs of several ranks, recorded by the command as users start them."""
import json
import os
import socket
from pathlib import Path

import harness

PROGRAM = Path(__file__).parent / "programs" / "divided.py"
TORCHRUN = Path(harness.PYTHON).parent / "torchrun"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run_argv(folder, *options, kind, steps, ranks=4, quiet=True):
    options = options or ("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0")
    return [harness.COMMAND, "run", *(["-q"] if quiet else []), "-o", folder, "--", TORCHRUN, *options, "--nproc-per-node", ranks, PROGRAM, kind, steps]


def record(folder, kind, steps=10, ranks=4, quiet=True, **environment):
    return harness.execute(list(map(str, run_argv(folder, kind=kind, steps=steps, ranks=ranks, quiet=quiet))), timeout=240,
                           env={**ENVIRONMENT, **environment})


def analyze(*folders, output="json"):
    done = harness.execute([harness.COMMAND, "analyze", *map(str, folders), "--format", output], timeout=120).ok()
    return json.loads(done.stdout) if output == "json" else done.stdout.decode()


def ranks_of(*folders):
    return analyze(*folders)["ranks"]
