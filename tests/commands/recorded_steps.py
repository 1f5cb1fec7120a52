"""What a recording of programs/steps_known.py holds, worked out from its exported events alone."""
import sys
from pathlib import Path

import harness
import nested

PROGRAM = Path(__file__).resolve().parent / "programs" / "steps_known.py"


def record_steps(folder):
    return nested.record(folder / "recording", [sys.executable, PROGRAM]).ok().folder


def format_bytes(size):
    """Three digits, binary units, as every report writes sizes."""
    if size < 1024:
        return f"{size} B"
    value, unit = float(size), 0
    while value >= 1023.5:
        value, unit = value / 1024, unit + 1
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f} {('B', 'KiB', 'MiB', 'GiB')[unit]}"


class Replay:
    """The plainest replay: a dictionary of live blocks, and the highest level."""

    def __init__(self, events, step_ends):
        """`step_ends`: indexes of the events that follow the ends of steps."""
        self.peak_bytes, self.peak_index, self.ends, self.most = 0, -1, [], []
        live, level, highest = {}, 0, 0
        ends = list(step_ends)
        for index, event in enumerate(events):
            while ends and ends[0] <= index:
                self.ends.append(dict(live))
                self.most.append(highest)
                highest, ends = level, ends[1:]
            if event["action"] == "alloc":
                live[event["address"]] = event
                last_allocation = index
                level += event["size_bytes"]
            elif event["action"] == "free_completed" and event["address"] in live:
                level -= live.pop(event["address"])["size_bytes"]
            highest = max(highest, level)
            if level > self.peak_bytes:
                self.peak_bytes, self.peak_index, self.at_peak = level, index, dict(live)
        for _ in ends:
            self.ends.append(dict(live))
            self.most.append(highest)
            highest = level
        self.at_end = live
        self.after_last_allocation = {}
        for event in events[: last_allocation + 1]:
            if event["action"] == "alloc":
                self.after_last_allocation[event["address"]] = event
            elif event["action"] == "free_completed":
                self.after_last_allocation.pop(event["address"], None)


def size_of(live):
    return sum(event["size_bytes"] for event in live.values())


def line_of(event):
    """The innermost frame in the program itself; None where there is none."""
    for frame in harness.frames(event):
        if not isinstance(frame, str) and frame.file.endswith("steps_known.py"):
            return frame
    return None
