"""Programs in C, and what the events of `run --host` say of a memory."""
import subprocess

import harness


def compiled(folder, name, *options):
    out = folder / name
    subprocess.run(["cc", "-O1", "-fno-builtin", "-w", "-pthread", harness.PROGRAMS / f"{name}.c", "-o", out, *options], check=True)
    return out


def of(events, memory, process=None):
    return [e for e in events if e["device"] == f"host {memory}" and process in (None, harness.pid_of(e))]


def sizes(events, memory, process=None):
    return [e["size_bytes"] for e in of(events, memory, process) if e["action"] == "alloc"]


def live(events, memory):
    """Sizes of what is live after the last event, by the events alone."""
    blocks = {}
    for event in of(events, memory):
        place = event["process"], event.get("address")
        if event["action"] == "alloc":
            assert place not in blocks, event
            blocks[place] = event["size_bytes"]
        elif event["action"] == "free_completed":
            assert place in blocks, event
            del blocks[place]
    return sorted(blocks.values())
