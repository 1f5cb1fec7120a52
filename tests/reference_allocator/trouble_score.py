"""Counts what is told of programs with and without trouble, run by PyTorch's own allocator, without a GPU.

    python trouble_score.py GPUMEMPROF FOLDER [--seeds 20] [--first-seed 0] [--release 2.13.0] [--keep OUTPUT]

FOLDER: where `make test-allocator` keeps the builds. Each class by each seed, as many clean programs, and mixes of two
classes. Exit code 1 below 95 % found or above one false alarm in 100 clean programs."""

import argparse
import collections
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import build
import compare
import pinned_programs
import trouble_programs
from call_lists import MIB, Run
from pinned_programs import PINNED_CLEAN, PINNED_WITH
from trouble_programs import CLEAN, MIXED, WITH, Program

FREE_BYTES = 30 * MIB
LEAST_FOUND, MOST_FALSE = 0.95, 0.01


def with_sites(snapshot: dict[str, Any], program: Program) -> dict[str, Any]:
    """The frame of each event says which call it was; it becomes the line of the program. Equal ones are one object."""
    lines = {site: number + 1 for number, site in enumerate(dict.fromkeys(program.sites))}
    frames = {site: [{"filename": "train.py", "line": line, "name": site}] for site, line in lines.items()}
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    for entry in [*snapshot["device_traces"][0], *snapshot["segments"], *blocks]:
        if entry.get("frames"):
            entry["frames"] = frames[program.sites[entry["frames"][0]["line"] - 1]]
    return snapshot


def snapshot_of(allocator: Path, program: Program, scratch: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """What the allocator recorded of itself, and its statistics."""
    run = Run("", program.calls, program.settings)
    if program.is_full:
        before = compare.real(allocator, Run("", program.calls[:-1], program.settings))
        assert not isinstance(before, str), before
        run.capacity_bytes = before.statistics["reserved"] + FREE_BYTES
    outcome = compare.real(allocator, run, scratch)
    assert not isinstance(outcome, str), outcome
    snapshot = with_sites(json.loads(scratch.read_text()), program)
    if program.pinned:
        snapshot |= pinned_programs.recorded(pinned_programs.build(scratch.parent), program)
    return snapshot, outcome.statistics


def told(command: Path, path: Path) -> list[str]:
    """Kinds of the findings of these classes, in their order."""
    line = [str(command), "analyze", str(path), "--format", "json"]
    findings = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)["findings"]
    return [finding["kind"] for finding in findings if finding["kind"] in {**WITH, **PINNED_WITH}]


def cases(seeds: range) -> list[tuple[str, tuple[str, ...], Program]]:
    """Name, classes, program."""
    out: list[tuple[str, tuple[str, ...], Program]] = []
    for seed in seeds:
        for kind, make in WITH.items():
            out.append((f"{kind} {seed}", (kind,), trouble_programs.made(seed, make)))
        for make in CLEAN:
            out.append((f"{make.__name__} {seed}", (), trouble_programs.made(seed, make)))
        for kinds in MIXED:
            makers = [WITH[kind] for kind in kinds]
            out.append((f"{' + '.join(kinds)} {seed}", kinds, trouble_programs.made(seed, *makers)))
        out += pinned_cases(seed)
    return out


def pinned_cases(seed: int) -> list[tuple[str, tuple[str, ...], Program]]:
    """Of pinned host memory: each class, each that looks like it, both, and each with a class of the device."""
    out: list[tuple[str, tuple[str, ...], Program]] = []
    makers = {kind: makers[seed % len(makers)] for kind, makers in PINNED_WITH.items()}
    for kind, make in makers.items():
        out.append((f"{kind} {seed}", (kind,), trouble_programs.made(seed, make)))
        for of_device in ("stranded_stream_cache", "graph_pool_slack"):
            both = trouble_programs.made(seed, WITH[of_device], make)
            out.append((f"{of_device} + {kind} {seed}", (of_device, kind), both))
    out += [(f"{make.__name__} {seed}", (), trouble_programs.made(seed, make)) for make in PINNED_CLEAN]
    both = trouble_programs.made(seed, *makers.values())
    return [*out, (f"{' + '.join(makers)} {seed}", tuple(makers), both)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--release", default="2.13.0")
    given = parser.parse_args()
    folder = given.folder.resolve()
    allocator = build.build(given.release, folder)
    counts: collections.Counter[str] = collections.Counter()
    for name, kinds, program in cases(range(given.first_seed, given.first_seed + given.seeds)):
        snapshot, _ = snapshot_of(allocator, program, folder / "trouble.json")
        path = folder / "trouble.pickle"
        path.write_bytes(pickle.dumps(snapshot, protocol=4))
        found = told(given.command.resolve(), path)
        what = "mixed" if len(kinds) > 1 else "with" if kinds else "clean"
        is_right = sorted(found) == sorted(kinds)
        counts[what] += 1
        counts[f"{what} right"] += is_right
        if not is_right:
            print(f"{name}: told {found}", flush=True)
    parts = [f"{counts[f'{what} right']} of {counts[what]} {text}" for what, text in
             (("with", "found by their class"), ("clean", "clean ones left alone"), ("mixed", "mixes with both named"))]  # fmt: skip
    print(f"torch {given.release}: {', '.join(parts)}")
    is_good = all(counts[f"{what} right"] >= LEAST_FOUND * counts[what] for what in ("with", "mixed"))
    return 0 if is_good and counts["clean"] - counts["clean right"] <= MOST_FALSE * counts["clean"] else 1


if __name__ == "__main__":
    sys.exit(main())
