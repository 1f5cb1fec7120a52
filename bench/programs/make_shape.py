"""Writes a snapshot of PyTorch's memory of an unusual shape: make_shape.py FILE SHAPE --events 1000000

What is unusual grows with the number of events: a reader or a replay that looks at all of it at every event takes
the square of the time. Prints one line of JSON: {"bytes", "events", "allocs"}.
"""
import argparse
import gc
import itertools
import json
import pickle
import random

import snapshot_loop
from snapshot_loop import MIB

START_US = 1_783_874_667_000_000
FEW = 600  # stacks of a usual program


class Program:
    """An allocator, and the stacks that its events are given."""

    def __init__(self, stack_of=None):
        self.allocator = snapshot_loop.Allocator()
        self._stacks = [tuple(("model.py", f"forward_{i}", 10 * i + depth) for depth in range(20)) for i in range(FEW)]
        self._stack_of = stack_of or (lambda n: self._stacks[n % FEW])
        self._count = itertools.count()

    def alloc(self, size):
        return self.allocator.alloc(size, self._stack_of(next(self._count)))

    def free(self, address):
        self.allocator.free(address, self._stack_of(next(self._count)))

    def churn(self, events, live, size_of):
        """Fills memory with `live` blocks, then frees one drawn by chance and allocates another."""
        chance = random.Random(3)
        blocks = [self.alloc(size_of(chance)) for _ in range(live)]
        while len(self.allocator.events) < events:
            at = chance.randrange(len(blocks))
            self.free(blocks[at])
            blocks[at] = self.alloc(size_of(chance))


def usual_size(chance):
    return 512 * (1 + chance.randrange(400))


def plain(events):
    program = Program()
    program.churn(events, 1000, usual_size)
    return program


def segments(events):
    """A segment for every tenth event, none of which ever goes, and each new one while much is free in pieces."""
    program = Program()
    pieces, n = [], 0
    while len(program.allocator.events) < events:
        n += 1
        whole = program.alloc(20 * MIB + 2 * MIB * (n % 50))
        program.free(whole)
        pieces.append(program.alloc(12 * MIB))  # pins its segment, of which the rest stays free
        program.free(program.alloc(2 * MIB))
    return program


def live(events):
    """As many live blocks as there are events, in the end."""
    program = Program()
    program.churn(events, events * 9 // 10, lambda chance: 512 * (1 + chance.randrange(8)))
    return program


def holes(events):
    """Every other one of very many blocks is freed: as many free pieces, of ever other sizes."""
    program = Program()
    chance = random.Random(5)
    blocks = [program.alloc(512 * (1 + chance.randrange(2000))) for _ in range(events // 3)]
    for block in blocks[::2]:
        program.free(block)
    for _ in range(events // 9):
        program.free(program.alloc(512 * (1 + chance.randrange(2000))))
    return program


def stacks(events):
    """A stack of its own for every event."""
    program = Program(lambda n: (("leaf.py", "call", n % 1000), ("model.py", "forward", n // 1000), ("main.py", "main", 1)))
    program.churn(events, 1000, usual_size)
    return program


def deep(events):
    """Stacks of a thousand frames, a tenth of the events each of its own."""
    base = tuple(("deep.py", "recurse", depth) for depth in range(1000))
    program = Program(lambda n: (("leaf.py", "call", n // 10),) + base)
    program.churn(events // 10, 1000, usual_size)
    return program


def modules(events):
    """Ten thousand files."""
    program = Program(lambda n: tuple((f"package/module_{(n * 7 + i) % 10_000}.py", "forward", i) for i in range(20)))
    program.churn(events, 1000, usual_size)
    return program


SHAPES = {shape.__name__: shape for shape in (plain, segments, live, holes, stacks, deep, modules)}


class Writer:
    """The dictionaries of a snapshot; equal stacks are one list, as the frames of torch's are one dictionary."""

    more = {}  # of an event, before its frames

    def __init__(self):
        self.frames, self.stacks = {}, {}

    def stack(self, stack):
        known = self.stacks.get(stack)
        if known is None:
            known = self.stacks[stack] = [self.frame(frame) for frame in stack]
        return known

    def live_stack(self, _address, stack):
        return self.stack(stack)

    def event_stack(self, _action, _address, stack):
        return self.stack(stack)

    def frame(self, frame):
        known = self.frames.get(frame)
        if known is None:
            known = self.frames[frame] = {"name": frame[1], "filename": frame[0], "line": frame[2]}
        return known

    def event(self, number, event):
        action, address, size, stack = event
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": START_US + 3 * number,
                "compile_context": str(b"N/A", "ascii"),  # a text of its own, as torch makes it
                **self.more, "frames": self.event_stack(action, address, stack)}

    def segments(self, allocator):
        return [self.segment(allocator, address) for address in sorted(allocator.segments)]

    def segment(self, allocator, address):
        size, small, stack = allocator.segments[address]
        frames = self.stack(stack)
        blocks, at = [], address
        while at is not None:
            requested, of = allocator.live.get(at, (0, ()))
            blocks.append({"address": at, "size": allocator.blocks[at][0], "requested_size": requested,
                           "state": "active_allocated" if requested else "inactive",
                           "frames": self.live_stack(at, of) if requested else []})
            at = allocator.blocks[at][3]
        used = sum(block["size"] for block in blocks if block["requested_size"])
        return {"device": 0, "address": address, "total_size": size, "allocated_size": used, "active_size": used,
                "requested_size": sum(block["requested_size"] for block in blocks), "stream": 0,
                "segment_type": "small" if small else "large", "segment_pool_id": (0, 0), "is_expandable": False,
                "frames": frames, "blocks": blocks}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    gc.disable()  # nothing here is garbage
    allocator, writer = SHAPES[options.shape](options.events).allocator, Writer()
    snapshot = {"segments": writer.segments(allocator),
                "device_traces": [[writer.event(*event) for event in enumerate(allocator.events)]],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                       "garbage_collection_threshold": 0.0, "expandable_segments": False,
                                       "roundup_power2_divisions": {}},
                "external_annotations": []}
    with open(options.file, "wb") as file:
        pickle.dump(snapshot, file, 4)
        size = file.tell()
    print(json.dumps({"bytes": size, "events": len(allocator.events),
                      "allocs": sum(event[0] == "alloc" for event in allocator.events)}))


if __name__ == "__main__":
    main()
