"""PyTorch's own allocator under `gpumemprof run`: what the recording says, event for event, against the history
that the allocator recorded of itself in the same process, and what-if on it against that allocator.

    python recorded.py GPUMEMPROF FOLDER [--releases 2.5.1,2.13.0] [--seeds 40]
"""

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import build
import call_lists
import compare
from call_lists import MIB, Run

HERE = Path(__file__).resolve().parent
Snapshot = dict[str, Any]
FIRST_WITH_POOLS = 8  # in what the tracker says …
FIRST_WITH_POOLS_IN_EVENTS = 12  # … and in the allocator's own history
KINDS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
         "segment_unmap", "oom")  # fmt: skip


def record(command: Path, program: Path, run: Run, folder: Path) -> tuple[Path, Snapshot] | None:
    """The recording of one list of calls, and the allocator's own snapshot; None where the settings are refused."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    own, recording = folder / "own.json", folder / "recording"
    done = compare.real(program, run, own, under=[str(command), "run", "-o", str(recording), "--"])
    if isinstance(done, str):
        alone = compare.real(program, run)
        assert isinstance(alone, str), f"under run alone: {done}"
        return None
    return recording, json.loads(own.read_text())


def exported(command: Path, recording: Path, *options: str) -> Snapshot:
    path = recording.parent / "exported.pickle"
    line = [str(command), "export", str(recording), "--to", "snapshot", "-o", str(path), *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    snapshot: Snapshot = pickle.loads(path.read_bytes())
    return snapshot


def event_of(event: dict[str, Any], has_pool: bool) -> tuple[Any, ...]:
    place = event.get("addr", event.get("device_free"))
    pool = tuple(event["pool_id"]) if has_pool else ()
    return (event["action"], place, event["size"], event["stream"], *pool)


def segment_of(segment: dict[str, Any], has_pool: bool) -> tuple[Any, ...]:
    keys = ("address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type",
            "is_expandable")  # fmt: skip
    pool = tuple(segment["segment_pool_id"]) if has_pool else ()
    blocks = [
        (b["address"], b["size"], b["state"], b["requested_size"] if b["state"] != "inactive" else None)
        for b in segment["blocks"]
    ]
    return (*(segment[key] for key in keys), pool, tuple(blocks))


def difference(own: Snapshot, found: Snapshot, minor: int) -> str:
    """Empty where every event and every block of the end is equal; else the first that is not."""
    expected = [event for event in own["device_traces"][0] if event["action"] in KINDS]
    seen = found["device_traces"][0] if found["device_traces"] else []
    in_events = minor >= FIRST_WITH_POOLS_IN_EVENTS
    for index, (a, b) in enumerate(zip(expected, seen, strict=False)):
        if event_of(a, in_events) != event_of(b, in_events):
            return f"event {index}: the allocator {event_of(a, in_events)}, recorded {event_of(b, in_events)}"
    if len(expected) != len(seen):
        return f"{len(expected)} events, {len(seen)} of them recorded"
    has_pool = minor >= FIRST_WITH_POOLS
    mine = sorted(segment_of(s, has_pool) for s in own["segments"])
    theirs = sorted(segment_of(s, has_pool) for s in found["segments"])
    for one, other in zip(mine, theirs, strict=False):
        if one != other:
            return f"segment: the allocator {one}, recorded {other}"
    return "" if len(mine) == len(theirs) else f"{len(mine)} segments, {len(theirs)} of them recorded"


def pool_gave_back(snapshot: Snapshot) -> bool:
    events = snapshot["device_traces"][0]
    kinds = ("segment_free", "segment_unmap")
    return any(e["action"] in kinds and tuple(e.get("pool_id", (0, 0))) != (0, 0) for e in events)


def questions(minor: int, peak: int) -> list[tuple[str, int]]:
    """Settings and capacities that are asked about each recording."""
    smaller = peak * 9 // 10 // (2 * MIB) * 2 * MIB
    asked = [("", 0), ("expandable_segments:True", 0), ("max_split_size_mb:64,roundup_power2_divisions:4", 0)]
    asked += [("", smaller), ("expandable_segments:True", smaller)]
    return asked + ([("large_segment_size_mb:64", 0)] if minor >= 11 else [])


def replay_of(command: Path, path: Path) -> dict[str, Any]:
    line = [str(command), "analyze", str(path), "--format", "json"]
    report = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    (device,) = [device for device in report["devices"] if device["device"] == "cuda:0"]
    replay: dict[str, Any] = device["replay"]
    return replay


class Recorded:
    """Counts of one release."""

    def __init__(self, command: Path, folder: Path, version: str) -> None:
        self.command, self.folder, self.version = command, folder / version / "recorded", version
        self.program = build.build(version, folder)
        self.minor = int(version.split(".")[1])
        self.lists = self.equal = self.events = self.refusals = 0
        self.addresses = self.matched = self.replayed = self.as_own = self.asked = self.answered = 0

    def say(self, name: str, what: str) -> None:
        print(f"{self.version} {name}: {what[:400]}", flush=True)

    def check(self, run: Run) -> None:
        made = record(self.command, self.program, run, self.folder)
        if made is None:
            return
        recording, own = made
        self.lists += 1
        self.events += len(own["device_traces"][0])
        self.refusals += sum(event["action"] == "oom" for event in own["device_traces"][0])
        unsealed = difference(own, exported(self.command, recording, "--no-seal"), self.minor)
        snapshot = exported(self.command, recording)
        wrong = unsealed or difference(own, snapshot, self.minor)
        self.equal += not wrong
        if wrong:
            self.say(f"{run.name} [{run.conf}]", wrong)
        elif run.fraction is None and self.pools_are_told(run):  # neither is a part of a history
            is_exact = self.replay(run, recording)
            # Whether a private pool gave memory back in a retry or with its last user is in no history either.
            if is_exact and not pool_gave_back(snapshot):
                self.what_if(run, recording, snapshot)

    def pools_are_told(self, run: Run) -> bool:
        return self.minor >= FIRST_WITH_POOLS or not any(call[0] == "p" for call in run.calls)

    def replay(self, run: Run, recording: Path) -> bool:
        """Whether every address came out; no fewer than from the allocator's own history (which has no pools before 2.12)."""
        found = replay_of(self.command, recording)
        self.addresses += found["alloc_addresses"]
        self.matched += found["matched"]
        if found["alloc_addresses"] != found["matched"]:
            self.say(run.name, f"[{run.conf}] replay: {found['matched']} of {found['alloc_addresses']} addresses")
        own = replay_of(self.command, recording.parent / "own.json")
        self.as_own += own["alloc_addresses"] == found["alloc_addresses"] and own["matched"] <= found["matched"]
        self.replayed += 1
        return bool(found["alloc_addresses"] == found["matched"])

    def what_if(self, run: Run, recording: Path, snapshot: Snapshot) -> None:
        calls = call_lists.calls_of_trace(snapshot, 0)
        base = compare.real(self.program, Run(run.name, calls))
        if isinstance(base, str):
            return
        for settings, capacity in questions(self.minor, base.statistics["peak_reserved"]):
            line = [str(self.command), "whatif", str(recording), "--set", settings, "--format", "json"]
            line += ["--capacity", str(capacity)] if capacity else []
            done = subprocess.run(line, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            answer = json.loads(done.stdout)["results"][-1]
            asked = Run(run.name, calls, [settings] if settings else [], capacity or 1 << 44)
            expected = compare.real(self.program, asked)
            assert not isinstance(expected, str), expected
            told = {"peak_reserved": answer["peak_reserved_bytes"], "segments": answer["segments"],
                    "num_alloc_retries": answer["num_alloc_retries"], "num_ooms": answer["num_ooms"]}  # fmt: skip
            wrong = {k: (expected.statistics[k], v) for k, v in told.items() if expected.statistics[k] != v}
            self.asked += 1
            self.answered += not wrong
            if wrong:
                self.say(run.name, f"what if [{settings}] on {capacity}: real, told {wrong}")

    def summary(self) -> bool:
        counts = f"{self.equal} of {self.lists} recordings equal ({self.events} events, {self.refusals} refused), "
        counts += f"replay {self.matched} of {self.addresses} addresses, "
        counts += f"{self.as_own} of {self.replayed} as the own history, what-if {self.answered} of {self.asked} equal"
        print(f"{self.version}: {counts}", flush=True)
        return 0 < self.lists == self.equal and self.as_own == self.replayed and self.answered == self.asked


def layout_is_known(folder: Path, version: str) -> bool:
    """Whether the probe's table has what the release's own header and library say."""
    done = subprocess.run([build.build(version, folder, "layout.cc")], capture_output=True, text=True, check=False)
    table = (HERE.parents[1] / "src" / "probe" / "hooks" / "torch_release.cc").read_text()
    good = done.returncode == 0 and done.stdout.strip() in table
    print(f"{version}: layout {done.stdout.strip()} {'known' if good else 'NOT KNOWN'}", flush=True)
    return good


def check_release(command: Path, folder: Path, version: str, first: int, seeds: int) -> bool:
    recorded = Recorded(command, folder, version)
    for seed in range(first, first + seeds):
        recorded.check(call_lists.random_run(seed, recorded.minor))
    return layout_is_known(folder, version) and recorded.summary()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("command", type=Path)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--releases", default="2.5.1,2.6.0,2.10.0,2.11.0,2.12.0,2.13.0,2.15.0")
    arguments.add_argument("--seeds", type=int, default=40)
    arguments.add_argument("--first-seed", type=int, default=0)
    given = arguments.parse_args()
    in_build = given.command.resolve().parent / "src" / "probe" / "libgpumemprof_probe.so"
    if in_build.exists():
        os.environ.setdefault("GPUMEMPROF_PROBE", str(in_build))
    folder = given.folder.resolve()
    good = True
    for version in given.releases.split(","):
        good = check_release(given.command.resolve(), folder, version, given.first_seed, given.seeds) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
