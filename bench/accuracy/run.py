"""How well peaks are predicted: `make accuracy`.

Traces the models of the table of measured peaks (resumable), fits on one half of them, reports on the other, and writes
docs/accuracy.md. The table is other people's measurement and is not part of this repository: without it nothing is
done."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from page import Report, page
from rows import MIB, predict, read_table
from trace_models import models as ordered_models

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT.parent / "shared" / "prediction" / "timm_measured_peaks.csv"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--table", type=Path, default=TABLE, help="model, batch_size, actual_max_gpu_mib")
    arguments.add_argument("--build", type=Path, default=ROOT / "build")
    arguments.add_argument("--models", type=int, default=0, help="the first N of a fixed order; all by default")
    arguments.add_argument("--no-tracing", action="store_true", help="with the traces that are there")
    arguments.add_argument("--page", type=Path, default=ROOT / "docs" / "accuracy.md")
    parsed = arguments.parse_args()
    if not parsed.table.exists():
        print(f"accuracy: skipped: no table of measured peaks at {parsed.table} (--table names another)")
        return 0
    folder = parsed.build / "accuracy" / "traces"
    if not parsed.no_tracing:
        tracing = [sys.executable, str(ROOT / "bench" / "accuracy" / "trace_models.py"), str(parsed.table), str(folder)]
        subprocess.run([*tracing, "--models", str(parsed.models)], check=True)
    names = ordered_models(parsed.table)
    wanted = names[: parsed.models] if parsed.models else names
    report = evaluate(parsed.table, parsed.build / "bench" / "estimate_traces", folder, wanted, len(names))
    print(report.text())
    parsed.page.write_text(page(report))
    return 0


def evaluate(table: Path, tool: Path, folder: Path, wanted: list[str], all_models: int) -> Report:
    models = {name: rows for name, rows in read_table(table).items() if name in set(wanted)}
    not_merged = predict(models, tool, folder)
    failed = {
        path.stem: path.read_text().strip() for path in sorted(folder.glob("*.error")) if path.stem in models
    } | not_merged
    done = {name: rows for name, rows in models.items() if rows[0].reserved_mib}
    shipped = subprocess.run([str(tool), "shipped"], text=True, capture_output=True, check=True).stdout.split()
    spread = (float(shipped[1]), float(shipped[2]))
    return Report(done, all_models, failed, int(shipped[0]) / MIB, spread, folder)


if __name__ == "__main__":
    sys.exit(main())
