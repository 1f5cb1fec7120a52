"""Snapshots for tests: the real ones where they are, one worked out on paper, and a plain model of what they say."""

import collections
import pickle

import harness
import pytest

REAL = harness.ROOT.parent / "shared" / "snapshots"
MIB = 1 << 20

Peak = collections.namedtuple("Peak", "bytes event")


class _DataOnly(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def load(path):
    with open(path, "rb") as file:
        return _DataOnly(file).load()


def real(name):
    path = REAL / name
    if not path.exists():
        pytest.skip(f"needs {path}")
    return path


def real_traces():
    """(file name, device) of every real snapshot that has allocations; one that is skipped where there are none."""
    if not REAL.exists():
        return [("no ../shared/snapshots", 0)]
    out = []
    for path in sorted(REAL.glob("*.p*k*")):
        data = load(path)
        for device, trace in enumerate(data.get("device_traces", []) if isinstance(data, dict) else []):
            if any(event["action"] == "alloc" for event in trace):
                out.append((path.name, device))
    return out


def blocks(segment):
    address = segment["address"]
    for block in segment["blocks"]:
        yield block.get("address", address), block
        address += block["size"]


def live_before(data, device):
    """Requested bytes by address: freed first in the trace, or live in the end and never in it."""
    seen, out = set(), {}
    for event in data["device_traces"][device]:
        if event["action"] == "alloc":
            seen.add(event["addr"])
        elif event["action"] == "free_completed" and event["addr"] not in seen:
            seen.add(event["addr"])
            out[event["addr"]] = event["size"]
    for segment in data["segments"]:
        for address, block in blocks(segment) if segment["device"] == device else ():
            if block["state"] != "inactive" and address not in seen:
                out[address] = block.get("requested_size", block["size"])
    return out


def requested_peak(data, device):
    """The first event with the highest requested bytes; no event where that was before the first one."""
    live = live_before(data, device)
    now = sum(live.values())
    peak = Peak(now, None)
    for index, event in enumerate(data["device_traces"][device]):
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"]
            now += event["size"]
        elif event["action"] == "free_completed":
            now -= live.pop(event["addr"])
        if now > peak.bytes:
            peak = Peak(now, index)
    return peak


def reserved_peak(data, device):
    """Worked backwards from the segments of the end."""
    steps = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    trace = data["device_traces"][device]
    changes = [steps.get(event["action"], 0) * event.get("size", 0) for event in trace]
    now = sum(s["total_size"] for s in data["segments"] if s["device"] == device) - sum(changes)
    peak = Peak(now, None)
    for index, change in enumerate(changes):
        now += change
        if now > peak.bytes:
            peak = Peak(now, index)
    return peak


def on_paper(path, **settings):
    """One device: 20 MiB with a live block of 4 MiB amid free pieces, 16 MiB in use, then 32 MiB are refused with 24 MiB
    free on the device. Writes it to `path` and returns what was written."""
    first, second = 0x7F0000000000, 0x7F0010000000
    line = {name: [{"filename": "/job/train.py", "line": number, "name": name}]
            for number, name in enumerate(["early", "kept", "late", "big", "refused"], 1)}
    trace = []

    def add(action, address, mib, name="early", key="addr"):
        trace.append({"action": action, key: address, "size": mib * MIB, "stream": 0, "frames": line[name],
                      "time_us": 1_700_000_000_000_000 + len(trace) * 1000, "compile_context": "N/A"})

    def free(address, mib, name):
        add("free_requested", address, mib, name)
        add("free_completed", address, mib, name)

    add("segment_alloc", first, 20)
    add("alloc", first, 4)
    add("alloc", first + 4 * MIB, 4, "kept")
    add("alloc", first + 8 * MIB, 4, "late")
    free(first, 4, "early")
    free(first + 8 * MIB, 4, "late")
    add("segment_alloc", second, 16, "big")
    add("alloc", second, 16, "big")
    add("oom", 24 * MIB, 32, "refused", key="device_free")

    def block(address, mib, name=None):
        return {"address": address, "size": mib * MIB, "requested_size": mib * MIB,
                "state": "active_allocated" if name else "inactive", "frames": line[name] if name else []}

    def segment(address, mib, used, parts):
        return {"device": 0, "address": address, "total_size": mib * MIB, "allocated_size": used * MIB,
                "active_size": used * MIB, "requested_size": used * MIB, "stream": 0, "segment_type": "large",
                "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": parts}

    data = {
        "segments": [
            segment(first, 20, 4, [block(first, 4), block(first + 4 * MIB, 4, "kept"), block(first + 8 * MIB, 12)]),
            segment(second, 16, 16, [block(second, 16, "big")]),
        ],
        "device_traces": [trace],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                               "expandable_segments": False, "roundup_power2_divisions": {}, **settings},
        "external_annotations": [],
    }
    with open(path, "wb") as file:
        pickle.dump(data, file, protocol=4)
    return data
