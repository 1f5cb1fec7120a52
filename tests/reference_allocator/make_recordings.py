"""Makes tests/fixtures/recordings/: PyTorch's own allocator recorded by `gpumemprof run`, the history that it recorded
of itself meanwhile, and its answers to questions about it. Needs root: the name of the machine is left out.

    python make_recordings.py GPUMEMPROF FOLDER [NAME...]    FOLDER: where `make test-allocator` keeps the builds;
                                                             NAME: only these
"""

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import build
import call_lists
import compare
import recorded
from call_lists import MIB, Run

OUTPUT = Path(__file__).resolve().parent.parent / "fixtures" / "recordings"
KEPT = ("peak_reserved", "peak_allocated", "reserved", "segments", "num_alloc_retries", "num_ooms")


def runs() -> list[tuple[str, str, Run]]:
    """Name, release and calls: one with streams and refusals on a small device, one with pages and private pools, …"""
    streams = call_lists.random_calls(random.Random(14), 4, True, False)[:900]
    pools = call_lists.random_calls(random.Random(15), 2, False, True)[:700]
    return [
        ("streams_2.13", "2.13.0", Run("", streams, ["max_split_size_mb:64"], 700 * MIB)),
        ("pools_2.15", "2.15.0", Run("", pools, ["expandable_segments:True"], 3000 * MIB)),
        # Addresses of an expandable segment run out, as they do at nine eighths of the device.
        ("range_2.6", "2.6.0", call_lists.random_run(13, 6)),
        # A limit of the process refuses the last request of these, for fragmentation.
        ("limited_2.11", "2.11.0", limited_run(811)),
    ]


def limited_run(refused_after: int | None) -> Run:
    calls = call_lists.steps_of_many_lengths(40, refused_after)
    return Run("", calls, [], 139 << 30, 6000 * MIB / (139 << 30))


def record(command: Path, program: Path, run: Run, folder: Path) -> tuple[Path, dict[str, Any], str]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    script = f"hostname machine && cd {program.parent} && exec {command} run -o {folder}/recording -- ./reference"
    environment = dict(os.environ) | {"PYTORCH_CUDA_ALLOC_CONF": run.conf, "FAKE_CUDA_TOTAL": str(run.capacity_bytes)}
    environment["REFERENCE_SNAPSHOT"] = str(folder / "own.json")
    environment["REFERENCE_MESSAGES"] = "1"
    if run.fraction is not None:
        environment["REFERENCE_FRACTION"] = repr(run.fraction)
    done = subprocess.run(
        ["unshare", "--uts", "sh", "-c", script], input="\n".join(run.calls) + "\n", text=True, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True,
    )  # fmt: skip
    messages = [line for line in done.stderr.splitlines() if line.startswith("CUDA out of memory.")]
    return folder / "recording", json.loads((folder / "own.json").read_text()), messages[0] if messages else ""


def answers_to(program: Path, snapshot: dict[str, Any], minor: int) -> list[dict[str, Any]]:
    calls = call_lists.calls_of_trace(snapshot, 0)
    base = compare.real(program, Run("", calls))
    assert not isinstance(base, str), base
    answers = []
    for settings, capacity in recorded.questions(minor, base.statistics["peak_reserved"]):
        expected = compare.real(program, Run("", calls, [settings] if settings else [], capacity or 1 << 44))
        assert not isinstance(expected, str), expected
        told = {key: expected.statistics[key] for key in KEPT}
        answers.append({"settings": settings, "capacity": capacity} | told)
    return answers


def answers_within(program: Path, snapshot: dict[str, Any], run: Run) -> list[dict[str, Any]]:
    """The same on the recorded device, under the process's limit."""
    answers = []
    for settings in ("", "expandable_segments:True", "max_split_size_mb:128", "garbage_collection_threshold:0.8",
                     "roundup_power2_divisions:4"):  # fmt: skip
        asked = Run("", call_lists.calls_of_trace(snapshot, 0), [settings] if settings else [], run.capacity_bytes, run.fraction)
        expected = compare.real(program, asked)
        assert not isinstance(expected, str), expected
        answers.append({"settings": settings} | {key: expected.statistics[key] for key in KEPT})
    return answers


def main() -> int:
    command, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    names = sys.argv[3:]
    table = [entry for entry in json.loads((OUTPUT / "answers.json").read_text()) if names and entry["name"] not in names]
    for name, version, run in runs():
        if names and name not in names:
            continue
        program = build.build(version, folder)
        minor = int(version.split(".")[1])
        recording, own, message = record(command, program, run, folder / "fixture")
        snapshot = recorded.exported(command, recording)
        wrong = recorded.difference(own, snapshot, minor)
        assert not wrong, wrong
        (file,) = recording.glob("*.gmp")
        shutil.copy(file, OUTPUT / f"{name}.gmp")
        for entry in own["device_traces"][0] + own["segments"]:
            entry.pop("frames", None)
            for block in entry.get("blocks", ()):
                block.pop("frames", None)
        (OUTPUT / f"{name}.pickle").write_bytes(pickle.dumps(own, protocol=4))
        table.append({"name": name, "release": f"2.{minor}", "settings": run.conf, "capacity": run.capacity_bytes,
                      "answers": answers_to(program, snapshot, minor)})  # fmt: skip
        if run.fraction is not None:
            table[-1] |= {"fraction": run.fraction, "message": message, "within": answers_within(program, snapshot, run)}
        sizes = [(OUTPUT / f"{name}.{kind}").stat().st_size for kind in ("gmp", "pickle")]
        print(name, len(own["device_traces"][0]), "events", sizes, "bytes")
    lines = ",\n".join(json.dumps(entry).replace('{"settings"', '\n {"settings"') for entry in table)
    (OUTPUT / "answers.json").write_text(f"[{lines}]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
