"""What the direct peer's detectors say of the same programs: stormlog 0.4.3, in a virtual environment of its own.

It samples totals; here it is spared that. It gets the bytes that the recording says were live when each step ended,
exact to the byte, in the two forms that its detectors read: a result a step (its detector for PyTorch) and a series
(its detector for TensorFlow, which takes any series). Neither can name a line, a bug or a holder.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

PEER = "stormlog==0.4.3"

# Runs with the peer's package on the path behind ours: PyTorch, which it imports, is the project's own.
ASK = """
import json, sys, types
sys.path.append(sys.argv[1])
from stormlog.analyzer import MemoryAnalyzer
from stormlog.profiler import MemorySnapshot, ProfileResult
from stormlog.tensorflow.analyzer import MemoryAnalyzer as SeriesAnalyzer
def at(i, live):
    return MemorySnapshot(float(i), live, live, live, live, live, 0, 0)
for line in sys.stdin:
    live = json.loads(line)
    results = [ProfileResult("step", 1.0, at(i, a), at(i + 1, b), at(i + 1, max(a, b)), max(0, b - a), max(0, a - b), 0, 0)
               for i, (a, b) in enumerate(zip(live, live[1:]))]
    patterns = MemoryAnalyzer().analyze_memory_patterns(results)
    series = types.SimpleNamespace(memory_usage=[b / 2**20 for b in live], timestamps=[float(i) for i in range(len(live))])
    print(json.dumps({"results": any(p.pattern_type == "memory_leak" for p in patterns),
                      "series": bool(SeriesAnalyzer().detect_memory_leaks(series))}))
"""


def live_at_step_ends(command, recording, steps):
    """Bytes of host tensors that live after each step, from the export of all events, in order of time. Where the
    program takes no optimizer step the ends are `steps` equal parts of its events."""
    argv = [command, "export", recording, "--to", "jsonl"]
    exported = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    live, total, after, step_of = {}, 0, [], []
    for line in exported:
        event = json.loads(line)
        key = (event["process"], event["address"])
        if event["action"] == "alloc":
            live[key] = event["size_bytes"]
            total += event["size_bytes"]
        elif event["action"].startswith("free"):
            total -= live.pop(key, 0)
        after.append(total)
        step_of.append(event.get("step"))
    ends = {step: i for i, step in enumerate(step_of) if step is not None}
    if len(ends) >= 10:
        return [after[i] for _, i in sorted(ends.items())]
    return [after[(i + 1) * len(after) // steps - 1] for i in range(steps)] if after else []


def install(folder):
    """The peer's packages, in a virtual environment under `folder`; made once."""
    venv = folder / "peer-venv"
    stamp = venv / f".{PEER}"
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin" / "python", "-m", "pip", "install", "-q", PEER], check=True)
        stamp.touch()
    return next((venv / "lib").glob("python*/site-packages"))


def ask(folder, all_live):
    """What its two detectors say, {"results": bool, "series": bool}, of each list of live bytes."""
    text = "".join(json.dumps(live) + "\n" for live in all_live)
    argv = [sys.executable, "-c", ASK, install(folder)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True, env=environment)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(folder, programs):
    """Text. `programs`: (bug or None, live bytes at the ends of steps) of each."""
    said = ask(Path(folder), [live for _, live in programs])
    lines = []
    for kind, what in (("results", "a result a step"), ("series", "a series")):
        found = sum(answer[kind] for answer, (bug, _) in zip(said, programs, strict=True) if bug)
        alarms = sum(answer[kind] for answer, (bug, _) in zip(said, programs, strict=True) if not bug)
        leaks = sum(1 for bug, _ in programs if bug)
        lines.append(f"{PEER}, {what}: {found} of {leaks} found, no line, name or holder; "
                     f"false alarms: {alarms} of {len(programs) - leaks}")
    return "\n".join(lines)
