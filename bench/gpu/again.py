"""Estimates the models of docs/results/GPU.json again and writes docs/results/GPU.md: what was measured on the GPU stays.

    bench/gpu/again.py docs/results/nvidia-h200.json

Needs no GPU, but PyTorch, timm and transformers in this Python. GPUMEMPROF_BIN names another command.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

import accuracy
from run import page
from work import ROOT, Row, Work


def main() -> int:
    path = Path(sys.argv[1])
    results = json.loads(path.read_text())
    measured = {name: [Row(**row) for row in rows] for name, rows in results["measured"].items()}
    calibration = measured["estimate"][0].raw
    models = [row.raw for row in measured["estimate"] if "model" in row.raw]
    with tempfile.TemporaryDirectory() as folder:
        command = os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv" / "bin" / "gpumemprof"))
        work, file = Work(command, Path(folder)), Path(folder) / "calibration.json"
        file.write_text(json.dumps(calibration))
        for one in models:
            one["told"] = accuracy.told(work, one["model"], file)
            one.pop("limited_out_of_memory", None)  # the limit was that of another estimate
            print(accuracy.row_of(one).what, file=sys.stderr, flush=True)
    measured["estimate"] = accuracy.rows(calibration, models)
    results["measured"] = {name: [dataclasses.asdict(row) for row in rows] for name, rows in measured.items()}
    path.write_text(json.dumps(results, indent=1) + "\n")
    path.with_suffix(".md").write_text(page(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
