"""Reads a .gmp file that nobody has sealed: a second, small reader, from docs/recording-format.md alone.

`Raw(path)` has, for each stream, its records in order: `events` and `marks` as dictionaries.
"""
import struct
from pathlib import Path

PAGE = 4096
STAGE_DEFINITIONS = 28672
ALLOC, FREE_REQUESTED, FREE_COMPLETED, OOM, TOTALS, WIDE, MARK = 1, 2, 3, 4, 5, 6, 7
KINDS = {1: "saved", 2: "role", 3: "module", 4: "step", 5: "phase_begin", 6: "phase_end", 7: "copy"}


def _fold(words):
    x = words[0] ^ words[1] ^ words[2]
    for shift in (32, 16, 8):
        x ^= x >> shift
    return x & 255


def _salt(stream, sequence):
    x = (stream * 2654435761 ^ sequence * 40503) & 0xFFFFFFFF
    return (x >> 8 ^ x >> 16 ^ x) & 255


class Raw:
    def __init__(self, path):
        self.data = Path(path).read_bytes()
        self.pieces = []  # (stream, first ordinal, records)
        self.names = {}  # (stream, string id) -> text
        self.frames = {}  # (stream, frame id) -> (file, function, line)
        self.stacks = {}  # (stream, stack id) -> frame ids from the root
        seen, stages = set(), []
        at = PAGE
        while at + 64 <= len(self.data):
            magic, kind, _, length, _, _, sequence, _, _, stream, count, ordinal = struct.unpack_from(
                "<IHHIIQQQQIIQ", self.data, at
            )
            if magic != 0x4B434D47:
                at += PAGE
                continue
            if kind == 1:
                seen.add((stream, sequence))
                self._events(stream, sequence, ordinal, at + 64, count)
            elif kind == 2:
                self._definitions(stream, at + 64, length)
            elif kind == 3:
                stages.append((at, length))
            at += (64 + length + PAGE - 1) // PAGE * PAGE
        for at, length in stages:
            events, definitions, first0, first1, stream, _ = struct.unpack_from("<QQQQII", self.data, at + 64)
            sequence, count = events >> 32, events & 0xFFFFFFFF
            if (stream, sequence) not in seen:
                self._events(stream, sequence, (first0, first1)[sequence & 1], at + PAGE, count)
            self._definitions(stream, at + 64 + length - STAGE_DEFINITIONS, definitions & 0xFFFFFFFF)
        self.events, self.marks = [], []
        for stream, _, records in sorted(self.pieces, key=lambda piece: piece[:2]):
            for time_ns, address, size, action, rest in records:
                if action == MARK:
                    kind, string = KINDS[rest & 15], rest >> 4
                    if kind == "copy":  # no string: the upper bits of the other storage
                        size, string = size | string << 37, 0
                    text = self.names[stream, string] if string else None
                    self.marks.append({"kind": kind, "address": address, "value": size, "text": text,
                                       "stream": stream, "time_ns": time_ns})
                elif action in (ALLOC, FREE_COMPLETED):
                    self.events.append({"action": "alloc" if action == ALLOC else "free", "address": address,
                                        "size_bytes": size, "stack": self._stack(stream, rest), "stream": stream,
                                        "time_ns": time_ns})

    def _events(self, stream, sequence, ordinal, at, count):
        records = []
        for i in range(count):
            words = struct.unpack_from("<QQQ", self.data, at + 24 * i)
            assert _fold(words) == _salt(stream, sequence), f"damaged record {i} at {at}"
            rest = words[2]
            records.append((words[0] >> 8, words[1] & (1 << 57) - 1, rest & (1 << 37) - 1, rest >> 37 & 7, rest >> 40))
        self.pieces.append((stream, ordinal, records))

    def _definitions(self, stream, at, length):
        end = at + length
        while at < end:
            kind, _, size = struct.unpack_from("<BBH", self.data, at)
            body = self.data[at + 4 : at + 4 + size]
            at += 4 + size
            if kind == 2:
                self.names[stream, struct.unpack_from("<I", body)[0]] = body[4:].decode()
            elif kind == 3:
                number, *frame = struct.unpack("<IIII", body)
                self.frames[stream, number] = tuple(frame)
            elif kind == 5:
                number, base, keep, count = struct.unpack_from("<IIHH", body)
                own = struct.unpack_from(f"<{count}I", body, 12)
                self.stacks[stream, number] = self.stacks.get((stream, base), ())[:keep] + own

    def _stack(self, stream, number):
        """Frames innermost first, as "file function" without a line and "file:line function" with one."""
        texts = []
        for frame in reversed(self.stacks.get((stream, number), ())):
            file, function, line = self.frames.get((stream, frame), (0, 0, 0))
            file, function = self.names.get((stream, file), ""), self.names.get((stream, function), "")
            texts.append(f"{file}:{line} {function}" if line else f"{file} {function}")
        return texts
