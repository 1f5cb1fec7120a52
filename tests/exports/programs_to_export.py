"""Programs whose memory can be worked out on paper, and what their recordings hold by a second way of counting."""

import collections

import harness
import nested

# Two functions keep a block each; a third lets go of its own, larger one in between. Sizes are argv.
ACME = """
import sys
import torch


def acme_keep(size):
    return torch.empty(size, dtype=torch.uint8)


def acme_spike(size):
    block = torch.empty(size, dtype=torch.uint8)
    del block


kept = acme_keep(int(sys.argv[1]))
acme_spike(int(sys.argv[2]))
later = acme_keep(int(sys.argv[1]) // 2)
"""


def record_acme(folder, keep, spike, name="acme_train.py", record=nested.record):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(ACME)
    return record(folder / "recording", [harness.PYTHON, program, keep, spike]).ok().folder


def export(folder, *options):
    return harness.execute([harness.COMMAND, "export", folder, *options]).ok().stdout


def by_stack(events):
    """Of one device: {stack: bytes} at the peak, at the end, and allocated, from the events alone."""
    naive = harness.NaivePeak(events)
    peak, end, total = (collections.Counter() for _ in range(3))
    for block in naive.peak_live:
        peak[tuple(block.get("stack", ()))] += block["size_bytes"]
    for block in naive.end_live.values():
        end[tuple(block.get("stack", ()))] += block["size_bytes"]
    for event in events:
        if event["action"] == "alloc":
            total[tuple(event.get("stack", ()))] += event["size_bytes"]
    return naive, peak, end, total


def nonzero(counter):
    return {stack: size for stack, size in counter.items() if size}
