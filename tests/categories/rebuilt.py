"""The snapshot that PyTorch would have written of a recorded run: the same blocks, lives and Python stacks, without a mark.

A snapshot's frames have the plain name of a function and none of the recorder's own; frees have the stack of the
allocation, as with `context="alloc"`, since a recording has none of theirs.
"""

import pickle
import re

FRAME = re.compile(r"(?P<file>.+?):(?P<line>\d+) (?P<name>.+)")


def frames_of(event, is_hidden):
    """`is_hidden(event)`: on a GPU this runs on a thread of autograd's own, which has no Python frames."""
    if is_hidden(event):
        return []
    frames = []
    for line in event.get("stack", []):
        found = None if line.startswith("<torch ") or line.startswith("<phase>") else FRAME.fullmatch(line)
        if found:
            frames.append({"filename": found["file"], "line": int(found["line"]),
                           "name": found["name"].rsplit(".", 1)[-1]})
    return frames


def runs_in_backward(event):
    return any(line.startswith("<torch backward>") for line in event.get("stack", []))


def snapshot_of(events, is_hidden=lambda event: False):
    """Of the events of one device, as `export --to jsonl` has them."""
    trace, live = [], {}
    for event in events:
        entry = {"addr": event["address"], "stream": 0, "time_us": event["time_ns"] // 1000}
        if event["action"] == "alloc":
            frames = frames_of(event, is_hidden)
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
