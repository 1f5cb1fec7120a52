"""Makes tests/fixtures/trouble/: what PyTorch's own allocator recorded of itself under one program of each class of trouble
and under those that only look like it. `expected.json` has that allocator's answers to the change that the finding proposes.

    python make_trouble_fixtures.py FOLDER [OUTPUT]        FOLDER: where `make test-allocator` keeps the builds
"""

import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import build
import compare
import pinned_programs
import trouble_programs
import trouble_score
from call_lists import MIB, Run
from trouble_programs import CLEAN, WITH, Program

HERE = Path(__file__).resolve().parent
RELEASE = "2.13.0"
SEED = 7


def on_one_stream(calls: list[str]) -> list[str]:
    return [re.sub(r"^(a \d+ \d+) \d+$", r"\1 0", call) for call in calls]


def without_waiting(calls: list[str]) -> list[str]:
    return [call for call in calls if call[0] not in "uc"]


def in_one_pool(calls: list[str]) -> list[str]:
    return [re.sub(r"^([pq]) \d+$", r"\1 1", call) for call in calls]


def pinned_rounding(program: Program) -> None:
    """The program of docs/problems/pin-memory-takes-twice.md."""
    for _ in range(6):
        pinned_programs.pin(program, "buffers", 1280 * MIB)


def pinned_growth(program: Program) -> None:
    """The program of docs/problems/pinned-memory-never-freed.md."""
    for mib in (16, 32, 64, 128, 256, 512, 1024):
        pinned_programs.unpin(program, pinned_programs.pin(program, "batch", mib * MIB))


PINNED = {"pinned_rounding": pinned_rounding, "pinned_cache_growth": pinned_growth}
CHANGES = {
    "stranded_stream_cache": on_one_stream, "record_stream_pending": without_waiting, "graph_pool_slack": in_one_pool,
}  # fmt: skip


def peak(allocator: Path, calls: list[str], settings: list[str]) -> int:
    outcome = compare.real(allocator, Run("", calls, settings))
    assert not isinstance(outcome, str), outcome
    return outcome.statistics["peak_reserved"]


def answers(allocator: Path, kind: str, program: Program) -> dict[str, Any]:
    if kind in CHANGES:
        return {"changed_peak_reserved_bytes": peak(allocator, CHANGES[kind](program.calls), program.settings)}
    if kind == "settings_conflict":
        by_setting = {text.partition(":")[0]: peak(allocator, program.calls, [text]) for text in program.settings}
        return {"peak_reserved_bytes_with_only": by_setting}
    return {}


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    output = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent / "fixtures" / "trouble"
    output.mkdir(parents=True, exist_ok=True)
    allocator = build.build(RELEASE, folder)
    expected = {}
    for kind, make in [*WITH.items(), *PINNED.items(), *((None, make) for make in CLEAN)]:
        program = trouble_programs.made(SEED, make)
        snapshot, statistics = trouble_score.snapshot_of(allocator, program, folder / "trouble.json")
        file = output / f"{make.__name__}.pickle"
        file.write_bytes(pickle.dumps(snapshot, protocol=4))
        keep = {key: statistics[key] for key in ("peak_reserved", "peak_allocated", "peak_active", "num_ooms")}
        expected[file.name] = {"kind": kind} | keep | (answers(allocator, kind, program) if kind else {})
        print(f"{file.name}: {file.stat().st_size} bytes, {len(program.calls)} calls")
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in expected.items())
    (output / "expected.json").write_text("{\n" + rows + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
