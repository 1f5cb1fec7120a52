"""Writes a snapshot of PyTorch's memory of any size: make_snapshot.py FILE --bytes 1000000000 [--python-only]

Byte for byte the pickle of protocol 4 that torch.cuda.memory._dump_snapshot() writes of such a program: every
dictionary, list and text numbered, frames and keys as references, lists in pieces of a thousand, frames of 64 KiB.
The turns of a training loop differ in their times and in the numbers of their lists alone, so one is written and
then copied with those changed. Prints one line of JSON: {"bytes", "events", "allocs", "live_bytes"}.
"""
import argparse
import json
import struct

import snapshot_loop

START_US = 1_783_874_667_000_000
KEYS = ("action", "addr", "size", "stream", "time_us", "compile_context", "user_metadata", "frames")


class Writer:
    """Opcodes into `out`; places that differ from turn to turn are noted."""

    def __init__(self):
        self.out = bytearray()
        self.entries = 0
        self.numbers = {}  # what is written once: its memo entry
        self.time_places, self.list_places = [], []

    def memoize(self, key=None):
        self.out += b"\x94"
        if key is not None:
            self.numbers[key] = self.entries
        self.entries += 1

    def get(self, entry):
        self.out += b"h" + bytes([entry]) if entry < 256 else b"j" + struct.pack("<I", entry)

    def text(self, text):
        if text in self.numbers:
            return self.get(self.numbers[text])
        data = text.encode()
        self.out += b"\x8c" + bytes([len(data)]) + data if len(data) < 256 else b"X" + struct.pack("<I", len(data)) + data
        return self.memoize(text)

    def number(self, value):
        if 0 <= value < 256:
            self.out += b"K" + bytes([value])
        elif 0 <= value < 65_536:
            self.out += b"M" + struct.pack("<H", value)
        elif -2**31 <= value < 2**31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            self.out += b"\x8a" + bytes([len(data)]) + data

    def frame(self, frame):
        if frame in self.numbers:
            return self.get(self.numbers[frame])
        self.out += b"}"
        self.memoize(frame)
        self.out += b"("
        for key, value in zip(("name", "filename", "line"), (frame[1], frame[0], frame[2])):
            self.text(key)
            self.number(value) if key == "line" else self.text(value)
        self.out += b"u"

    def frames(self, stack, identity=None):
        """A list of its own for every allocation; `identity` names one that others refer to."""
        if identity in self.numbers:
            self.list_places.append(len(self.out) + 1)
            return self.out.extend(b"j" + struct.pack("<I", self.numbers[identity]))
        self.out += b"]"
        self.memoize(identity)
        self.out += b"("
        for frame in stack:
            self.frame(frame)
        self.out += b"e"

    def event(self, event, number, us_per_event, python_only):
        action, address, size, stack = event
        self.out += b"}"
        self.memoize()
        self.out += b"("
        self.text("action"), self.text(action)
        self.text("addr"), self.number(address)
        self.text("size"), self.number(size)
        self.text("stream"), self.number(0)
        self.text("time_us")
        self.time_places.append(len(self.out) + 2)
        self.number(START_US + number * us_per_event)
        self.text("compile_context")
        self.out += b"\x8c\x03N/A"
        self.memoize()
        if not python_only:  # torch 2.10; the other file is of 2.7
            self.text("user_metadata"), self.text("")
        self.text("frames")
        # Both halves of a free share a list, and a block that is still live has that of its allocation.
        if action == "free_requested":
            self.numbers.pop("free", None)
            self.frames(stack, "free")
        elif action == "free_completed":
            self.frames(stack, "free")
        else:
            self.frames(stack, ("live", address) if ("live", address) in self.numbers else None)
        self.out += b"u"


def framed(data, edges):
    """`data` in frames of at least 64 KiB that end at one of `edges`."""
    out, begin = bytearray(), 0
    for edge in edges:
        if edge - begin >= 65_536 or edge == len(data):
            out += b"\x95" + struct.pack("<Q", edge - begin) + data[begin:edge]
            begin = edge
    return out


def write_segments(writer, allocator):
    writer.out += b"]"
    writer.memoize()
    segments = sorted(allocator.segments)
    for index, address in enumerate(segments):
        if index % 1000 == 0:
            writer.out += b"(" if index == 0 else b"e("
        write_segment(writer, allocator, address)
    writer.out += b"e"


