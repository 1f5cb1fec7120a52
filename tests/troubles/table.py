"""Counts what is told of programs with and without troubles of the host, recorded by `gpumemprof run`: PYTHONPATH=tests
python -m troubles.table --first-seed 100 --seeds 10

Each class by each seed, as many programs that only look like it, and mixes of two classes. Exit code 1 below 95 % found or above
one false alarm in 100 clean programs."""

import argparse
import collections
import concurrent.futures
import sys
import time
from pathlib import Path

import harness
from troubles.generate import Program, programs
from troubles.judge import Judge, Missing

LEAST_FOUND, MOST_FALSE = 0.95, 0.01


def of(program: Program) -> str:
    return "mixed" if len(program.kinds) > 1 else "with" if program.kinds else "clean"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the names of the programs")
    parser.add_argument("--jobs", type=int, default=3, help="programs at a time: they sleep more than they work")
    parser.add_argument("--keep", action="store_true", help="recordings and findings")
    parser.add_argument("--minutes", type=float, help="no program is begun after so long")
    parser.add_argument("--folder", type=Path, default=harness.ROOT / "build" / "troubles")
    given = parser.parse_args()
    judge = Judge(given.folder.resolve())
    jobs = given.jobs if judge.own_shm else 1
    until = time.monotonic() + 60 * given.minutes if given.minutes else float("inf")

    def judged(program: Program) -> tuple[Program, list[str] | None, str]:
        if time.monotonic() > until:
            return program, None, ""
        try:
            return program, judge.told(program, given.keep), ""
        except Missing as missing:
            return program, None, str(missing)
        except Exception as error:  # the program is at fault, or the recorder: it counts as not right
            return program, [f"{type(error).__name__}: {error}"], ""

    counts: collections.Counter[str] = collections.Counter()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    wanted = [program for program in programs(seeds) if given.only in program.name]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, told, why in pool.map(judged, wanted):
            if told is None:
                counts[why or "no time was left"] += 1
                continue
            what = of(program)
            is_right = told == sorted(program.kinds)
            counts[what] += 1
            counts[f"{what} right"] += is_right
            if not is_right:
                print(f"{program.name}: told {told}", flush=True)
    is_good = all(counts[f"{what} right"] >= LEAST_FOUND * counts[what] for what in ("with", "mixed"))
    is_good &= counts["clean"] - counts["clean right"] <= MOST_FALSE * counts["clean"]
    parts = [f"{counts.pop(f'{what} right', 0)} of {counts[what]} {text}" for what, text in
             (("with", "found by their class"), ("clean", "clean ones left alone"), ("mixed", "mixes with both named"))]  # fmt: skip
    print(f"host: {', '.join(parts)}")
    for why in set(counts) - {"with", "clean", "mixed"}:
        print(f"{counts[why]} programs were not run: {why}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
