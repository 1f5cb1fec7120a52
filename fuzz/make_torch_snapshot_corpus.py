"""Writes the small snapshots of fuzz/corpus/fuzz_torch_snapshot: one of each layout that PyTorch has had.

    python3 fuzz/make_torch_snapshot_corpus.py fuzz/corpus/fuzz_torch_snapshot

The unit tests read them as well, so their figures are fixed: on device 0 one segment of 2 MiB with blocks of
1,024 (live, 1,000 asked for, allocated in the trace), 512 (live since before it) and the rest free.
"""
import json
import pickle
import sys
from pathlib import Path

BASE = 0x7F0000000000
MIB = 1 << 20
START_US = 1_700_000_000_000_000

MAIN = {"filename": "train.py", "name": "main", "line": 10}
STEP = {"filename": "train.py", "name": "step", "line": 20}
NATIVE = {"filename": "??", "name": "at::empty", "line": 0}
STACK = [NATIVE, STEP, MAIN]  # innermost first


def block(offset, size, requested, state, frames):
    return {"address": BASE + offset, "size": size, "requested_size": requested, "state": state, "frames": frames}


def segment():
    return {"device": 0, "address": BASE, "total_size": 2 * MIB, "allocated_size": 1536, "active_size": 1536,
            "requested_size": 1400, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": [
                block(0, 1024, 1000, "active_allocated", STACK),
                block(1024, 512, 400, "active_allocated", [MAIN]),
                block(1536, 2 * MIB - 1536, 0, "inactive", [])]}


def event(action, offset, size, time, **more):
    return {"action": action, "addr": BASE + offset, "size": size, "stream": 0, "time_us": START_US + time, **more}


def trace(**more):
    return [event("alloc", 2048, 3000, 0, frames=STACK, **more),
            event("free_requested", 2048, 3000, 5, frames=STACK, **more),
            event("free_completed", 2048, 3000, 5, frames=STACK, **more),
            event("alloc", 0, 1000, 9, frames=[NATIVE, MAIN], **more)]


def settings(**more):
    return {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64", "max_split_size": 64 * MIB,
            "garbage_collection_threshold": 0.5, "expandable_segments": False,
            "roundup_power2_divisions": {"1": 0, "2": 4}, **more}


def annotations():
    return [{"stage": "START", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": START_US + 1},
            {"stage": "END", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": START_US + 8}]


def without(entries, *keys):
    return [{k: v for k, v in entry.items() if k not in keys} for entry in entries]


def torch_2_10(**more):
    return {"segments": [segment()], "device_traces": [trace(compile_context="N/A", user_metadata=""), []],
            "allocator_settings": settings(graph_capture_record_stream_reuse=False),
            "external_annotations": annotations(), **more}


def torch_2_0():
    old = without([segment()], "segment_pool_id", "is_expandable", "frames")
    for b in old[0]["blocks"]:
        b["history"] = [{"addr": b.pop("address"), "real_size": b["requested_size"], "frames": b.pop("frames")}]
    del old[0]["blocks"][2]["history"]
    return {"segments": old, "device_traces": [without(trace(), "time_us")]}


def torch_2_14():
    new = torch_2_10()
    new["device_traces"][0] = trace(compile_context="N/A", user_metadata="step 1", pool_id=(0, 0),
                                    forward_frames=['File "train.py", line 3, in f\n'])
    new["device_traces"][0].append({"action": "annotate", "addr": 0, "size": 0, "stream": 0, "time_us": START_US + 9})
    host = without([segment()], "segment_pool_id")
    host[0]["device"] = 0
    return {**new, "host_segments": host, "host_traces": [trace()]}


def expandable_oom():
    out = torch_2_10()
    out["segments"][0]["is_expandable"] = True
    out["device_traces"] = [[], [
        event("segment_unmap", 0, 20 * MIB, 0), event("segment_map", 0, 20 * MIB, 1),
        {"action": "oom", "device_free": 95_682_560, "size": 5_308_694_528, "stream": 2**63 - 1,
         "time_us": START_US + 2, "frames": STACK},
        event("snapshot", -BASE, 7, 3)]]
    return out


def legacy_free():
    events = without(trace()[:2], "time_us")
    events[1]["action"] = "free"
    return {"segments": [], "device_traces": [events]}


def odd():
    """What is allowed, and rare: addresses of 9 bytes, lines that are none, sets, bytes, long lists."""
    line = {**MAIN, "line": 2**64 - 1, "fx_node_op": "call", "fx_original_trace": "a\nb"}
    events = [event("alloc", 2**64 - 512 - BASE, 8, 0, frames=[line, {**MAIN, "line": -1}]),
              event("alloc", 64, 8, 0, frames=[MAIN] * 1001), event("no_such_action", 0, 0, 0)]
    return {"device_traces": [events], "segments": [], "notes": {"a": {1, 2}, "b": b"\0", "c": 2**300, "d": None}}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    files = {"torch_2_10": torch_2_10(), "torch_2_0": torch_2_0(), "torch_2_14": torch_2_14(),
             "expandable_oom": expandable_oom(), "legacy_free": legacy_free(), "segments_only": [segment()],
             "odd": odd(), "nothing": {"segments": [], "device_traces": []}}
    for name, value in files.items():
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(value, 4))
    (folder / "protocol_2.pickle").write_bytes(pickle.dumps(torch_2_10(), 2))
    (folder / "protocol_5.pickle").write_bytes(pickle.dumps(torch_2_10(), 5))
    (folder / "torch_2_10.json").write_text(json.dumps(torch_2_10()))
    (folder / "segments_only.json").write_text(json.dumps([segment()], indent=1))
    (folder / "runs_code.pickle").write_bytes(b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.")


if __name__ == "__main__":
    main()