def write_segment(writer, allocator, address):
    size, small, stack = allocator.segments[address]
    blocks, at = [], address
    while at is not None:
        blocks.append((at, allocator.blocks[at][0]))
        at = allocator.blocks[at][3]
    used = sum(block_size for at, block_size in blocks if at in allocator.live)
    requested = sum(allocator.live[at][0] for at, _ in blocks if at in allocator.live)
    writer.out += b"}"
    writer.memoize()
    writer.out += b"("
    for key, value in (("device", 0), ("address", address), ("total_size", size), ("allocated_size", used),
                       ("active_size", used), ("requested_size", requested), ("stream", 0)):
        writer.text(key), writer.number(value)
    writer.text("segment_type"), writer.text("small" if small else "large")
    writer.text("segment_pool_id")
    writer.out += b"K\0K\0\x86"
    writer.memoize()
    writer.text("is_expandable")
    writer.out += b"\x89"
    writer.text("frames"), writer.frames(stack)
    writer.text("blocks")
    writer.out += b"]"
    writer.memoize()
    writer.out += b"("
    for at, block_size in blocks:
        writer.out += b"}"
        writer.memoize()
        writer.out += b"("
        live = allocator.live.get(at)
        writer.text("address"), writer.number(at)
        writer.text("size"), writer.number(block_size)
        writer.text("requested_size"), writer.number(live[0] if live else 0)
        writer.text("state"), writer.text("active_allocated" if live else "inactive")
        writer.text("frames")
        if live:
            writer.frames(live[1], ("live", at))
        else:
            writer.out += b"]"
            writer.memoize()
        writer.out += b"u"
    writer.out += b"eu"


def write_settings(writer):
    writer.text("allocator_settings")
    writer.out += b"}"
    writer.memoize()
    writer.out += b"("
    writer.text("PYTORCH_CUDA_ALLOC_CONF"), writer.text("")
    writer.text("max_split_size"), writer.number(-1)
    writer.text("garbage_collection_threshold")
    writer.out += b"G" + struct.pack(">d", 0.0)
    writer.text("expandable_segments")
    writer.out += b"\x89u"
    writer.text("external_annotations")
    writer.out += b"]"
    writer.memoize()


def write(path, wanted_bytes, python_only, us_per_event):
    allocator, before, turn = snapshot_loop.make_loop(not python_only)
    writer = Writer()
    writer.out += b"}"
    writer.memoize()
    writer.out += b"("
    writer.text("segments")
    write_segments(writer, allocator)
    writer.text("device_traces")
    writer.out += b"]"
    writer.memoize()
    writer.out += b"]"
    writer.memoize()
    edges = [len(writer.out)]
    events = 0
    for event in before + turn:  # after one turn every text and frame has its number
        if events % 1000 == 0:
            writer.out += b"("
        writer.event(event, events, us_per_event, python_only)
        events += 1
        if events % 1000 == 0:
            writer.out += b"e"
        edges.append(len(writer.out))
    template = Writer()
    template.numbers, template.entries = writer.numbers, writer.entries
    turn_edges = []
    for index, event in enumerate(turn):
        template.out += b"(" if index % 1000 == 0 else b""
        template.event(event, events + index, us_per_event, python_only)
        template.out += b"e" if index % 1000 == 999 else b""
        turn_edges.append(len(template.out))
    with open(path, "wb") as file:
        file.write(b"\x80\x04" + framed(writer.out, edges))
        turns = max(0, (wanted_bytes - len(writer.out)) // len(template.out))
        write_turns(file, template, writer.entries, turn_edges, turns, len(turn) * us_per_event)
        end = Writer()
        end.numbers, end.entries = template.numbers, writer.entries + turns * (template.entries - writer.entries)
        end.out += b"a"  # the device's list into device_traces
        write_settings(end)
        end.out += b"u."
        file.write(framed(end.out, [len(end.out)]))
        size = file.tell()
    allocs = sum(event[0] == "alloc" for event in before) + (1 + turns) * sum(e[0] == "alloc" for e in turn)
    return {"bytes": size, "events": events + turns * len(turn), "allocs": allocs,
            "live_bytes": sum(requested for requested, _ in allocator.live.values())}


def write_turns(file, template, first_entry, edges, turns, us_per_turn):
    data = template.out
    times = [(place, int.from_bytes(data[place:place + 7], "little")) for place in template.time_places]
    lists = [(place, struct.unpack_from("<I", data, place)[0]) for place in template.list_places]
    # Lists of blocks that live on were numbered before the loop: their numbers stay.
    lists = [(place, number) for place, number in lists if number >= first_entry]
    entries = template.entries - first_entry
    for index in range(turns):
        for place, time in times:
            data[place:place + 7] = (time + index * us_per_turn).to_bytes(7, "little")
        for place, number in lists:
            struct.pack_into("<I", data, place, number + index * entries)
        file.write(framed(data, edges))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--python-only", action="store_true")
    options = parser.parse_args()
    print(json.dumps(write(options.file, options.bytes, options.python_only, 3)))


if __name__ == "__main__":
    main()
