"""Runs lists of calls through PyTorch's own allocator and through the simulator, and compares every line."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from call_lists import Run


@dataclass
class Outcome:
    lines: list[str]  # addresses, refusals, calls of the driver
    statistics: dict[str, int]


def outcome(command: list[str], run: Run, environment: dict[str, str]) -> Outcome | str:
    """What the program printed; its complaint where it refused the settings or died."""
    done = subprocess.run(
        command, input="\n".join(run.calls) + "\n", capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "what():" in line] or done.stderr.splitlines() or ["?"]
        return f"exit {done.returncode}: {lines[0].strip()}"
    *lines, statistics = done.stdout.splitlines()
    return Outcome(lines, json.loads(statistics))


def real(
    program: Path, run: Run, snapshot: Path | None = None, falling: bool = False, under: list[str] | None = None
) -> Outcome | str:
    """PyTorch's own allocator; `under`: a command that runs it."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("PYTORCH_")}
    environment = keep | {"PYTORCH_CUDA_ALLOC_CONF": run.conf, "FAKE_CUDA_TOTAL": str(run.capacity_bytes)}
    if run.fraction is not None:
        environment["REFERENCE_FRACTION"] = repr(run.fraction)
    if snapshot is not None:
        environment["REFERENCE_SNAPSHOT"] = str(snapshot)
    if falling:
        environment["FAKE_CUDA_FALLING"] = "1"
    return outcome([*(under or []), str(program)], run, environment)


def simulated(program: Path, release: str, run: Run) -> Outcome | str:
    command = [str(program), "calls", release, run.conf, str(run.capacity_bytes)]
    if run.fraction is not None:
        command.append(repr(run.fraction))
    return outcome(command, run, dict(os.environ))


def pages(lines: list[str], kinds: str) -> list[str]:
    return [line for line in lines if line[0] in kinds]


def difference(expected: Outcome | str, found: Outcome | str) -> str:
    """Empty where all addresses, refusals, peaks, ends and counts are equal; else the first that is not."""
    if isinstance(expected, str) or isinstance(found, str):
        return "" if isinstance(expected, str) and isinstance(found, str) else f"real {expected}; simulated {found}"
    mine, theirs = pages(found.lines, "AO"), pages(expected.lines, "AO")
    for a, b in zip(theirs, mine, strict=True):
        if a != b:
            return f"real {a}; simulated {b}"
    wrong: dict[str, Any] = {
        key: (value, found.statistics[key])
        for key, value in expected.statistics.items()
        if found.statistics[key] != value
    }
    if wrong:
        return f"real, simulated: {wrong}"
    # A range is mapped page by page there, in one go here: compare what was asked of cudaMalloc alone, in any order
    # within one release.
    return "" if pages(expected.lines, "M") == pages(found.lines, "M") else "the calls of cudaMalloc differ"
