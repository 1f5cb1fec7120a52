"""Prints how the shapes are judged: PYTHONPATH=tests python -m leaks.shapes.table --seeds 901,902

Each program of each seed is recorded, without --explain-leaks, and analysed. A seed that was used while rules were
written says nothing: take fresh ones."""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

from leaks.judge import grows, lines_of
from leaks.shapes import write

ROOT = Path(__file__).resolve().parent.parent.parent.parent
COMMAND = os.environ.get("GPUMEMPROF_BIN", str(ROOT / ".venv" / "bin" / "gpumemprof"))
GROWS = ("leak", "growth_in_loop")
TOLERANCE = 0.05


@dataclasses.dataclass
class Judged:
    """What was said of one program."""

    program: str
    expected: write.Expected
    leaks: int = 0
    """Findings of a leak, whatever their severity."""
    told: list[str] = dataclasses.field(default_factory=list)
    """Kinds of findings on what grows, warnings or not."""
    line: bool = False
    """The first finding is about an expected line, among others."""
    bytes_a_step: float = 0
    """Of all of them."""

    @property
    def has_right_bytes(self):
        return abs(self.bytes_a_step - self.expected.bytes_a_step) <= TOLERANCE * self.expected.bytes_a_step


def record(folder, programs):
    """Path of a program → the file of its recording. A folder that is there is used again."""
    done = folder / "programs.json"
    if done.exists():
        return json.loads(done.read_text())
    argv = [COMMAND, "run", "-q", "-o", folder, "--", sys.executable, Path(__file__).with_name("each.py")]
    paths = "".join(f"{program}\n" for program in programs)
    ran = subprocess.run(argv, input=paths, capture_output=True, text=True, check=True)
    out = {}
    for row in ran.stdout.splitlines():
        pid, ticks, code, program = row.split(" ", 3)
        if code != "0":
            raise SystemExit(f"{program} ended with {code}: {ran.stderr[-2000:]}")
        out[program] = str(recording_of(folder, pid, ticks))
    done.write_text(json.dumps(out))
    return out


def recording_of(folder, pid, start_ticks):
    """The file of this very process: its number alone is the end of another one's, or comes again."""
    files = list(folder.glob(f"*.{pid}.{start_ticks}.gmp"))
    if len(files) != 1:
        raise SystemExit(f"{folder}: {len(files)} recordings of process {pid} that started at {start_ticks}")
    return files[0]


def findings(recording):
    done = subprocess.run([COMMAND, "analyze", "--format", "json", recording], capture_output=True, check=True)
    return json.loads(done.stdout)["findings"]


def judge(program, expected, found):
    """`found`: the findings of `analyze --format json`."""
    out = Judged(program, expected)
    growing = [f for f in found if f["kind"] in GROWS and "bytes_a_step" in f["evidence"]]
    out.told = [f["kind"] for f in growing]
    out.leaks = sum(grows(f) for f in found)
    if growing:
        out.line = bool(set(lines_of(growing[0], program)) & set(expected.lines))
        out.bytes_a_step = sum(f["evidence"]["bytes_a_step"] for f in growing)
    return out


def judged(folder, seed, only=None, jobs=2):
    """One a program of the seed. `only`: names of programs. Keeps all in `folder`."""
    sources = folder / f"shapes{seed}"
    expected = write.write(sources, seed)
    names = [name for name in expected if only is None or name in only]
    parts = [[str(sources / name) for name in names[part::jobs]] for part in range(jobs)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        recorded = {}
        for done in pool.map(lambda part: record(folder / f"recorded{seed}-{part}", parts[part]), range(jobs)):
            recorded |= done
        found = pool.map(lambda name: findings(recorded[str(sources / name)]), names)
        return [judge(name, expected[name], f) for name, f in zip(names, found, strict=True)]


def table(rows):
    ordinary = [r for r in rows if not r.expected.leaks]
    leaking = [r for r in rows if r.expected.leaks]
    accused = [r for r in ordinary if r.leaks]
    found = [r for r in leaking if r.told]
    kinds = collections.Counter(kind for r in ordinary for kind in r.told)
    lines = [
        f"ordinary programs: {len(ordinary)}, told as a leak: {len(accused)}, told as growth in a loop: {kinds['growth_in_loop']}",
        f"leaking programs: {len(leaking)}, found: {len(found)}, of these as a leak: {sum(r.leaks > 0 for r in leaking)}, "
        f"exact line: {sum(r.line for r in leaking)}, one finding: {sum(len(r.told) == 1 for r in leaking)}, "
        f"bytes a step within {TOLERANCE:.0%}: {sum(r.has_right_bytes for r in found)}",
    ]  # fmt: skip
    for r in rows:
        if r.expected.leaks and not (r.told and r.line and r.has_right_bytes and len(r.told) == 1):
            lines.append(f"  {r.program} {r.expected.shape}: {r.told or 'nothing found'}, "
                         f"{r.bytes_a_step:.0f} bytes a step of {r.expected.bytes_a_step:.0f}")  # fmt: skip
        elif not r.expected.leaks and r.leaks:
            lines.append(f"  {r.program} {r.expected.shape}: {r.leaks} leaks told, {r.bytes_a_step:.0f} bytes a step")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", default="901", help="numbers with commas between")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "leak-shapes", help="where the programs go")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds.split(","):
        print(f"seed {seed}")
        print(table(judged(arguments.folder, int(seed))), flush=True)


if __name__ == "__main__":
    main()
