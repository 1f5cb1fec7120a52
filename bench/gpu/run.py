"""Measures on this machine's GPU what the documentation says of it, and writes docs/results/GPU.md.

    bench/gpu/run.py [--only cost,sum,estimate,settings,live] [--out FOLDER]

Needs PyTorch with CUDA, nvidia-ml-py, timm and transformers. FOLDER (build/gpu) gets results.json, logs and recordings.
Takes about five minutes. GPUMEMPROF_BIN names another command.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import re
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import accuracy
import cost
import live
import settings
import sums
from work import ROOT, Row, Work

Measure = Callable[[Work], list[Row]]
BESIDE: dict[str, Measure] = {"estimate": accuracy.measure, "settings": settings.measure, "live": live.measure}
ALONE: dict[str, Measure] = {"sum": sums.measure, "cost": cost.measure}
TITLES = {
    "estimate": "Estimates against measured peaks",
    "settings": "Other settings, predicted and run",
    "live": "While a program runs",
    "sum": "The sum of the device, per library and form of memory",
    "cost": "The cost of recording",
}


def guarded(name: str, measure: Measure, work: Work) -> list[Row]:
    began = time.monotonic()
    try:
        rows = measure(work)
    except Exception as error:
        work.log(f"{name}-failure", traceback.format_exc())
        rows = [Row(name, f"not measured: {type(error).__name__}: {str(error)[:600]}")]
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rows


def facts(work: Work) -> dict[str, str]:
    import pynvml
    import torch

    pynvml.nvmlInit()
    return {
        "GPU": torch.cuda.get_device_name(0),
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "PyTorch": torch.__version__,
        "Python": platform.python_version(),
        "system": f"Linux {platform.release()}, {os.cpu_count()} cores",
        "gpumemprof": work.gpumemprof("--version").strip(),
        "date": time.strftime("%Y-%m-%d"),
    }


def page(results: dict[str, Any]) -> str:
    """`results`: facts; measured: rows by name; tests, if they were run: their names, outcomes and figures."""
    about, tests = results["facts"], results.get("tests", [])
    lines = [
        f"# {about['GPU']}",
        "",
        "Written by `bench/gpu/run.py` and, for the estimates, `bench/gpu/again.py`.",
        "",
    ]
    lines += [f"- {name}: {value}" for name, value in about.items()]
    for name, rows in results["measured"].items():
        lines += ["", f"## {TITLES[name]}", "", "| what | figure | bound | met |", "| --- | --- | --- | --- |"]
        for row in rows:
            met = {True: "yes", False: "**no**", None: ""}[row["met"]]
            lines.append(f"| {row['what']} | {row['figure'].replace('|', '/')} | {row['bound']} | {met} |")
    if tests:
        lines += ["", "## make gpu-test", "", "| test | outcome | figures |", "| --- | --- | --- |"]
        for one in tests:
            lines.append(f"| `{one['test'].replace('|', '/')}` | {one['outcome']} | {one['figures']} |")
    return "\n".join([*lines, ""])


def earlier(path: Path) -> dict[str, list[Row]]:
    """What was measured before into the same folder."""
    if not path.exists():
        return {}
    return {name: [Row(**row) for row in rows] for name, rows in json.loads(path.read_text())["measured"].items()}


def main() -> int:
    every = [*BESIDE, *ALONE]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(every))
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu")
    parser.add_argument("--page", type=Path, help="(default: docs/results/GPU.md)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    work = Work(os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv" / "bin" / "gpumemprof")), options.out.resolve())
    wanted = options.only.split(",")
    measured = earlier(results := options.out / "results.json")
    with ThreadPoolExecutor(len(BESIDE)) as pool:
        running = {name: pool.submit(guarded, name, one, work) for name, one in BESIDE.items() if name in wanted}
        measured |= {name: one.result() for name, one in running.items()}
    for name, one in ALONE.items():
        if name in wanted:
            measured[name] = guarded(name, one, work)
    about = facts(work)
    plain = {name: [dataclasses.asdict(row) for row in rows] for name, rows in measured.items()}
    found = {"facts": about, "measured": plain}
    results.write_text(json.dumps(found, indent=1))
    text = page(found)
    name = re.sub(r"[^a-z0-9]+", "-", about["GPU"].lower()).strip("-")
    path = options.page or ROOT / "docs" / "results" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
