"""`make test-allocator`: the simulator against PyTorch's own allocator, release by release.

    python run.py SIMULATOR FOLDER [--releases 2.5.1,2.13.0] [--seeds 1000] [--traces FOLDER]

Fetches and builds what FOLDER does not hold yet. Compared are random lists of calls (with streams, record_stream,
private pools, all settings), the requests of recorded traces under a table of settings, and the replay of each
trace under the settings it was recorded with. Exit 1 where one address, peak, retry or refusal differs.
"""

import argparse
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import build
import call_lists
import compare

MIB, GIB = 1 << 20, 1 << 30
RELEASES = "2.5.1,2.6.0,2.10.0,2.11.0,2.12.0,2.13.0,2.15.0"
HERE = Path(__file__).resolve().parent


class DataOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} in a snapshot")


def load(path: Path) -> dict[str, Any] | None:
    """A snapshot with a history; None for anything else."""
    with path.open("rb") as file:
        snapshot = DataOnly(file).load()
    has_history = isinstance(snapshot, dict) and sum(map(len, snapshot.get("device_traces", []))) >= 100
    return snapshot if has_history else None


def questions(minor: int, peak: int, allocated: int) -> Iterator[tuple[str, list[str], int, float | None]]:
    """Name, settings, capacity and fraction: each setting alone, some together, and smaller devices."""
    ample = 160 * GIB
    tight = max(peak * 9 // 10, allocated * 101 // 100) // (2 * MIB) * 2 * MIB
    expandable = "expandable_segments:True"
    yield "default", [], ample, None
    yield "expandable", [expandable], ample, None
    yield "max_split 128", ["max_split_size_mb:128"], ample, None
    yield "max_split 21", ["max_split_size_mb:21"], ample, None
    yield "roundup 4", ["roundup_power2_divisions:4"], ample, None
    yield "roundup list", ["roundup_power2_divisions:[1:8,64:4,256:2,>:8]"], ample, None
    yield "expandable, roundup 2", [expandable, "roundup_power2_divisions:2"], ample, None
    yield "smaller", [], tight, None
    yield "smaller, expandable", [expandable], tight, None
    yield "smaller, max_split 64", ["max_split_size_mb:64"], tight, None
    yield "fraction", [], ample, tight / ample
    yield "fraction, expandable", [expandable], ample, tight / ample
    yield "gc 0.8, fraction", ["garbage_collection_threshold:0.8"], ample, max(tight, peak * 21 // 20) / ample
    yield "gc 0.5, fraction", ["garbage_collection_threshold:0.5"], ample, tight / ample
    both = ["garbage_collection_threshold:0.6", "max_split_size_mb:64"]
    yield "gc 0.6, fraction, max_split 64", both, ample, tight / ample
    yield "gc 0.8 alone", ["garbage_collection_threshold:0.8"], ample, None
    if minor >= 6:
        yield "max_split 64, rounding 256", ["max_split_size_mb:64", "max_non_split_rounding_mb:256"], ample, None
    if minor >= 11:
        yield "large 64", ["large_segment_size_mb:64"], ample, None
        yield "large 64, expandable", ["large_segment_size_mb:64", expandable], ample, None


class Comparison:
    def __init__(self, simulator: Path, folder: Path, version: str) -> None:
        self.simulator, self.folder, self.version = simulator, folder, version
        self.program = build.build(version, folder)
        self.minor = int(version.split(".")[1])
        self.compared = self.equal = 0

    def note(self, name: str, difference: str) -> None:
        self.compared += 1
        self.equal += not difference
        if difference:
            print(f"{self.version} {name}: {difference[:300]}", flush=True)

    def summary(self, what: str) -> bool:
        print(f"{self.version}: {what}: {self.equal} of {self.compared} equal", flush=True)
        good = self.equal == self.compared
        self.compared = self.equal = 0
        return good

    def check(self, run: call_lists.Run) -> compare.Outcome | str:
        expected = compare.real(self.program, run)
        found = compare.simulated(self.simulator, self.version, run)
        self.note(f"{run.name} [{run.conf}]", compare.difference(expected, found))
        return expected

    def seeds(self, first: int, count: int) -> bool:
        for seed in range(first, first + count):
            self.check(call_lists.random_run(seed, self.minor))
        return self.summary("random lists of calls")

    def trace(self, path: Path, snapshot: dict[str, Any], device: int) -> None:
        """The calls line by line, and what_if() by its results."""
        calls = call_lists.calls_of_trace(snapshot, device)
        name = f"{path.stem}/{device}"
        base = compare.real(self.program, call_lists.Run(name, calls))
        assert not isinstance(base, str), base
        peak, allocated = base.statistics["peak_reserved"], base.statistics["peak_allocated"]
        for question, settings, capacity, fraction in questions(self.minor, peak, allocated):
            run = call_lists.Run(f"{name} {question}", calls, settings, capacity, fraction)
            expected = self.check(run)
            if isinstance(expected, str):
                continue
            command = [str(self.simulator), "whatif", str(path), self.version, run.conf, str(capacity)]
            answer = answers(command + ([repr(fraction)] if fraction else []))[device]
            wrong = {
                key: (expected.statistics[key], answer[key])
                for key in ("peak_reserved", "peak_allocated", "segments", "num_alloc_retries", "num_ooms")
                if expected.statistics[key] != answer[key]
            }
            self.note(f"{run.name}, what_if", str(wrong) if wrong else "")


def answers(command: list[str]) -> dict[int, dict[str, Any]]:
    """What the simulator's program prints, by device."""
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {answer["device"]: answer for answer in map(json.loads, lines)}


def traces(folder: Path) -> Iterator[tuple[Path, dict[str, Any], int]]:
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".pickle", ".pkl") or "synthetic" in path.name:
            continue
        snapshot = load(path)
        if snapshot is None:
            continue
        for device, events in enumerate(snapshot["device_traces"]):
            if any(event["action"] == "alloc" for event in events):
                yield path, snapshot, device


def replays(simulator: Path, named: list[tuple[Path, dict[str, Any], int]]) -> bool:
    """Every address under the recorded settings."""
    good = 0
    for path, _, device in named:
        result = answers([str(simulator), "replay", str(path)])[device]
        whole = all(result[key] == result[f"{key}_matched"] for key in ("segment_events", "end_blocks"))
        exact = whole and result["matched"] == result["alloc_addresses"]
        good += exact
        count = f"{result['matched']} of {result['alloc_addresses']} addresses"
        print(f"replay {path.stem}/{device}, {result['release']}: {count} {result['reason']}", flush=True)
    print(f"replay: {good} of {len(named)} device traces exact", flush=True)
    return good == len(named)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("simulator", type=Path)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--releases", default=RELEASES)
    arguments.add_argument("--seeds", type=int, default=1000)
    arguments.add_argument("--first-seed", type=int, default=0)
    arguments.add_argument("--traces", type=Path, default=HERE.parents[2] / "shared" / "snapshots")
    given = arguments.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    named = list(traces(given.traces)) if given.traces.is_dir() else []
    if not named:
        print(f"no recorded traces in {given.traces}: random lists of calls alone", flush=True)
    good = replays(given.simulator.resolve(), named)
    for version in given.releases.split(","):
        comparison = Comparison(given.simulator.resolve(), folder, version)
        for path, snapshot, device in named:
            comparison.trace(path, snapshot, device)
        good = comparison.summary("traces and settings, and what_if() on them") and good
        good = comparison.seeds(given.first_seed, given.seeds) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
