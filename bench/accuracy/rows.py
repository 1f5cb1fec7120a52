"""The table of measured peaks, which of its rows can be trusted, and what is predicted for them."""

from __future__ import annotations

import csv
import hashlib
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

CAPACITY_MIB = 40_536  # of the A100 that was measured
NEARLY_FULL_MIB = 37_000  # from here on a run may have died of memory, or was about to
MOST_RISE = 2.3  # for a doubled batch
MOST_UNCHECKED = 2  # two rows lie on a line whatever they are
MIB = 1 << 20


@dataclass
class Row:
    model: str
    batch: int
    measured_mib: float
    lived: bool = True  # nothing says that the run died before its peak
    consistent: bool = True  # no other row of the model speaks against it
    trusted: bool = True  # there are enough others to say so
    reserved_mib: float = 0.0
    fits: int = 0  # 2: with the upper end of the interval, 1: as expected

    def predicted_mib(self, constant_mib: float) -> float:
        return self.reserved_mib + constant_mib


def is_for_fitting(model: str) -> bool:
    """One half of the models, on every machine the same one."""
    return int(hashlib.sha256(b"half " + model.encode()).hexdigest()[-1], 16) % 2 == 0


def read_table(path: Path) -> dict[str, list[Row]]:
    models: dict[str, list[Row]] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            row = Row(line["model"], int(line["batch_size"]), float(line["actual_max_gpu_mib"]))
            models.setdefault(row.model, []).append(row)
    for rows in models.values():
        rows.sort(key=lambda row: row.batch)
        judge(rows)
    return models


def judge(rows: list[Row]) -> None:
    """By the measured values alone: nothing that is predicted has a say in it."""
    level, dead_at = 0.0, None
    for row in rows:
        if dead_at is None and (row.measured_mib >= NEARLY_FULL_MIB or row.measured_mib <= level):
            dead_at = row.batch
        row.lived = row.consistent = dead_at is None
        level = row.measured_mib
    lived = [row for row in rows if row.lived]
    if len(lived) > MOST_UNCHECKED:
        base, slope = theil_sen(lived)
        for row in lived:
            line = base + slope * row.batch
            row.consistent = abs(row.measured_mib - line) <= 0.25 * line
    fallen = next((row for row in rows if not row.lived), None)
    if fallen is not None and lived and fallen.measured_mib < NEARLY_FULL_MIB:
        # Where even a steep rise stays far below the capacity, memory was not the reason.
        expected = MOST_RISE * lived[-1].measured_mib
        if len(lived) >= 2:
            base, slope = theil_sen(lived)
            expected = base + slope * fallen.batch
        if expected < 0.75 * CAPACITY_MIB:
            distrust(rows)
    if any(later.measured_mib > MOST_RISE * row.measured_mib for row, later in zip(lived, lived[1:])):
        distrust(rows)
    for row in rows:
        row.trusted = row.consistent and len(lived) > MOST_UNCHECKED


def fitted_batch(rows: list[Row]) -> int | None:
    """The largest batch that fitted, by what was measured; None where that cannot be told."""
    lived = [row for row in rows if row.lived]
    if not all(row.consistent for row in lived) or not lived:
        return None
    first = next((row for row in rows if not row.lived), None)
    if first is None or first.measured_mib < NEARLY_FULL_MIB:
        return lived[-1].batch
    if len(lived) < 2:
        return None
    # A nearly full device: the run died there, or it just fitted and is on the line of the others.
    base, slope = theil_sen(lived)
    line = base + slope * first.batch
    if line > CAPACITY_MIB:
        return lived[-1].batch
    return first.batch if abs(first.measured_mib - line) <= 0.05 * line else None


def distrust(rows: list[Row]) -> None:
    for row in rows:
        row.consistent = False


def theil_sen(rows: list[Row]) -> tuple[float, float]:
    slopes = [
        (b.measured_mib - a.measured_mib) / (b.batch - a.batch) for i, a in enumerate(rows) for b in rows[i + 1 :]
    ]
    slope = statistics.median(slopes)
    return statistics.median(row.measured_mib - slope * row.batch for row in rows), slope


def predict(models: dict[str, list[Row]], tool: Path, folder: Path) -> dict[str, str]:
    """Fills in what the simulator says; the answer is what failed, by model."""
    names = [name for name in models if (folder / f"{name}.4.trace").exists() and (folder / f"{name}.2.trace").exists()]
    lines = [
        f"{folder / name}.2.trace {folder / name}.4.trace " + " ".join(str(row.batch) for row in models[name])
        for name in names
    ]
    done = subprocess.run(
        [str(tool), str(CAPACITY_MIB * MIB)],
        input="\n".join(lines) + "\n",
        text=True,
        capture_output=True,
        check=True,
    )
    failed: dict[str, str] = {}
    for name, line in zip(names, done.stdout.splitlines()):
        if line.startswith("!"):
            failed[name] = line[2:]
            continue
        words = [int(word) for word in line.split()]
        for i, row in enumerate(models[name]):
            row.reserved_mib, row.fits = words[2 * i] / MIB, words[2 * i + 1]
    return failed
