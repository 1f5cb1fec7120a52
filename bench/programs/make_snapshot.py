"""Writes a snapshot of PyTorch's memory of any size: make_snapshot.py FILE --bytes 1000000000 [--python-only]

Byte for byte what torch.cuda.memory._dump_snapshot() writes of such a program: the turns of a training loop differ in
their times and lists alone. Prints one line of JSON: {"bytes", "events", "allocs", "live_bytes"}.
"""
import argparse
import gc
import itertools
import json
import pickle

import snapshot_loop
from make_shape import Writer


class OwnLists(Writer):
    """A list of its own for every allocation and free. Both halves of a free share one, and a block that is still live
    has that of its allocation."""

    def __init__(self, python_only):
        super().__init__()
        self.live, self.freed = {}, []
        self.more = {} if python_only else {"user_metadata": ""}  # torch 2.10; the other file is of 2.7

    def stack(self, stack):
        return [self.frame(frame) for frame in stack]

    def live_stack(self, address, stack):
        self.live[address] = self.stack(stack)
        return self.live[address]

    def event_stack(self, action, address, stack):
        if action == "free_requested":
            self.freed = self.stack(stack)
        if action in ("free_requested", "free_completed"):
            return self.freed
        return self.live.get(address) or self.stack(stack)


def snapshot(allocator, events, python_only):
    writer = OwnLists(python_only)
    segments = writer.segments(allocator)
    return {"segments": segments, "device_traces": [[writer.event(*event) for event in enumerate(events)]],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.0, "expandable_segments": False},
            "external_annotations": []}


def write(path, wanted_bytes, python_only):
    allocator, before, turn = snapshot_loop.make_loop(not python_only)

    def repeated(turns):
        return itertools.chain(before, *itertools.repeat(turn, turns))

    least, one = (len(pickle.dumps(snapshot(allocator, repeated(turns), python_only), 4)) for turns in (1, 2))
    turns = 1 + max(0, (wanted_bytes - least) // (one - least))
    with open(path, "wb") as file:
        pickle.dump(snapshot(allocator, repeated(turns), python_only), file, 4)
        size = file.tell()
    allocs = sum(event[0] == "alloc" for event in repeated(turns))
    return {"bytes": size, "events": len(before) + turns * len(turn), "allocs": allocs,
            "live_bytes": sum(requested for requested, _ in allocator.live.values())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--python-only", action="store_true")
    options = parser.parse_args()
    gc.disable()  # nothing here is garbage
    print(json.dumps(write(options.file, options.bytes, options.python_only)))


if __name__ == "__main__":
    main()
