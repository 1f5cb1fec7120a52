"""Makes tests/fixtures/allocator/: small snapshots that PyTorch's own allocator recorded of itself, and the
answers of that allocator to questions about them.

    python make_fixtures.py FOLDER [OUTPUT]        FOLDER: where `make test-allocator` keeps the builds
"""

import json
import pickle
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import build
import call_lists
import compare
import run as comparison
from call_lists import MIB, Run

HERE = Path(__file__).resolve().parent
NEWEST = "2.15.0"


@dataclass
class Fixture:
    name: str
    release: str
    run: Run
    falling: bool = False  # later segments at lower addresses: then ties tell releases apart


def training(draw: random.Random, steps: int, layers: int, hidden: int) -> list[str]:
    """Parameters, then steps: activations forward, gradients backward, temporaries between; the batch varies."""
    calls: list[str] = []
    made = 0

    def allocate(size: int) -> int:
        nonlocal made
        made += 1
        calls.append(f"a {made} {size} 0")
        return made

    for _ in range(layers):
        allocate(4 * hidden * hidden)
        allocate(4 * hidden)
    calls.append("h-here")
    for _ in range(steps):
        batch = draw.choice([24, 32, 40])
        activations = []
        for _ in range(layers):
            temporary = allocate(4 * batch * hidden * 4)
            activations += [allocate(4 * batch * hidden), allocate(2 * batch * hidden)]
            calls.append(f"f {temporary}")
        for block in reversed(activations):
            gradient, temporary = allocate(4 * hidden * hidden), allocate(4 * batch * hidden)
            calls += [f"f {temporary}", f"f {block}", f"f {gradient}"]
    return calls


def begin_history(calls: list[str], at_start: bool) -> list[str]:
    """The history begins with the first call, or where the parameters are there: then it is a suffix."""
    return [("h" if not at_start else "r") if call == "h-here" else call for call in calls]


def fixtures() -> list[Fixture]:
    def draw(seed: int) -> random.Random:
        return random.Random(seed)

    def short(seed: int, streams: int, record: bool, pools: bool) -> list[str]:
        return call_lists.random_calls(draw(seed), streams, record, pools)[:900]

    def kept_pools(calls: list[str]) -> list[str]:
        """Before 2.12 events do not name their pool: it is known while the segment is there at the end."""
        return [call for call in calls if call[0] not in "xe"]

    divisions, garbage = "roundup_power2_divisions:[1:4,16:2,>:8]", "garbage_collection_threshold:0.5"
    large, expandable = "large_segment_size_mb:64", "expandable_segments:True"
    step = training(draw(1), 4, 6, 1024)
    small_gpu = training(draw(2), 4, 6, 2048)
    return [
        Fixture("training_2.5", "2.5.1", Run("", begin_history(step, True))),
        Fixture("training_suffix_2.10", "2.10.0", Run("", begin_history(step, False))),
        Fixture("training_expandable_2.6", "2.6.0", Run("", begin_history(step, True), [expandable])),
        Fixture("expandable_suffix_2.11", "2.11.0", Run("", begin_history(step, False), [expandable])),
        Fixture("full_device_2.12", "2.12.0", Run("", begin_history(small_gpu, True), [], 100 * MIB)),
        Fixture("max_split_2.13", "2.13.0", Run("", short(11, 2, False, False), ["max_split_size_mb:32"], 1024 * MIB)),
        Fixture("roundup_2.9", "2.9.1", Run("", short(12, 1, False, False), [divisions])),
        Fixture("garbage_2.10", "2.10.0", Run("", short(13, 1, False, False), [garbage], 4096 * MIB, 0.3)),
        Fixture("record_stream_2.13", "2.13.0", Run("", short(14, 4, True, False))),
        Fixture("private_pools_2.15", NEWEST, Run("", short(15, 2, False, True), [], 3000 * MIB)),
        Fixture("falling_2.11", "2.11.0", Run("", short(18, 1, False, False)), True),
        Fixture("falling_2.12", "2.12.0", Run("", short(18, 1, False, False)), True),
        Fixture("falling_2.13", "2.13.0", Run("", short(18, 1, False, False)), True),
        Fixture("private_pools_2.11", "2.11.0", Run("", kept_pools(short(17, 1, False, True)))),
        Fixture("large_segments_2.15", NEWEST, Run("", short(16, 2, False, False), [large, expandable])),
    ]


