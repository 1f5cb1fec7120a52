"""The peak of the example's training and what held it, as JSON that is the same on every processor:

    python3 peak_and_holders.py PATH/gpumemprof
"""

import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "train_transformer.py"
SMALL = ["--batch", "4", "--width", "64", "--layers", "2", "--length", "64", "--workers", "0"]  # for an emulated processor


def main(command):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "recording"
        run = [command, "run", "-o", folder, "--", sys.executable, EXAMPLE, "--steps", "2", *SMALL]
        subprocess.run(run, check=True, stdout=sys.stderr)
        done = subprocess.run([command, "analyze", folder, "--format", "json"], check=True, capture_output=True)
    devices = json.loads(done.stdout)["devices"]  # one for each process: those of the loader's workers are small
    device = max(devices, key=lambda one: one["peak"]["requested_bytes"])
    holders = collections.Counter()
    for holder in device["holders_at_peak"]:
        holders[f"{holder['category']}, {Path(holder['line']).name}"] += holder["bytes"]
    result = {"peak_bytes": device["peak"]["requested_bytes"], "blocks": device["peak"]["blocks"]}
    print(json.dumps({**result, "holders": dict(holders.most_common())}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1])
