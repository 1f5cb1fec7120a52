"""Prints how well leaks are found: make leak-table, or PYTHONPATH=tests python -m leaks.table --seeds 11,12

Each program of each seed is generated, recorded with `run --explain-leaks` and analysed. A seed that was used while
rules were written says nothing: take fresh ones."""

import argparse
import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import nested
from leaks import generate, peer
from leaks.judge import judge

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv" / "bin" / "gpumemprof"))
STEPS, LONGER = 80, 10


def record(folder, program, steps):
    """Records once: a recording that is there is used again."""
    if not list(folder.glob("*.gmp")):
        done = nested.record(folder, [sys.executable, program, steps], ["--explain-leaks"], timeout=300)
        if done.rc != 0:
            raise SystemExit(f"{program} ended with {done.rc}: {done.stderr[-500:].decode(errors='replace')}")


def findings(folder):
    done = subprocess.run([COMMAND, "analyze", "--format", "json", folder], capture_output=True, check=True)
    return json.loads(done.stdout)["findings"]


def verdicts(folder, seed, programs=None, longer=False):
    """One a program of the seed; `longer`: the clean ones alone, with ten times the steps. Keeps all in `folder`."""
    sources = folder / f"seed{seed}"
    expected = generate.write(sources, seed)
    for name, of_program in expected.items():
        if (programs and of_program["recipe"] not in programs) or (longer and of_program["leaks"]):
            continue
        steps = STEPS * LONGER if longer else STEPS
        recording = folder / f"recorded{seed}-{steps}" / Path(name).stem
        recording.parent.mkdir(exist_ok=True)
        record(recording, sources / name, steps)
        yield judge(name, of_program, findings(recording)), of_program.get("bug"), recording


def table(rows):
    """Text: one line a bug, then totals. `rows`: (verdict, bug or None, recording)."""
    by_bug = collections.defaultdict(list)
    for verdict, bug, _ in rows:
        by_bug[bug].append(verdict)
    lines = [f"{'bug':28} {'programs':>8} {'found':>6} {'line':>6} {'name':>6} {'holder':>6} {'other lines':>12}"]
    total = collections.Counter()
    for bug in sorted(bug for bug in by_bug if bug):
        of_bug = by_bug[bug]
        row = [len(of_bug), *(sum(getattr(v, f) for v in of_bug) for f in ("found", "line", "name", "holder", "other_lines"))]
        total.update(dict(enumerate(row)))
        lines.append(f"{bug:28} {row[0]:8} {row[1]:6} {row[2]:6} {row[3]:6} {row[4]:6} {row[5]:12}")
    row = [total[i] for i in range(6)]
    lines.append(f"{'all':28} {row[0]:8} {row[1]:6} {row[2]:6} {row[3]:6} {row[4]:6} {row[5]:12}")
    clean = by_bug[None]
    lines.append(f"false alarms: {sum(v.is_false_alarm for v in clean)} of {len(clean)} clean programs")
    for verdict, bug, _ in rows:
        if verdict.is_false_alarm or (bug and not (verdict.line and verdict.name and verdict.holder)):
            lines.append(f"  {verdict.program} {verdict.recipe}: {verdict.said or 'nothing found'}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", default="111,112,113,114,115", help="numbers with commas between")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "leak-table", help="where all of it is kept")
    parser.add_argument("--longer", action="store_true", help="also the clean ones with ten times the steps")
    parser.add_argument("--peer", action="store_true", help="also the direct peer's detectors on the same programs")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for longer in (False, True) if arguments.longer else (False,):
        rows = [row for seed in seeds for row in verdicts(arguments.folder, seed, longer=longer)]
        steps = STEPS * (LONGER if longer else 1)
        print(f"seeds {arguments.seeds}, {steps} steps")
        print(table(rows), flush=True)
        if arguments.peer:
            print(peer.table(arguments.folder, [(bug, peer.live_at_step_ends(COMMAND, where, steps)) for _, bug, where in rows]))


if __name__ == "__main__":
    with nested.NESTS:
        main()
