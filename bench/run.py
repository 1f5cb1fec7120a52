"""Measures speed and size against the budgets, prints the table and writes docs/benchmarks.md.

  bench/run.py            everything (about 40 minutes); writes docs/benchmarks.md
  bench/run.py --quick    a smoke test of the harness (about 2 minutes); its figures mean nothing
  bench/run.py --only steps,hook,disk,analysis,exceptions,idle,scope,scope_python,import_cost,copies,snapshot,shapes,tensorflow,page,lake,ranks,host_blocks

GPUMEMPROF_BIN names another command, GPUMEMPROF_BUILD another build folder.
"""
import argparse
import dataclasses
import importlib
import json
import os
import sys
import time

import launch
import machine
import table

MEASURES = ("steps", "hook", "disk", "analysis", "exceptions", "idle", "scope", "scope_python", "import_cost",
            "copies", "snapshot", "shapes", "tensorflow", "page", "lake", "ranks", "host_blocks")
FULL = {
    "pairs": 600, "control_pairs": 300, "peer_pairs": 16,
    "process_pairs": 80, "peer_process_pairs": 5, "rounds": 48,
    "hook_pairs": 60, "disk_steps": 400,
    "analysis_events": 10_000_000, "analysis_repeats": 5,
    "tensorflow_pairs": 150, "host_pairs": 12,
    "throw_pairs": 15, "true_pairs": 300, "python_pairs": 60, "run_pairs": 30,
    "snapshot_bytes": 1_000_000_000, "shape_events": 1_000_000,
    "page_events": 6_000_000, "page_long_events": 100_000_000, "lake_events": (1_000_000, 6_000_000),
    "ranks": (64, 1_000_000, 3_140_000),
}
QUICK = {
    "pairs": 6, "control_pairs": 4, "peer_pairs": 2,
    "process_pairs": 2, "peer_process_pairs": 1, "rounds": 3,
    "hook_pairs": 6, "disk_steps": 40,
    "analysis_events": 1_000_000, "analysis_repeats": 2,
    "tensorflow_pairs": 4, "host_pairs": 2,
    "throw_pairs": 2, "true_pairs": 20, "python_pairs": 6, "run_pairs": 3,
    "snapshot_bytes": 20_000_000, "shape_events": 100_000,
    "page_events": 300_000, "page_long_events": 600_000, "lake_events": (100_000,),
    "ranks": (4, 20_000, 40_000),
}


def run_measures(names, size):
    rows, failures = [], []
    for name in names:
        begin = time.monotonic()
        module = importlib.import_module(f"measures.{name}")
        for part in module.parts(size) if hasattr(module, "parts") else [lambda module=module: module.measure(size)]:
            try:
                new = part()
            except launch.Failed as failure:
                failures.append((name, str(failure)))
                print(f"{name}: NOT MEASURED: {failure}", flush=True)
                continue
            rows += new
            for row in new:
                print(table.plain_text(row), flush=True)
        print(f"bench: {name} took {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return rows, failures


def quiet_lines(busy, before, after):
    return [
        f"CPU use by other programs before the run: {busy:.0%}",
        f"CPU time stolen by the hypervisor during the run: {machine.share(before, after, 'steal'):.1%}",
    ]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(MEASURES)
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        parser.error(f"unknown measure {unknown[0]}; there are {', '.join(MEASURES)}")

    facts = machine.facts()
    busy = machine.busy_before()
    for name, value in facts.items():
        print(f"{name}: {value}")
    if busy > 0.05:
        print(f"bench: other programs use {busy:.0%} of the CPUs: expect noise", file=sys.stderr)
    before = machine.cpu_times()
    rows, failures = run_measures(names, QUICK if options.quick else FULL)
    quiet = quiet_lines(busy, before, machine.cpu_times())
    print("\n".join(quiet))

    results = {"facts": facts, "quiet": quiet, "quick": options.quick, "failures": failures,
               "rows": [dataclasses.asdict(row) for row in rows]}
    write(os.path.join(launch.BUILD, "bench", "results.json"), json.dumps(results, indent=1))
    if not options.quick and not options.only:
        write(os.path.join(launch.ROOT, "docs", "benchmarks.md"),
              table.markdown(rows, facts, quiet, failures))
    missed = [row.what for row in rows if row.met is False]
    print(f"{sum(row.met is True for row in rows)} budgets met, {len(missed)} not met, "
          f"{len(failures)} parts not measured")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
