#!/usr/bin/env python3
"""Writes small profiles of JAX's memory for fuzz_pprof: python fuzz/make_pprof_corpus.py fuzz/corpus/fuzz_pprof"""
import gzip
import sys
from pathlib import Path


def number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def field(tag, value):
    """A number, or bytes with their length."""
    if isinstance(value, int):
        return number(tag << 3) + number(value & (1 << 64) - 1)
    return number(tag << 3 | 2) + number(len(value)) + value


def message(*fields):
    return b"".join(field(tag, value) for tag, value in fields)


STRINGS = ["", "allocations", "count", "space", "bytes", "kind", "buffer", "executable", "device", "cpu:0", "TPU_0",
           "load_params", "/srv/x/train.py", "<module>"]
TYPES = message((1, message((1, 1), (2, 2))), (1, message((1, 3), (2, 4))))
PLACES = message(
    (4, message((1, 1), (4, message((1, 1), (2, 12))))),
    (4, message((1, 2), (4, message((1, 2), (2, 30))), (4, message((1, 1), (2, 13))))),  # one line inlined in another
    (5, message((1, 1), (2, 11), (3, 11), (4, 12))),
    (5, message((1, 2), (2, 13), (4, 12))))
KIND, EXECUTABLE = message((1, 5), (2, 6)), message((1, 5), (2, 7))
CPU, TPU = message((1, 8), (2, 9)), message((1, 8), (2, 10))
PACKED = message((2, message((1, number(1) + number(2)), (2, number(3) + number(25600)), (3, KIND), (3, CPU))))
SINGLE = message((2, message((1, 2), (2, 1), (2, 512), (3, KIND), (3, TPU))))
CODE = message((2, message((1, number(2)), (2, number(1) + number(0)), (3, EXECUTABLE))))
NEGATIVE = message((2, message((2, number((1 << 64) - 1) + number((1 << 64) - 8)))))
TEXTS = b"".join(field(6, text.encode()) for text in STRINGS)

PROFILES = {
    "empty": TYPES + TEXTS,
    "buffers": TYPES + PACKED + SINGLE + PLACES + TEXTS,
    "kinds": TYPES + PACKED + CODE + NEGATIVE + PLACES + TEXTS + field(9, 1_700_000_000_000_000_000),
    "strings-first": TEXTS + PLACES + TYPES + PACKED,
}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, profile in PROFILES.items():
        (folder / name).write_bytes(profile)
        (folder / f"{name}.gz").write_bytes(gzip.compress(profile, mtime=0))


if __name__ == "__main__":
    main()