def strip(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Equal frames become one object, as in PyTorch's own pickles: a third of the size."""
    frames: dict[str, Any] = {}

    def share(entry: dict[str, Any]) -> None:
        if "frames" in entry:
            entry["frames"] = frames.setdefault(json.dumps(entry["frames"]), entry["frames"])

    for entry in snapshot["device_traces"][0] + snapshot["segments"]:
        share(entry)
        for block in entry.get("blocks", ()):
            share(block)
    return snapshot


def answers_to(program: Path, snapshot: dict[str, Any], minor: int) -> list[dict[str, Any]]:
    """What the allocator does with the trace's requests under each setting."""
    calls = call_lists.calls_of_trace(snapshot, 0)
    base = compare.real(program, Run("", calls))
    assert not isinstance(base, str), base
    peak, allocated = base.statistics["peak_reserved"], base.statistics["peak_allocated"]
    answers = []
    for name, settings, capacity, fraction in comparison.questions(minor, peak, allocated):
        run = Run(name, calls, settings, capacity, fraction)
        outcome = compare.real(program, run)
        if isinstance(outcome, str):
            continue
        statistics = {key: outcome.statistics[key] for key in KEPT}
        answers.append({"settings": run.conf, "capacity": capacity, "fraction": fraction} | statistics)
    return answers


# Settings of all kinds, good and bad: which release takes which is asked of its own parser.
TEXTS = """max_split_size_mb:21 max_split_size_mb:20 max_split_size_mb:10 max_split_size_mb:abc max_split_size_mb:
max_non_split_rounding_mb:21 max_non_split_rounding_mb:20 max_non_split_rounding_mb:19 garbage_collection_threshold:0.8
garbage_collection_threshold:1 garbage_collection_threshold:0 roundup_power2_divisions:4 roundup_power2_divisions:3
roundup_power2_divisions:0 roundup_power2_divisions:[256:1,>:2] roundup_power2_divisions:[>:2]
roundup_power2_divisions:[256:0,512:4] roundup_power2_divisions:[256:3] roundup_power2_divisions:[3:4]
roundup_power2_divisions:[256:1,512:2 roundup_power2_divisions:[] expandable_segments:True expandable_segments:true
expandable_segments:False expandable_segments large_segment_size_mb:64 large_segment_size_mb:20
large_segment_size_mb:11 large_segment_size_mb:10 large_segment_size_mb:64,max_split_size_mb:32
max_split_size_mb:32,large_segment_size_mb:64 large_segment_size_mb:64,max_non_split_rounding_mb:32
max_non_split_rounding_mb:32,large_segment_size_mb:64 large_segment_size_mb:64,max_split_size_mb:64
max_split_size_mb:15,large_segment_size_mb:12 large_segment_size_mb:12,max_split_size_mb:15
per_process_memory_fraction:0.5 per_process_memory_fraction:0 per_process_memory_fraction:1.5
throw_on_cudamalloc_oom:True throw_on_cudamalloc_oom:1 expandable_segments_reserve:0.5 expandable_segments_reserve:40G
graph_capture_record_stream_reuse:True pinned_reserve_segment_size_mb:16 pinned_max_round_threshold_mb:16
pinned_use_cuda_host_register:True pinned_num_register_threads:8 pinned_num_register_threads:3
pinned_num_register_threads:256 pinned_use_background_threads:True backend:native backend:other
release_lock_on_cudamalloc:True unknown_key:1 expandable_segments:True, ,expandable_segments:True
expandable_segments:True,,max_split_size_mb:32 expandable_segments=True expandable_segments:True;max_split_size_mb:32
max_split_size_mb:64,max_split_size_mb:32""".split()


def settings_table(folder: Path) -> dict[str, dict[str, bool]]:
    """Text by text, release by release: accepted?"""
    table: dict[str, dict[str, bool]] = {}
    for version in SETTINGS_RELEASES:
        program = build.build(version, folder)
        for text in TEXTS:
            outcome = compare.real(program, Run("", ["a 1 1000 0"], [text]))
            table.setdefault(text, {})["2." + version.split(".")[1]] = not isinstance(outcome, str)
    return table


SETTINGS_RELEASES = ("2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.13.0", NEWEST)
KEPT = ("peak_reserved", "peak_allocated", "reserved", "segments", "num_alloc_retries", "num_ooms")


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    output = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent / "fixtures" / "allocator"
    output.mkdir(parents=True, exist_ok=True)
    table = []
    for fixture in fixtures():
        program = build.build(fixture.release, folder)
        path = folder / "fixture.json"
        recorded = compare.real(program, fixture.run, path, fixture.falling)
        assert not isinstance(recorded, str), f"{fixture.name}: {recorded}"
        snapshot = json.loads(path.read_text())
        file = output / f"{fixture.name}.pickle"
        file.write_bytes(pickle.dumps(strip(snapshot), protocol=4))
        minor = int(fixture.release.split(".")[1])
        answers = answers_to(program, snapshot, minor)
        entry: dict[str, Any] = {"file": file.name, "release": f"2.{minor}", "settings": fixture.run.conf}
        entry |= {"capacity": fixture.run.capacity_bytes, "recorded": recorded.statistics, "answers": answers}
        table.append(entry)
        actions = [event["action"] for event in snapshot["device_traces"][0]]
        print(f"{file.name}: {file.stat().st_size} bytes, {len(actions)} events, {len(answers)} answers, "
              f"{recorded.statistics['num_ooms']} refused, {recorded.statistics['num_alloc_retries']} retries")
    settings = settings_table(folder)
    rows = ",\n".join(f"{json.dumps(text)}: {json.dumps(by_release)}" for text, by_release in settings.items())
    (output / "settings.json").write_text("{" + rows + "}\n")
    lines = ",\n".join(json.dumps(entry).replace('{"settings"', '\n {"settings"') for entry in table)
    (output / "answers.json").write_text(f"[{lines}]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
