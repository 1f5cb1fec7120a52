"""The snapshot that PyTorch would have written of a recorded run: the same blocks, lives and Python stacks, without a mark.

A snapshot's frames have the plain name of a function and none of the recorder's own; frees have the stack of the
allocation, as with `context="alloc"`, since a recording has none of theirs.
"""

import pickle
import re

LABELS = ("<torch ", "<phase>")
FRAME = re.compile(r"(?P<file>.+?):(?P<line>\d+) (?P<name>.+)")


def frames_of(event, on_own_thread=False):
    """`on_own_thread`: backward as a GPU's, on a thread of autograd's own, where nobody's frames are around its."""
    frames = []
    for line in event.get("stack", []):
        found = None if line.startswith(LABELS) else FRAME.fullmatch(line)
        if found is None:
            continue
        name = found["name"].rsplit(".", 1)[-1]
        if on_own_thread and name == "_engine_run_backward":
            return frames
        frames.append({"filename": found["file"], "line": int(found["line"]), "name": name})
    return frames


def snapshot_of(events, on_own_thread=False):
    """Of the events of one device, as `export --to jsonl` has them."""
    trace, live = [], {}
    for event in events:
        entry = {"addr": event["address"], "stream": 0, "time_us": event["time_ns"] // 1000}
        if event["action"] == "alloc":
            frames = frames_of(event, on_own_thread)
            live[event["address"]] = (event["size_bytes"], frames)
            trace.append({"action": "alloc", "size": event["size_bytes"], "frames": frames, **entry})
        elif event["address"] in live:
            size, frames = live.pop(event["address"])
            for action in ("free_requested", "free_completed"):
                trace.append({"action": action, "size": size, "frames": frames, **entry})
    for entry in trace:
        if not entry["frames"]:
            del entry["frames"]  # as PyTorch does
    segments = [segment_of(address, size, frames) for address, (size, frames) in live.items()]
    return {"segments": segments, "device_traces": [trace], "external_annotations": []}


def segment_of(address, size, frames):
    block = {"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames}
    return {"device": 0, "address": address, "total_size": size, "allocated_size": size, "active_size": size,
            "requested_size": size, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": [block]}  # fmt: skip


def write(path, snapshot):
    path.write_bytes(pickle.dumps(snapshot, protocol=4))
    return path
